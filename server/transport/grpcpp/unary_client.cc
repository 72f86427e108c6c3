#include "server/transport/grpcpp/unary_client.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/byte_buffer.h>

#include <chrono>
#include <memory>
#include <vector>

namespace floe::server {

absl::StatusOr<std::string> CallOnce(int fd, const std::string& method, const std::string& request,
                                     Duration timeout, CancelToken* cancel) {
  const auto channel = grpc::CreateInsecureChannelFromFd("inside", fd);
  grpc::GenericStub stub(channel);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(timeout));
  grpc::Slice slice(request);
  const grpc::ByteBuffer sent(&slice, 1);
  grpc::ByteBuffer received;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, sent, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&received, &status, nullptr);
  void* tag;
  bool ok;
  cancel->SetListener(&context, [&context] { context.TryCancel(); });
  queue.Next(&tag, &ok);
  cancel->ClearListener(&context);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (!status.ok())
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());

  std::vector<grpc::Slice> slices;
  std::string reply;
  if (!received.Dump(&slices).ok()) return absl::InternalError("the reply cannot be read");
  for (const grpc::Slice& part : slices)
    reply.append(reinterpret_cast<const char*>(part.begin()), part.size());
  return reply;
}

}  // namespace floe::server
