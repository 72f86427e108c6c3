#include "server/request/model_spec.h"

namespace floe::server {
namespace {

// Field numbers of ModelSpec, and of Int64Value in it.
constexpr uint32_t kSpecName = 1, kSpecVersion = 2, kSpecSignature = 3, kSpecLabel = 4;
constexpr uint32_t kWrappedValue = 1;

size_t VersionSize(const ReplySpec& spec) {
  return NumberFieldSize(kWrappedValue, static_cast<uint64_t>(spec.version.value_or(0)));
}

size_t SpecSize(const ReplySpec& spec) {
  return BytesFieldSize(kSpecName, spec.model.size()) +
         (spec.version.has_value() ? BytesFieldSize(kSpecVersion, VersionSize(spec)) : 0) +
         BytesFieldSize(kSpecSignature, spec.signature.size());
}

}  // namespace

// Version and label are one of a oneof: the later one counts.
bool ReadModelSpec(std::string_view message, ModelSpec* model, std::string_view* signature) {
  return ForEachBytesField(message, kSpecLabel, [=](uint32_t field, std::string_view part) {
    switch (field) {
      case kSpecName:
        model->name = part;
        return true;
      case kSpecVersion:
        model->label = {};
        if (!model->version) model->version = 0;
        return ReadNumber(part, kWrappedValue, &*model->version);
      case kSpecSignature:
        *signature = part;
        return true;
      default:
        model->version.reset();
        model->label = part;
        return true;
    }
  });
}

ReplySpec ReplySpecOf(const Inference& asked) {
  const ModelInfo& info = asked.model->info();
  return {info.name, info.version, asked.signature->def().name};
}

size_t SpecFieldSize(uint32_t field, const ReplySpec& spec) {
  return BytesFieldSize(field, SpecSize(spec));
}

void WriteSpecField(uint32_t field, const ReplySpec& spec, CodedOutputStream& out) {
  BeginBytes(field, SpecSize(spec), out);
  WriteBytes(kSpecName, spec.model, out);
  if (spec.version.has_value()) {
    BeginBytes(kSpecVersion, VersionSize(spec), out);
    WriteNumber(kWrappedValue, static_cast<uint64_t>(*spec.version), out);
  }
  WriteBytes(kSpecSignature, spec.signature, out);
}

}  // namespace floe::server
