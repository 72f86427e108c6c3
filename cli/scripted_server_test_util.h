// A server whose answers tests write down.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace floe::cli {

inline constexpr char kMetadata[] = "/tensorflow.serving.PredictionService/GetModelMetadata";
inline constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";

// Any unary RPC, as a function of bytes, behind a unix socket.
class ScriptedServer : public grpc::CallbackGenericService {
 public:
  using Handler = std::function<grpc::Status(const std::string& request, std::string* reply)>;

  ScriptedServer()
      : address_("unix:" + testing::TempDir() + "floectl_" + std::to_string(getpid()) + ".sock") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedServer() override { server_->Shutdown(); }

  const std::string& address() const { return address_; }
  // By method; set before calls. They may run at the same time.
  std::map<std::string, Handler> handlers;
  // Of the last call; read after it.
  std::multimap<std::string, std::string> metadata;
  std::chrono::system_clock::time_point deadline;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    MutexLock lock(mutex_);
    deadline = context->deadline();
    metadata.clear();
    for (const auto& [key, value] : context->client_metadata()) {
      metadata.emplace(std::string(key.data(), key.size()),
                       std::string(value.data(), value.size()));
    }
    return new Reactor(*this, context->method());
  }

 private:
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    Reactor(ScriptedServer& server, std::string method)
        : server_(server), method_(std::move(method)) {
      StartRead(&message_);
    }
    void OnReadDone(bool ok) override {
      const auto handler = server_.handlers.find(method_);
      if (!ok || handler == server_.handlers.end()) {
        return Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no " + method_));
      }
      grpc::Slice bytes;
      if (!message_.DumpToSingleSlice(&bytes).ok())
        return Finish(grpc::Status(grpc::StatusCode::INTERNAL, "dump"));
      std::string reply;
      const grpc::Status status = handler->second(
          std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size()), &reply);
      if (!status.ok()) return Finish(status);
      const grpc::Slice slice(reply);
      message_ = grpc::ByteBuffer(&slice, 1);
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    ScriptedServer& server_;
    const std::string method_;
    grpc::ByteBuffer message_;
  };

  const std::string address_;
  Mutex mutex_;  // of what is kept of calls, which may come at the same time
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace floe::cli
