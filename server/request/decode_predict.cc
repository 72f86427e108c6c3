// Where the parts of a PredictRequest lie in its bytes. Nothing is copied or unfolded.
#include "server/request/decode_predict.h"

#include "absl/strings/str_cat.h"
#include "base/wire_reader.h"

namespace floe::server {
namespace {

constexpr size_t kMaxNames = 4096;  // of inputs and outputs in a request

// Version and label are one of a oneof: the later one counts.
bool ParseModelSpec(std::string_view message, ParsedRequest* out) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > 4 || type != WireType::kBytes) {
      if (!reader.Skip()) return false;
      continue;
    }
    if (!reader.ReadBytes(&part)) return false;
    switch (field) {
      case 1:
        out->model = part;
        break;
      case 2:
        out->version_label = {};
        if (!out->version) out->version = 0;
        if (!ReadNumber(part, 1, &*out->version)) return false;
        break;
      case 3:
        out->signature = part;
        break;
      default:
        out->version.reset();
        out->version_label = part;
        break;
    }
  }
  return true;
}

// An entry of the map of inputs.
bool ParseInput(std::string_view message, ParsedRequest* out) {
  WireReader reader(message);
  ParsedInput& input = out->inputs.emplace_back();
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > 2 || type != WireType::kBytes) {
      if (!reader.Skip()) return false;
      continue;
    }
    if (!reader.ReadBytes(&part)) return false;
    if (field == 1) {
      input.key = part;
    } else if (!ParseTensor(part, &input.tensor)) {
      return false;
    }
  }
  return true;
}

bool ParseField(uint32_t field, WireType type, WireReader& reader, ParsedRequest* out) {
  if (field > 3 || type != WireType::kBytes) return reader.Skip();
  std::string_view part;
  if (!reader.ReadBytes(&part)) return false;
  if (field == 1) return ParseModelSpec(part, out);
  if (field == 2) return ParseInput(part, out);
  out->output_filter.push_back(part);
  return true;
}

}  // namespace

absl::Status DecodePredict(std::string_view message, ParsedRequest* request) {
  if (message.size() > INT32_MAX)
    return absl::InvalidArgumentError("the request is larger than 2 GiB");
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    if (!reader.ReadTag(&field, &type) || !ParseField(field, type, reader, request))
      return absl::InvalidArgumentError(
          "the request is not a valid tensorflow.serving.PredictRequest");
    if (request->inputs.size() + request->output_filter.size() > kMaxNames)
      return absl::InvalidArgumentError(
          absl::StrCat("the request names more than ", kMaxNames, " inputs and outputs"));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
