// ServerReflection, from the descriptors that are linked in.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/api/methods.h"
#include "server/api/proto_method.h"

namespace floe::server {
namespace {

namespace reflection_pb = grpc::reflection::v1alpha;
using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

void SetError(absl::StatusCode code, const std::string& message,
              reflection_pb::ServerReflectionResponse* out) {
  out->mutable_error_response()->set_error_code(static_cast<int>(code));
  out->mutable_error_response()->set_error_message(message);
}

// The file and all it imports, each once, imports first.
void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>* seen,
              reflection_pb::FileDescriptorResponse* out) {
  if (!seen->insert(&file).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), seen, out);
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  out->add_file_descriptor_proto(proto.SerializeAsString());
}

void AnswerFile(const FileDescriptor* file, const std::string& asked,
                reflection_pb::ServerReflectionResponse* out) {
  if (file == nullptr) {
    return SetError(absl::StatusCode::kNotFound, absl::StrCat("no ", asked), out);
  }
  std::set<const FileDescriptor*> seen;
  reflection_pb::FileDescriptorResponse* const files = out->mutable_file_descriptor_response();
  AddFiles(*file, &seen, files);
  // The file asked for comes first, as clients expect.
  files->mutable_file_descriptor_proto()->SwapElements(0, files->file_descriptor_proto_size() - 1);
}

void AnswerExtension(const reflection_pb::ExtensionRequest& asked,
                     reflection_pb::ServerReflectionResponse* out) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* const type = pool.FindMessageTypeByName(asked.containing_type());
  const FieldDescriptor* const extension =
      type == nullptr ? nullptr : pool.FindExtensionByNumber(type, asked.extension_number());
  AnswerFile(
      extension == nullptr ? nullptr : extension->file(),
      absl::StrCat("extension ", asked.extension_number(), " of ", Quoted(asked.containing_type())),
      out);
}

void AnswerExtensionNumbers(const std::string& name, reflection_pb::ServerReflectionResponse* out) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* const type = pool.FindMessageTypeByName(name);
  if (type == nullptr) {
    return SetError(absl::StatusCode::kNotFound, absl::StrCat("no message type ", Quoted(name)),
                    out);
  }
  auto* const numbers = out->mutable_all_extension_numbers_response();
  numbers->set_base_type_name(name);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  for (const FieldDescriptor* extension : extensions) {
    numbers->add_extension_number(extension->number());
  }
}

class ReflectionHandler : public CallHandler {
 public:
  ReflectionHandler(const std::vector<std::string>& services, std::shared_ptr<Responder> responder)
      : services_(services), responder_(std::move(responder)) {}

  void OnMessage(Message message) override {
    if (finished_) return;
    reflection_pb::ServerReflectionRequest request;
    const absl::Status status = ParseMessage(message.bytes, &request);
    if (!status.ok()) return Finish(status);
    reflection_pb::ServerReflectionResponse response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    Answer(request, &response);
    responder_->Write(response.SerializeAsString());
  }

  void OnHalfClose() override { Finish(absl::OkStatus()); }

 private:
  void Finish(const absl::Status& status) {
    if (finished_) return;
    finished_ = true;
    responder_->Finish(status);
  }

  void Answer(const reflection_pb::ServerReflectionRequest& request,
              reflection_pb::ServerReflectionResponse* out) const {
    const DescriptorPool& pool = *DescriptorPool::generated_pool();
    switch (request.message_request_case()) {
      case reflection_pb::ServerReflectionRequest::kFileByFilename:
        return AnswerFile(pool.FindFileByName(request.file_by_filename()),
                          absl::StrCat("file ", Quoted(request.file_by_filename())), out);
      case reflection_pb::ServerReflectionRequest::kFileContainingSymbol:
        return AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                          absl::StrCat("symbol ", Quoted(request.file_containing_symbol())), out);
      case reflection_pb::ServerReflectionRequest::kFileContainingExtension:
        return AnswerExtension(request.file_containing_extension(), out);
      case reflection_pb::ServerReflectionRequest::kAllExtensionNumbersOfType:
        return AnswerExtensionNumbers(request.all_extension_numbers_of_type(), out);
      case reflection_pb::ServerReflectionRequest::kListServices:
        for (const std::string& name : services_) {
          out->mutable_list_services_response()->add_service()->set_name(name);
        }
        return;
      case reflection_pb::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
        return SetError(absl::StatusCode::kInvalidArgument, "the request asks for nothing", out);
    }
  }

  const std::vector<std::string>& services_;  // of the method, which outlives its calls
  const std::shared_ptr<Responder> responder_;
  bool finished_ = false;
};

}  // namespace

Method ReflectionMethod(std::vector<std::string> services) {
  const auto shared = std::make_shared<const std::vector<std::string>>(std::move(services));
  return {{MethodKind::kStream, MethodRole::kReflection},
          [shared](const CallHead&, std::shared_ptr<Responder> responder) {
            return std::make_shared<ReflectionHandler>(*shared, std::move(responder));
          }};
}

}  // namespace floe::server
