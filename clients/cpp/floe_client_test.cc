#include "clients/cpp/floe_client.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe_client {
namespace {

using tensorflow::TensorProto;
using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;
using ::testing::ElementsAre;

// ---- messages

TEST(ClientMessages, ARequestIsPredictRequest) {
  Model model("m");
  model.version = 7;
  model.signature = "sig";
  const Tensors inputs = {{"x", Tensor::Of<float>({2, 1}, {1.5f, -2.0f})},
                          {"s", Tensor::Of({2}, {"a", std::string("\0b", 2)})},
                          {"none", Tensor::Of<int64_t>({0, 3}, {})}};
  PredictRequest request;
  ASSERT_TRUE(request.ParseFromString(wire::EncodePredict(model, inputs, {"y", "z"})));
  EXPECT_EQ(request.model_spec().name(), "m");
  EXPECT_EQ(request.model_spec().version().value(), 7);
  EXPECT_EQ(request.model_spec().signature_name(), "sig");
  EXPECT_THAT(request.output_filter(), ElementsAre("y", "z"));
  ASSERT_EQ(request.inputs().size(), 3u);
  const TensorProto& x = request.inputs().at("x");
  EXPECT_EQ(x.dtype(), tensorflow::DT_FLOAT);
  ASSERT_EQ(x.tensor_shape().dim_size(), 2);
  EXPECT_EQ(x.tensor_shape().dim(0).size(), 2);
  ASSERT_EQ(x.tensor_content().size(), 2 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<const float*>(x.tensor_content().data())[1], -2.0f);
  EXPECT_THAT(request.inputs().at("s").string_val(), ElementsAre("a", std::string("\0b", 2)));
  EXPECT_EQ(request.inputs().at("none").tensor_shape().dim(0).size(), 0);

  model.version.reset();
  model.label = "stable";
  ASSERT_TRUE(request.ParseFromString(wire::EncodePredict(model, {}, {})));
  EXPECT_EQ(request.model_spec().version_label(), "stable");
}

// A tensor of two elements, 1 and 2, in the field where servers send the type's values.
TensorProto Typed(int dtype) {
  TensorProto out;
  out.set_dtype(static_cast<tensorflow::DataType>(dtype));
  out.mutable_tensor_shape()->add_dim()->set_size(2);
  for (const int value : {1, 2}) {
    switch (static_cast<DType>(dtype)) {
      case DType::kFloat32:
        out.add_float_val(value);
        break;
      case DType::kFloat64:
        out.add_double_val(value);
        break;
      case DType::kInt64:
        out.add_int64_val(value);
        break;
      case DType::kBool:
        out.add_bool_val(value == 1);
        break;
      case DType::kUInt32:
        out.add_uint32_val(value);
        break;
      case DType::kUInt64:
        out.add_uint64_val(value);
        break;
      case DType::kFloat16:
        out.add_half_val(value == 1 ? 0x3c00 : 0x4000);
        break;
      case DType::kBFloat16:
        out.add_half_val(value == 1 ? 0x3f80 : 0x4000);
        break;
      case DType::kComplex64:
        out.add_scomplex_val(value), out.add_scomplex_val(-value);
        break;
      case DType::kComplex128:
        out.add_dcomplex_val(value), out.add_dcomplex_val(-value);
        break;
      case DType::kString:
        out.add_string_val(std::to_string(value));
        break;
      default:
        out.add_int_val(value);
        break;
    }
  }
  return out;
}

TEST(ClientMessages, RepliesOfEveryTypeAreReadFromContentAndFromValues) {
  int types = 0;
  for (int dtype = 1; dtype <= 23; ++dtype) {
    if (SizeOf(static_cast<DType>(dtype)) == 0) continue;
    SCOPED_TRACE(dtype);
    Tensor typed, content;
    ASSERT_TRUE(wire::DecodeTensor(Typed(dtype).SerializeAsString(), &typed));
    EXPECT_EQ(typed.bytes.size(), 2 * SizeOf(typed.dtype));
    EXPECT_THAT(typed.shape, ElementsAre(2));
    TensorProto proto = Typed(dtype);
    TensorProto with_content;
    with_content.set_dtype(proto.dtype());
    *with_content.mutable_tensor_shape() = proto.tensor_shape();
    with_content.set_tensor_content(typed.bytes);
    ASSERT_TRUE(wire::DecodeTensor(with_content.SerializeAsString(), &content));
    EXPECT_EQ(content.bytes, typed.bytes);
    ++types;
  }
  EXPECT_EQ(types, 20);
  Tensor tensor;
  ASSERT_TRUE(wire::DecodeTensor(Typed(3).SerializeAsString(), &tensor));
  ASSERT_NE(tensor.data<int32_t>(), nullptr);
  EXPECT_EQ(tensor.data<int32_t>()[1], 2);
  EXPECT_EQ(tensor.data<float>(), nullptr);
  ASSERT_TRUE(wire::DecodeTensor(Typed(19).SerializeAsString(), &tensor));
  EXPECT_EQ(tensor.bytes, std::string("\x00\x3c\x00\x40", 4));
  ASSERT_TRUE(wire::DecodeTensor(Typed(7).SerializeAsString(), &tensor));
  EXPECT_THAT(tensor.strings, ElementsAre("1", "2"));
}

TEST(ClientMessages, NegativeNumbersAndUnpackedLists) {
  TensorProto proto;
  proto.set_dtype(tensorflow::DT_INT8);
  proto.mutable_tensor_shape()->add_dim()->set_size(2);
  proto.add_int_val(-1);
  proto.add_int_val(-128);
  Tensor tensor;
  ASSERT_TRUE(wire::DecodeTensor(proto.SerializeAsString(), &tensor));
  EXPECT_EQ(tensor.data<int8_t>()[0], -1);
  EXPECT_EQ(tensor.data<int8_t>()[1], -128);
  proto.clear_int_val();
  std::string message = proto.SerializeAsString();
  wire::PutNumber(&message, 7, 5);
  wire::PutNumber(&message, 7, -5);
  ASSERT_TRUE(wire::DecodeTensor(message, &tensor));
  EXPECT_EQ(tensor.data<int8_t>()[0], 5);
  EXPECT_EQ(tensor.data<int8_t>()[1], -5);
}

TEST(ClientMessages, ValuesFitTheShape) {
  TensorProto proto = Typed(1);
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(3);
  Tensor tensor;
  EXPECT_FALSE(wire::DecodeTensor(proto.SerializeAsString(), &tensor));
  proto.mutable_float_val()->RemoveLast();  // one value stands for all
  ASSERT_TRUE(wire::DecodeTensor(proto.SerializeAsString(), &tensor));
  ASSERT_EQ(tensor.size(), 3u);
  EXPECT_EQ(tensor.data<float>()[2], 1.0f);
  for (const int64_t size : {int64_t{-1}, int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
    proto.mutable_tensor_shape()->mutable_dim(0)->set_size(size);
    EXPECT_FALSE(wire::DecodeTensor(proto.SerializeAsString(), &tensor)) << size;
  }
  proto.set_dtype(tensorflow::DT_RESOURCE);
  EXPECT_FALSE(wire::DecodeTensor(proto.SerializeAsString(), &tensor));
}

std::string MetadataReply() {
  tensorflow::serving::SignatureDefMap map;
  tensorflow::SignatureDef& def = (*map.mutable_signature_def())["serving_default"];
  tensorflow::TensorInfo& x = (*def.mutable_inputs())["x"];
  x.set_dtype(tensorflow::DT_BFLOAT16);
  for (const int size : {-1, 3}) x.mutable_tensor_shape()->add_dim()->set_size(size);
  (*def.mutable_outputs())["y"].mutable_tensor_shape()->set_unknown_rank(true);
  tensorflow::serving::GetModelMetadataResponse reply;
  reply.mutable_model_spec()->mutable_version()->set_value(4);
  (*reply.mutable_metadata())["signature_def"].PackFrom(map);
  return reply.SerializeAsString();
}

std::string StatusReply() {
  tensorflow::serving::GetModelStatusResponse reply;
  auto* const version = reply.add_model_version_status();
  version->set_version(2);
  version->set_state(tensorflow::serving::ModelVersionStatus::END);
  version->mutable_status()->set_error_message("no such op");
  reply.add_model_version_status()->set_version(1);
  return reply.SerializeAsString();
}

TEST(ClientMessages, MetadataAndStatus) {
  Metadata metadata;
  ASSERT_TRUE(wire::DecodeMetadata(MetadataReply(), &metadata));
  EXPECT_EQ(metadata.version, 4);
  const Signature& signature = metadata.signatures.at("serving_default");
  EXPECT_EQ(signature.inputs.at("x").dtype, DType::kBFloat16);
  EXPECT_THAT(*signature.inputs.at("x").shape, ElementsAre(-1, 3));
  EXPECT_FALSE(signature.outputs.at("y").shape.has_value());
  std::vector<VersionStatus> versions;
  ASSERT_TRUE(wire::DecodeStatus(StatusReply(), &versions));
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0].version, 2);
  EXPECT_EQ(versions[0].state, State::kEnd);
  EXPECT_EQ(versions[0].message, "no such op");
}

// Whatever the bytes, reading ends, within them and with little memory.
TEST(ClientMessages, DamagedRepliesAreRefused) {
  PredictResponse predict;
  for (int dtype = 1; dtype <= 23; ++dtype)
    (*predict.mutable_outputs())[std::to_string(dtype)] = Typed(dtype);
  std::mt19937 random(1);
  int refused = 0;
  for (const std::string& whole : {predict.SerializeAsString(), MetadataReply(), StatusReply()}) {
    for (int round = 0; round < 3000; ++round) {
      std::string bytes = whole.substr(0, random() % (whole.size() + 1));
      for (int k = random() % 4; k > 0 && !bytes.empty(); --k)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      const auto exact =
          std::make_unique<char[]>(bytes.size());  // so that a sanitizer sees its end
      std::copy(bytes.begin(), bytes.end(), exact.get());
      const std::string_view view(exact.get(), bytes.size());
      Tensors outputs;
      Metadata metadata;
      std::vector<VersionStatus> versions;
      refused += !wire::DecodePredict(view, &outputs);
      refused += !wire::DecodeMetadata(view, &metadata);
      refused += !wire::DecodeStatus(view, &versions);
    }
  }
  EXPECT_GT(refused, 1000);
}

// ---- calls

// Answers one call after another with `status` and `reply`, but the first `refusals`, which it asks
// to come again.
class Server {
 public:
  Server() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    thread_ = std::thread([this] {
      while (ServeOne()) continue;
    });
  }
  ~Server() {
    server_->Shutdown(std::chrono::system_clock::now());
    thread_.join();
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) continue;
  }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

  // To be changed between calls.
  grpc::Status status;
  std::string reply;
  bool silent = false;  // calls end when they are cancelled
  int refusals = 0;
  std::atomic<int> calls{0};
  std::string method, token, request_id;  // of the last call
  std::chrono::system_clock::time_point deadline;

 private:
  // False once the server stops.
  bool ServeOne() {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream(&context);
    grpc::ByteBuffer request;
    context.AsyncNotifyWhenDone(this);
    service_.RequestCall(&context, &stream, queue_.get(), queue_.get(), nullptr);
    if (!Next()) return false;
    stream.Read(&request, nullptr);
    if (!Next()) return false;
    Note(context);
    if (silent) Next();
    // Once the call has ended, the test may change what it is answered.
    const bool was_silent = silent;
    const grpc::Slice slice(reply);
    if (refusals-- > 0) {
      context.AddTrailingMetadata("grpc-retry-pushback-ms", "1");
      stream.Finish({grpc::StatusCode::UNAVAILABLE, "the queue is full"}, nullptr);
    } else if (status.ok()) {
      stream.WriteAndFinish(grpc::ByteBuffer(&slice, 1), {}, grpc::Status::OK, nullptr);
    } else {
      stream.Finish(status, nullptr);
    }
    Next();
    if (!was_silent) Next();
    return true;
  }
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_->Next(&tag, &ok) && (ok || tag == this);
  }
  void Note(const grpc::GenericServerContext& context) {
    const auto header = [&](const char* name) {
      const auto it = context.client_metadata().find(name);
      return it == context.client_metadata().end()
                 ? ""
                 : std::string(it->second.data(), it->second.size());
    };
    ++calls;
    method = context.method();
    deadline = context.deadline();
    token = header("authorization");
    request_id = header("x-request-id");
  }

  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

TEST(Client, SendsTokenHeadersAndDeadline) {
  Server server;
  PredictResponse reply;
  (*reply.mutable_outputs())["y"] = Typed(1);
  server.reply = reply.SerializeAsString();
  ClientOptions options;
  options.token = "secret";
  Client client(server.target(), options);
  CallOptions call;
  call.timeout = std::chrono::seconds(100);
  call.headers = {{"x-request-id", "7"}};
  const auto answer = client.Predict("m", {}, call);
  ASSERT_TRUE(answer.ok()) << answer.status().error_message();
  EXPECT_EQ(answer->at("y").data<float>()[1], 2.0f);
  EXPECT_EQ(server.method, "/tensorflow.serving.PredictionService/Predict");
  EXPECT_EQ(server.token, "Bearer secret");
  EXPECT_EQ(server.request_id, "7");
  const auto left = server.deadline - std::chrono::system_clock::now();
  EXPECT_GT(left, std::chrono::seconds(50));
  EXPECT_LT(left, std::chrono::seconds(101));
  server.reply = MetadataReply();
  EXPECT_EQ(client.GetMetadata("m")->version, 4);
  EXPECT_EQ(server.method, "/tensorflow.serving.PredictionService/GetModelMetadata");
  server.reply = StatusReply();
  EXPECT_EQ(client.GetStatus("m")->size(), 2u);
  EXPECT_EQ(server.method, "/tensorflow.serving.ModelService/GetModelStatus");
}

TEST(Client, RetriesWhenTheServerSaysSo) {
  Server server;
  server.refusals = 3;
  EXPECT_TRUE(Client(server.target())
                  .Predict("m", {{"x", Tensor::Raw(DType::kUInt8, {1 << 20},
                                                   std::string(1 << 20, 'x').data(), 1 << 20)}})
                  .ok());
  EXPECT_EQ(server.calls, 4);
  server.refusals = 100;
  const auto refused = Client(server.target()).Predict("m", {});
  EXPECT_EQ(refused.status().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.status().error_message(), "the queue is full");
  EXPECT_EQ(server.calls, 9);
  ClientOptions options;
  options.retries = false;
  EXPECT_FALSE(Client(server.target(), options).Predict("m", {}).ok());
  EXPECT_EQ(server.calls, 10);
}

TEST(Client, AnswersByCallback) {
  Server server;
  PredictResponse reply;
  (*reply.mutable_outputs())["y"] = Typed(1);
  server.reply = reply.SerializeAsString();
  std::atomic<int> answered{0};
  for (int round = 0; round < 20; ++round) {
    Client client(server.target());  // its end waits for the answers
    for (int call = 0; call < 3; ++call)
      client.PredictAsync("m", {}, [&](const Result<Tensors>& result) {
        answered += result.ok() && result->at("y").size() == 2;
      });
  }
  EXPECT_EQ(answered, 60);
  server.status = {grpc::StatusCode::NOT_FOUND, "no"};
  std::promise<Result<Tensors>> refused;
  Client client(server.target());
  client.PredictAsync("m", {}, [&](const Result<Tensors>& result) { refused.set_value(result); });
  EXPECT_EQ(refused.get_future().get().status().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(Client, ErrorsAreResults) {
  Server server;
  server.status = {grpc::StatusCode::NOT_FOUND, "there is no model 'm'"};
  Client client(server.target());
  const auto missing = client.GetMetadata("m");
  EXPECT_EQ(missing.status().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(missing.status().error_message(), "there is no model 'm'");
  EXPECT_EQ(server.calls, 1);
  server.status = grpc::Status::OK;
  server.reply = "no message";
  EXPECT_EQ(client.Predict("m", {}).status().error_code(), grpc::StatusCode::INTERNAL);
  CallOptions call;
  server.silent = true;
  call.timeout = std::chrono::milliseconds(20);
  EXPECT_EQ(client.GetStatus("m", call).status().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace floe_client
