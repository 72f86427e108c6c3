// Finds the parts of a ModelInferRequest in its bytes.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/wire_reader.h"
#include "server/request/decode_infer.h"
#include "server/request/input_reader.h"
#include "server/request/kserve_types.h"
#include "server/request/request.h"

namespace floe::server {
namespace {

constexpr std::chrono::microseconds kLongestTimeout = std::chrono::hours(24 * 365);

// An InferParameter with its key.
struct Parameter {
  enum Kind : uint32_t { kNone = 0, kBool = 1, kInt64 = 2, kString = 3, kDouble = 4, kUInt64 = 5 };
  std::string_view key;
  uint32_t kind = kNone;  // the number of its field
  uint64_t number = 0;
  std::string_view text;
};

WireType TypeOfKind(uint32_t kind) {
  if (kind == Parameter::kString) return WireType::kBytes;
  return kind == Parameter::kDouble ? WireType::kFixed64 : WireType::kVarint;
}

bool ParseValue(std::string_view message, Parameter* out) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > Parameter::kUInt64 || type != TypeOfKind(field)) {
      if (!reader.Skip()) return false;
      continue;
    }
    const bool read = type == WireType::kVarint  ? reader.ReadVarint(&out->number)
                      : type == WireType::kBytes ? reader.ReadBytes(&out->text)
                                                 : reader.Skip();
    if (!read) return false;
    out->kind = field;
  }
  return true;
}

bool ParseParameter(std::string_view message, Parameter* out) {
  return ForEachBytesField(message, 2, [out](uint32_t field, std::string_view part) {
    if (field == 2) return ParseValue(part, out);
    out->key = part;
    return true;
  });
}

// A number that is not negative.
absl::StatusOr<int64_t> NumberOf(const Parameter& parameter, const char* expected) {
  const bool whole = parameter.kind == Parameter::kInt64 || parameter.kind == Parameter::kUInt64;
  if (whole && parameter.number <= INT64_MAX) return static_cast<int64_t>(parameter.number);
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", Quoted(parameter.key), ": expected ", expected));
}

// Parameters of other names are for other servers.
absl::Status TakeParameter(const Parameter& parameter, InferFields* fields, InferWishes* wishes) {
  if (parameter.key == "priority") {
    FLOE_ASSIGN_OR_RETURN(const int64_t priority,
                          NumberOf(parameter, "a number, 1 (first) to 3 (last), or 0"));
    wishes->priority.reset();
    if (priority > 0) wishes->priority = static_cast<int>(std::min<int64_t>(priority, kPriorities));
  } else if (parameter.key == "timeout") {
    FLOE_ASSIGN_OR_RETURN(const int64_t timeout,
                          NumberOf(parameter, "a number of microseconds, or 0"));
    wishes->timeout = std::min(std::chrono::microseconds(timeout), kLongestTimeout);
  } else if (parameter.key == "signature_name") {
    if (parameter.kind != Parameter::kString)
      return absl::InvalidArgumentError("parameter 'signature_name': expected a string");
    fields->signature = parameter.text;
  }
  return absl::OkStatus();
}

void AddDim(uint64_t dim, InferFields::Input* input) {
  input->shape_too_long |= input->shape.rank() >= kMostInferDims;
  if (!input->shape_too_long) input->shape.push_back(static_cast<int64_t>(dim));
}

bool ParseDims(std::string_view packed, InferFields::Input* input) {
  WireReader reader(packed);
  uint64_t dim;
  while (!reader.Done()) {
    if (!reader.ReadVarint(&dim)) return false;
    AddDim(dim, input);
  }
  return true;
}

bool ParseContents(std::string_view message, InferFields::Input* input) {
  input->contents.messages.push_back(message);
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view piece;
    if (!reader.ReadTag(&field, &type)) return false;
    const ListKind kind = ContentsListAt(field).kind;
    if (kind != ListKind::kNone && IsPieceOf(kind, type)) {
      if (!reader.ReadValue(type, &piece) || !AddPiece(field, kind, piece, &input->contents))
        return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  return true;
}

bool IsSharedMemory(std::string_view message) {
  Parameter parameter;
  return ParseParameter(message, &parameter) && parameter.key.starts_with("shared_memory_");
}

bool ParseInferInput(std::string_view message, InferFields::Input* input) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    uint64_t dim;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field == 3 && type == WireType::kVarint) {
      if (!reader.ReadVarint(&dim)) return false;
      AddDim(dim, input);
      continue;
    }
    if (field > 5 || type != WireType::kBytes) {
      if (!reader.Skip()) return false;
      continue;
    }
    if (!reader.ReadBytes(&part)) return false;
    if (field == 1) input->name = part;
    if (field == 2) input->datatype = part;
    if (field == 3 && !ParseDims(part, input)) return false;
    if (field == 4) input->shared_memory |= IsSharedMemory(part);
    if (field == 5 && !ParseContents(part, input)) return false;
  }
  return true;
}

// Of a requested output, which may have parameters. Its name, or why it cannot be given.
absl::Status TakeOutput(std::string_view message, InferFields* fields, bool* valid) {
  std::string_view& name = fields->outputs.emplace_back();
  absl::Status status;
  *valid = ForEachBytesField(message, 2, [&](uint32_t field, std::string_view part) {
    if (field == 1) {
      name = part;
      return true;
    }
    Parameter parameter;
    if (!ParseParameter(part, &parameter)) return false;
    const bool wanted = parameter.kind != Parameter::kBool || parameter.number != 0;
    if (parameter.key == "classification" || parameter.key.starts_with("shared_memory_"))
      if (wanted)
        status = absl::InvalidArgumentError(
            absl::StrCat("output ", Quoted(name), ": parameter ", Quoted(parameter.key),
                         " is not offered; take the whole tensor of the reply"));
    return true;
  });
  return status;
}

}  // namespace

absl::Status ReadInferFields(std::string_view message, InferFields* fields, InferWishes* wishes) {
  if (message.size() > INT32_MAX)
    return absl::InvalidArgumentError("the request is larger than 2 GiB");
  absl::Status status;
  const bool valid = ForEachBytesField(message, 7, [&](uint32_t field, std::string_view part) {
    bool good = true;
    Parameter parameter;
    switch (field) {
      case 1:
        fields->model = part;
        break;
      case 2:
        fields->version = part;
        break;
      case 3:
        wishes->id = part;
        break;
      case 4:
        good = ParseParameter(part, &parameter);
        if (good) status = TakeParameter(parameter, fields, wishes);
        break;
      case 5:
        good = ParseInferInput(part, &fields->inputs.emplace_back());
        break;
      case 6:
        status = TakeOutput(part, fields, &good);
        break;
      default:
        fields->raw.push_back(part);
    }
    if (status.ok() &&
        fields->inputs.size() + fields->outputs.size() + fields->raw.size() > kMaxNames)
      status = absl::InvalidArgumentError(
          absl::StrCat("the request names more than ", kMaxNames, " inputs and outputs"));
    return good && status.ok();
  });
  FLOE_RETURN_IF_ERROR(status);
  if (!valid)
    return absl::InvalidArgumentError("the request is not a valid inference.ModelInferRequest");
  return absl::OkStatus();
}

}  // namespace floe::server
