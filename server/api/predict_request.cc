#include "server/api/predict_request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/wire_reader.h"
#include "server/api/unfolding.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {
namespace {

// Protobuf refuses proto3 strings that are not UTF-8; ASCII is all that needs no table.
bool ReadAscii(WireReader& reader, std::string_view* text) {
  if (!reader.ReadBytes(text)) return false;
  return std::all_of(text->begin(), text->end(), [](char c) { return (c & 0x80) == 0; });
}

// Fields seen so far in one message: a second occurrence would have to be merged, which is
// protobuf's business.
class SeenOnce {
 public:
  bool First(uint32_t field) {
    const uint32_t bit = uint32_t{1} << field;
    const bool first = (seen_ & bit) == 0;
    seen_ |= bit;
    return first;
  }
  bool Has(uint32_t field) const { return (seen_ >> field & 1) != 0; }

 private:
  uint32_t seen_ = 0;
};

bool WalkVersion(std::string_view bytes, std::optional<int64_t>* version) {
  WireReader reader(bytes);
  *version = 0;
  bool seen = false;
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    uint64_t value;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field != 1 || type != WireType::kVarint || seen || !reader.ReadVarint(&value)) return false;
    *version = static_cast<int64_t>(value);
    seen = true;
  }
  return true;
}

bool WalkModelSpec(std::string_view bytes, SentPredict* out) {
  WireReader reader(bytes);
  SeenOnce seen;
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > 4) {
      if (!reader.Skip(type)) return false;
      continue;
    }
    if (type != WireType::kBytes || !seen.First(field)) return false;
    std::string_view text;
    switch (field) {
      case 1:
        if (!ReadAscii(reader, &out->model)) return false;
        break;
      case 2:
        if (!reader.ReadBytes(&text) || !WalkVersion(text, &out->version)) return false;
        break;
      case 3:
        if (!ReadAscii(reader, &out->signature)) return false;
        break;
      default:
        if (!ReadAscii(reader, &out->version_label)) return false;
        break;
    }
  }
  return !(seen.Has(2) && seen.Has(4));  // one of a oneof: the later wins
}

bool WalkDim(std::string_view bytes, int64_t* size) {
  WireReader reader(bytes);
  SeenOnce seen;
  *size = 0;
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > 2) {
      if (!reader.Skip(type)) return false;
      continue;
    }
    if (!seen.First(field)) return false;
    uint64_t value;
    std::string_view name;
    if (field == 1) {
      if (type != WireType::kVarint || !reader.ReadVarint(&value)) return false;
      *size = static_cast<int64_t>(value);
    } else if (type != WireType::kBytes || !ReadAscii(reader, &name)) {
      return false;
    }
  }
  return true;
}

bool WalkShape(std::string_view bytes, Shape* shape) {
  WireReader reader(bytes);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view dim;
    int64_t size;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field != 2 || type != WireType::kBytes) return false;
    if (!reader.ReadBytes(&dim) || !WalkDim(dim, &size)) return false;
    shape->push_back(size);
  }
  return true;
}

// Whether protobuf would accept these bytes as a packed list.
bool ValidList(TensorField list, std::string_view packed) {
  switch (KindOf(list)) {
    case ListKind::kFixed32:
      return packed.size() % 4 == 0;
    case ListKind::kFixed64:
      return packed.size() % 8 == 0;
    case ListKind::kVarint:
      break;
    default:
      return false;
  }
  WireReader reader(packed);
  uint64_t value;
  while (!reader.Done()) {
    if (!reader.ReadVarint(&value)) return false;
  }
  return true;
}

bool WalkTensor(std::string_view bytes, SentTensor* out) {
  WireReader reader(bytes);
  SeenOnce seen;
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    uint64_t number;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > static_cast<uint32_t>(TensorField::kFloat8Val)) {
      if (!reader.Skip(type)) return false;
      continue;
    }
    if (!seen.First(field)) return false;
    const auto known = static_cast<TensorField>(field);
    if (known == TensorField::kDtype || known == TensorField::kVersionNumber) {
      if (type != WireType::kVarint || !reader.ReadVarint(&number)) return false;
      if (known == TensorField::kDtype) out->dtype = static_cast<int>(number);
      continue;
    }
    if (type != WireType::kBytes || !reader.ReadBytes(&part)) return false;
    if (known == TensorField::kShape) {
      if (!WalkShape(part, &out->shape)) return false;
    } else if (known == TensorField::kContent) {
      out->content = part;
    } else {
      if (out->list != TensorField::kNone || !ValidList(known, part)) return false;
      if (part.empty()) continue;
      out->list = known;
      out->packed = part;
    }
  }
  return true;
}

bool WalkInput(std::string_view bytes, SentPredict* out) {
  WireReader reader(bytes);
  SentInput& input = out->inputs.emplace_back();
  SeenOnce seen;
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view tensor;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > 2 || type != WireType::kBytes || !seen.First(field)) return false;
    if (field == 1) {
      if (!ReadAscii(reader, &input.key)) return false;
    } else if (!reader.ReadBytes(&tensor) || !WalkTensor(tensor, &input.tensor)) {
      return false;
    }
  }
  if (!seen.Has(1) || !seen.Has(2)) return false;
  // A key that comes again replaces the first; more inputs than this are no model's.
  constexpr size_t kMaxCompared = 64;
  if (out->inputs.size() > kMaxCompared) return false;
  for (size_t i = 0; i + 1 < out->inputs.size(); ++i) {
    if (out->inputs[i].key == input.key) return false;
  }
  return true;
}

// Of inputs and outputs in a request: more than any model has. As messages of protobuf they would
// take a hundred times their bytes.
constexpr size_t kMaxNames = 4096;

bool HasTooManyNames(std::string_view bytes) {
  WireReader reader(bytes);
  size_t names = 0;
  while (!reader.Done() && names <= kMaxNames) {
    uint32_t field;
    WireType type;
    if (!reader.ReadTag(&field, &type) || !reader.Skip(type)) return false;
    names += field == 2 || field == 3;
  }
  return names > kMaxNames;
}

// Parts that are looked at byte by byte, of all inputs together, and fields of a tensor, of which
// there are as many as the message says only where they repeat.
constexpr size_t kQuickBytes = size_t{256} << 10;
constexpr int kQuickFields = 32;

bool IsQuickTensor(std::string_view bytes, size_t* looked_at) {
  WireReader reader(bytes);
  bool is_bool = false;
  size_t content = 0;
  for (int fields = 0; !reader.Done(); ++fields) {
    uint32_t field;
    WireType type;
    uint64_t number;
    std::string_view part;
    if (fields == kQuickFields) return false;
    if (!reader.ReadTag(&field, &type)) return true;
    if (type == WireType::kVarint) {
      if (!reader.ReadVarint(&number)) return true;
      is_bool |= field == static_cast<uint32_t>(TensorField::kDtype) &&
                 number == static_cast<uint64_t>(tensorflow::DT_BOOL);
      continue;
    }
    if (type != WireType::kBytes) return false;  // a list that is not packed
    if (!reader.ReadBytes(&part)) return true;
    const auto known = static_cast<TensorField>(std::min<uint32_t>(field, UINT8_MAX));
    if (known == TensorField::kStringVal) return false;
    if (known == TensorField::kContent) {
      content = part.size();
    } else if (KindOf(known) != ListKind::kFixed32 && KindOf(known) != ListKind::kFixed64) {
      *looked_at += part.size();
    }
  }
  if (is_bool) *looked_at += content;  // of which every byte is 0 or 1
  return *looked_at <= kQuickBytes;
}

// The list that holds values, for a message that protobuf read.
void FindList(const tensorflow::TensorProto& proto, SentTensor* out) {
  const auto note = [out](TensorField list, bool has_values) {
    if (!has_values) return;
    if (out->list != TensorField::kNone) out->several_lists = true;
    out->list = list;
  };
  note(TensorField::kFloatVal, proto.float_val_size() != 0);
  note(TensorField::kDoubleVal, proto.double_val_size() != 0);
  note(TensorField::kIntVal, proto.int_val_size() != 0);
  note(TensorField::kStringVal, proto.string_val_size() != 0);
  note(TensorField::kScomplexVal, proto.scomplex_val_size() != 0);
  note(TensorField::kInt64Val, proto.int64_val_size() != 0);
  note(TensorField::kBoolVal, proto.bool_val_size() != 0);
  note(TensorField::kDcomplexVal, proto.dcomplex_val_size() != 0);
  note(TensorField::kHalfVal, proto.half_val_size() != 0);
  note(TensorField::kResourceHandleVal, proto.resource_handle_val_size() != 0);
  note(TensorField::kVariantVal, proto.variant_val_size() != 0);
  note(TensorField::kUint32Val, proto.uint32_val_size() != 0);
  note(TensorField::kUint64Val, proto.uint64_val_size() != 0);
  note(TensorField::kFloat8Val, !proto.float8_val().empty());
}

SentTensor FromProto(const tensorflow::TensorProto& proto) {
  SentTensor out;
  out.dtype = proto.dtype();
  for (const auto& dim : proto.tensor_shape().dim()) out.shape.push_back(dim.size());
  out.unknown_rank = proto.tensor_shape().unknown_rank();
  out.content = proto.tensor_content();
  out.proto = &proto;
  FindList(proto, &out);
  return out;
}

}  // namespace

bool WalkPredictRequest(std::string_view bytes, SentPredict* out) {
  WireReader reader(bytes);
  bool has_spec = false;
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    if (!reader.ReadTag(&field, &type) || type != WireType::kBytes) return false;
    switch (field) {
      case 1:
        if (has_spec || !reader.ReadBytes(&part) || !WalkModelSpec(part, out)) return false;
        has_spec = true;
        break;
      case 2:
        if (!reader.ReadBytes(&part) || !WalkInput(part, out)) return false;
        break;
      case 3:
        if (out->output_filter.size() == kMaxNames || !ReadAscii(reader, &part)) return false;
        out->output_filter.push_back(part);
        break;
      default:
        return false;  // options of newer clients
    }
  }
  return true;
}

bool IsQuickToWalk(std::string_view bytes) {
  WireReader reader(bytes);
  size_t looked_at = 0;
  for (size_t parts = 0; !reader.Done(); ++parts) {
    uint32_t field;
    WireType type;
    std::string_view part, entry;
    if (parts == kMaxNames) return false;
    if (!reader.ReadTag(&field, &type) || type != WireType::kBytes || !reader.ReadBytes(&part))
      return true;
    if (field != 2) {
      looked_at += part.size();
      continue;
    }
    WireReader input(part);
    for (int fields = 0; !input.Done() && fields <= 2; ++fields) {  // a third is unusual
      if (!input.ReadTag(&field, &type) || type != WireType::kBytes || !input.ReadBytes(&entry))
        return true;
      if (field != 2) looked_at += entry.size();
      if (field == 2 && !IsQuickTensor(entry, &looked_at)) return false;
    }
  }
  return looked_at <= kQuickBytes;
}

absl::Status ParsePredictRequest(std::string_view bytes, SentPredict* out) {
  auto proto = std::make_shared<tensorflow::serving::PredictRequest>();
  if (bytes.size() > INT32_MAX ||
      !proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        "the request is not a valid tensorflow.serving.PredictRequest");
  }
  *out = SentPredict();
  const auto& spec = proto->model_spec();
  out->model = spec.name();
  if (spec.has_version()) out->version = spec.version().value();
  out->version_label = spec.version_label();
  out->signature = spec.signature_name();
  for (const auto& [key, tensor] : proto->inputs()) out->inputs.push_back({key, FromProto(tensor)});
  for (const std::string& alias : proto->output_filter()) out->output_filter.push_back(alias);
  out->parsed_bytes = proto->SpaceUsedLong();
  out->parsed = std::move(proto);
  return absl::OkStatus();
}

absl::Status ReadPredictRequest(std::string_view bytes, int64_t max_unfolded, SentPredict* out) {
  if (WalkPredictRequest(bytes, out)) return absl::OkStatus();
  if (HasTooManyNames(bytes))
    return absl::InvalidArgumentError(
        absl::StrCat("the request names more than ", kMaxNames, " inputs and outputs"));
  FLOE_RETURN_IF_ERROR(
      CheckUnfolding(bytes, *tensorflow::serving::PredictRequest::descriptor(), max_unfolded));
  return ParsePredictRequest(bytes, out);
}

}  // namespace floe::server
