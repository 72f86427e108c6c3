// What the transport refuses, with a real grpc++ client over a real socket.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/transport/tests/methods_for_test.h"
#include "server/transport/tests/transport_for_test.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;

// Says many words at once when it is sent one.
class Chatty : public CallHandler {
 public:
  explicit Chatty(std::shared_ptr<Responder> responder) : responder_(std::move(responder)) {}
  void OnMessage(Message) override {
    for (int i = 0; i < 3000; ++i) responder_->Write("word");
  }
  void OnHalfClose() override { responder_->Finish(absl::OkStatus()); }

 private:
  const std::shared_ptr<Responder> responder_;
};

class TransportLimits : public testing::Test {
 protected:
  TransportLimits() {
    methods_.AddUnary("/test/Echo",
                      [](const CallHead& call, const Message& message, const auto& responder) {
                        EXPECT_TRUE(call.local);
                        responder->Write(std::string(message.bytes));
                        responder->Finish(absl::OkStatus());
                      });
    methods_.AddUnary("/test/Hold", [this](const CallHead&, const Message&,
                                           std::shared_ptr<Responder> responder) {
      held_.set_value(std::move(responder));
    });
    methods_.AddStream("/test/Chat", [](const CallHead&, std::shared_ptr<Responder> responder) {
      return std::make_shared<Chatty>(std::move(responder));
    });
  }
  void Open(TransportOptions options) {
    transport_ = MakeNetTransport(methods_, options);
    const absl::Status status = transport_->Start({{"127.0.0.1:0"}});
    ASSERT_TRUE(status.ok()) << status;
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        transport_->addresses().at(0), grpc::InsecureChannelCredentials(), args));
  }

  grpc::Status Send(const std::string& message,
                    grpc_compression_algorithm packing = GRPC_COMPRESS_NONE) {
    ClientCall call;
    call.context.set_compression_algorithm(packing);
    call.Start(stub_.get(), "/test/Echo", message);
    EXPECT_TRUE(call.done.Reaches(1));
    return call.status;
  }
  // A stream to its end, sent one message.
  grpc::Status Chat(const std::string& message) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub_->PrepareCall(&context, "/test/Chat", &queue);
    call->StartCall(this);
    void* tag;
    bool ok;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    call->Write(Buffer(message), this);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    grpc::ByteBuffer word;
    do {
      call->Read(&word, this);
      EXPECT_TRUE(queue.Next(&tag, &ok));
    } while (ok);
    grpc::Status status;
    call->Finish(&status, this);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }

  TestMethods methods_;
  std::promise<std::shared_ptr<Responder>> held_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

TEST_F(TransportLimits, CompressedRequestsAreRefusedUnlessAskedFor) {
  const std::string zeros(1 << 20, '\0');
  Open({});
  const grpc::Status refused = Send(zeros, GRPC_COMPRESS_GZIP);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("server.enable_compression: true"));

  EXPECT_TRUE(Send(zeros).ok());
  TransportOptions options;
  options.compression = true;
  options.max_message_bytes = 1 << 20;
  Open(options);
  const grpc::Status packed = Send(zeros, GRPC_COMPRESS_GZIP);
  EXPECT_TRUE(packed.ok()) << packed.error_message();
  EXPECT_TRUE(Send(zeros).ok());
  const grpc::Status bomb = Send(std::string(100 << 20, '\0'), GRPC_COMPRESS_GZIP);
  EXPECT_EQ(bomb.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(bomb.error_message(), HasSubstr("unpacks to more than the 1048576 bytes"));
  EXPECT_TRUE(Send(zeros, GRPC_COMPRESS_DEFLATE).ok());
}

TEST_F(TransportLimits, CallsAndTheirBytesAreBounded) {
  TransportOptions options;
  options.calls.address = {1, 0};
  Open(options);
  ClientCall first;
  first.Start(stub_.get(), "/test/Hold", "x");
  const std::shared_ptr<Responder> responder = held_.get_future().get();
  const grpc::Status second = Send("y");
  EXPECT_EQ(second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(second.error_message(), HasSubstr("server.max_calls_per_address"));
  responder->Write("done");
  responder->Finish(absl::OkStatus());
  ASSERT_TRUE(first.done.Reaches(1));
  EXPECT_TRUE(first.status.ok());
  EXPECT_TRUE(Send("z").ok()) << "room again";

  options.calls = {};
  options.calls.all.bytes = 1000;
  Open(options);
  EXPECT_TRUE(Send(std::string(400, 'a')).ok());
  EXPECT_EQ(Send(std::string(1001, 'a')).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(TransportLimits, StreamsWaitForNobody) {
  Open({});
  const grpc::Status unread = Chat("go on");
  EXPECT_EQ(unread.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << unread.error_message();
  EXPECT_THAT(unread.error_message(), HasSubstr("does not read"));
}

}  // namespace
}  // namespace floe::server
