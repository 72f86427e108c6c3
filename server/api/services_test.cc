// Metadata, status, health, reflection and the methods that are refused.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/api/api.h"
#include "server/api/fakes_for_test.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace floe::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace pb = tensorflow::serving;

constexpr char kMetadata[] = "/tensorflow.serving.PredictionService/GetModelMetadata";
constexpr char kStatus[] = "/tensorflow.serving.ModelService/GetModelStatus";
constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

class Services : public testing::Test {
 protected:
  Services() {
    registry_.models["mnist"] = std::make_shared<FakeServed>(MakeTestModel("mnist", 4));
    registry_.statuses["mnist"] = {{5, VersionState::kEnd, absl::InternalError("bad file")},
                                   {4, VersionState::kAvailable, absl::OkStatus()}};
    ApiContext context{registry_, health_};
    context.enable_reflection = true;
    RegisterApi(context, &table_);
  }

  FakeRegistry registry_;
  HealthState health_;
  MethodTable table_;
};

// One streaming call, driven by the test.
struct Stream {
  Stream(const MethodTable& table, const char* path) {
    CallHead info;
    info.path = path;
    info.cancel = std::make_shared<CancelToken>();
    const Method* const method = table.Find(path);
    EXPECT_NE(method, nullptr);
    handler = method->Open(info, responder).value();
  }
  void Send(const std::string& message) {
    const auto bytes = std::make_shared<const std::string>(message);
    handler->OnMessage({*bytes, bytes});
  }
  std::shared_ptr<FakeResponder> responder = std::make_shared<FakeResponder>();
  std::shared_ptr<CallHandler> handler;
};

TEST_F(Services, MetadataOfSignatures) {
  pb::GetModelMetadataRequest request;
  request.mutable_model_spec()->set_name("mnist");
  request.add_metadata_field("signature_def");
  const auto responder = CallUnary(table_, kMetadata, request.SerializeAsString());
  ASSERT_TRUE(responder->status.ok()) << responder->status;
  pb::GetModelMetadataResponse response;
  ASSERT_TRUE(response.ParseFromString(responder->messages.at(0)));
  EXPECT_EQ(response.model_spec().name(), "mnist");
  EXPECT_EQ(response.model_spec().version().value(), 4);
  const auto& any = response.metadata().at("signature_def");
  EXPECT_EQ(any.type_url(), "type.googleapis.com/tensorflow.serving.SignatureDefMap");
  pb::SignatureDefMap map;
  ASSERT_TRUE(any.UnpackTo(&map));
  const auto& signature = map.signature_def().at("serving_default");
  EXPECT_EQ(signature.method_name(), "tensorflow/serving/predict");
  const auto& x = signature.inputs().at("x");
  EXPECT_EQ(x.name(), "x:0");
  EXPECT_EQ(x.dtype(), tensorflow::DT_FLOAT);
  ASSERT_EQ(x.tensor_shape().dim_size(), 2);
  EXPECT_EQ(x.tensor_shape().dim(0).size(), -1);
  EXPECT_EQ(x.tensor_shape().dim(1).size(), 2);
  EXPECT_EQ(signature.inputs_size(), 3);
  EXPECT_EQ(signature.outputs().at("label").name(), "label:0");
  EXPECT_EQ(signature.outputs().at("label").dtype(), tensorflow::DT_INT64);
}

TEST_F(Services, MetadataErrors) {
  pb::GetModelMetadataRequest request;
  request.mutable_model_spec()->set_name("mnist");
  EXPECT_EQ(CallUnary(table_, kMetadata, request.SerializeAsString())->status.code(),
            absl::StatusCode::kInvalidArgument);
  request.add_metadata_field("weights");
  EXPECT_THAT(CallUnary(table_, kMetadata, request.SerializeAsString())->status.ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'weights'")));
  request.set_metadata_field(0, "signature_def");
  request.mutable_model_spec()->set_name("other");
  EXPECT_EQ(CallUnary(table_, kMetadata, request.SerializeAsString())->status.code(),
            absl::StatusCode::kNotFound);
  request.mutable_model_spec()->clear_name();
  EXPECT_EQ(CallUnary(table_, kMetadata, request.SerializeAsString())->status.code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(Services, StatusOfVersions) {
  pb::GetModelStatusRequest request;
  request.mutable_model_spec()->set_name("mnist");
  const auto responder = CallUnary(table_, kStatus, request.SerializeAsString());
  pb::GetModelStatusResponse response;
  ASSERT_TRUE(response.ParseFromString(responder->messages.at(0)));
  ASSERT_EQ(response.model_version_status_size(), 2);
  EXPECT_EQ(response.model_version_status(0).version(), 5);
  EXPECT_EQ(response.model_version_status(0).state(), pb::ModelVersionStatus::END);
  EXPECT_EQ(response.model_version_status(0).status().error_code(), tensorflow::error::INTERNAL);
  EXPECT_EQ(response.model_version_status(0).status().error_message(), "bad file");
  EXPECT_EQ(response.model_version_status(1).state(), pb::ModelVersionStatus::AVAILABLE);
  EXPECT_EQ(response.model_version_status(1).status().error_code(), tensorflow::error::OK);
  request.mutable_model_spec()->mutable_version()->set_value(4);
  ASSERT_TRUE(response.ParseFromString(
      CallUnary(table_, kStatus, request.SerializeAsString())->messages.at(0)));
  EXPECT_EQ(response.model_version_status_size(), 1);
  request.mutable_model_spec()->set_name("other");
  EXPECT_EQ(CallUnary(table_, kStatus, request.SerializeAsString())->status.code(),
            absl::StatusCode::kNotFound);
}

TEST_F(Services, KnownButNotOffered) {
  const auto responder = CallUnary(table_, "/tensorflow.serving.SessionService/SessionRun", "");
  EXPECT_EQ(responder->status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(responder->status.message()),
              AllOf(HasSubstr("SessionRun is not offered"), HasSubstr("Call Predict")));
  EXPECT_THAT(
      UnknownMethodError(table_, "/tensorflow.serving.PredictionService/Predikt").ToString(),
      AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("/Predikt"),
            HasSubstr("'/tensorflow.serving.PredictionService/Predict'")));
  for (const char* path : {"/v1/models/m:predict", "/v2/health/ready"})
    EXPECT_THAT(UnknownMethodError(table_, path).ToString(),
                AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("belongs to the REST API")));
}

HealthCheckResponse::ServingStatus StatusIn(const std::string& bytes) {
  HealthCheckResponse response;
  EXPECT_TRUE(response.ParseFromString(bytes));
  return response.status();
}

TEST_F(Services, HealthCheck) {
  health_.Set("model/mnist", ServingStatus::kNotServing);
  HealthCheckRequest request;
  request.set_service("model/mnist");
  EXPECT_EQ(StatusIn(CallUnary(table_, kCheck, request.SerializeAsString())->messages.at(0)),
            HealthCheckResponse::NOT_SERVING);
  health_.Set("model/mnist", ServingStatus::kServing);
  EXPECT_EQ(StatusIn(CallUnary(table_, kCheck, request.SerializeAsString())->messages.at(0)),
            HealthCheckResponse::SERVING);
  request.set_service("model/other");
  EXPECT_THAT(CallUnary(table_, kCheck, request.SerializeAsString())->status.ToString(),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("'model/other'")));
}

TEST_F(Services, HealthWatchFollowsChanges) {
  Stream stream(table_, kWatch);
  HealthCheckRequest request;
  request.set_service("model/new");
  stream.Send(request.SerializeAsString());
  health_.Set("model/new", ServingStatus::kServing);
  health_.Set("model/other", ServingStatus::kServing);
  health_.Set("model/new", ServingStatus::kNotServing);
  stream.handler->OnHalfClose();  // callers of Watch close at once; updates go on
  health_.Set("model/new", ServingStatus::kServing);
  std::vector<int> seen;
  for (const std::string& message : stream.responder->messages) seen.push_back(StatusIn(message));
  EXPECT_THAT(seen, ElementsAre(HealthCheckResponse::SERVICE_UNKNOWN, HealthCheckResponse::SERVING,
                                HealthCheckResponse::NOT_SERVING, HealthCheckResponse::SERVING));
  EXPECT_EQ(stream.responder->finishes, 0);
  stream.handler->OnDone();
  health_.Set("model/new", ServingStatus::kNotServing);
  EXPECT_EQ(stream.responder->messages.size(), 4u);
}

TEST_F(Services, HealthWatchNeedsAMessage) {
  Stream silent(table_, kWatch), broken(table_, kWatch);
  silent.handler->OnHalfClose();
  silent.handler->OnDone();
  broken.Send("\x0a\xff");
  broken.handler->OnHalfClose();
  EXPECT_EQ(silent.responder->status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broken.responder->status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broken.responder->finishes, 1);
}

class Reflection : public Services {
 protected:
  ServerReflectionResponse Ask(const ServerReflectionRequest& request,
                               const char* path = kReflection) {
    Stream stream(table_, path);
    stream.Send(request.SerializeAsString());
    ServerReflectionResponse response;
    EXPECT_TRUE(response.ParseFromString(stream.responder->messages.at(0)));
    stream.handler->OnHalfClose();
    EXPECT_EQ(stream.responder->finishes, 1);
    EXPECT_TRUE(stream.responder->status.ok());
    stream.handler->OnDone();
    return response;
  }
  static std::vector<std::string> FileNames(const ServerReflectionResponse& response) {
    std::vector<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.push_back(file.name());
    }
    return names;
  }
};

TEST_F(Reflection, ListsServices) {
  ServerReflectionRequest request;
  request.set_list_services("");
  for (const char* path :
       {kReflection, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}) {
    const ServerReflectionResponse response = Ask(request, path);
    std::vector<std::string> names;
    for (const auto& service : response.list_services_response().service())
      names.push_back(service.name());
    EXPECT_THAT(
        names,
        ElementsAre("tensorflow.serving.PredictionService", "tensorflow.serving.ModelService",
                    "inference.GRPCInferenceService", "floe.Admin", "grpc.health.v1.Health",
                    "grpc.reflection.v1alpha.ServerReflection"));
  }
}

TEST_F(Reflection, FilesBySymbolAndName) {
  ServerReflectionRequest request;
  request.set_file_containing_symbol("tensorflow.serving.PredictionService");
  std::vector<std::string> names = FileNames(Ask(request));
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names[0], "tensorflow_serving/apis/prediction_service.proto");
  EXPECT_THAT(names, Contains("tensorflow/core/framework/tensor.proto"));
  EXPECT_THAT(names, Contains("google/protobuf/any.proto"));
  request.set_file_containing_symbol("tensorflow.TensorProto");
  EXPECT_EQ(FileNames(Ask(request)).at(0), "tensorflow/core/framework/tensor.proto");
  request.set_file_by_filename("grpc/health/v1/health.proto");
  EXPECT_THAT(FileNames(Ask(request)), ElementsAre("grpc/health/v1/health.proto"));
  request.set_file_by_filename("none.proto");
  const ServerReflectionResponse response = Ask(request);
  EXPECT_EQ(response.error_response().error_code(), 5);
  EXPECT_EQ(response.original_request().file_by_filename(), "none.proto");
}

TEST_F(Reflection, OnlyWhenEnabled) {
  MethodTable table;
  RegisterApi({registry_, health_}, &table);
  EXPECT_EQ(table.Find(kReflection), nullptr);
  EXPECT_THAT(table.Paths(), Not(Contains(HasSubstr("reflection"))));
}

}  // namespace
}  // namespace floe::server
