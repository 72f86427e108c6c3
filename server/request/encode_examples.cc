// Sizes first, then bytes, without protobuf's classes: an object for each class would take many
// times the bytes of the reply.
#include "server/request/encode_examples.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <bit>
#include <vector>

#include "base/status.h"
#include "server/request/model_spec.h"
#include "server/request/wire_writer.h"

namespace floe::server {
namespace {

using google::protobuf::io::ArrayOutputStream;

// Field numbers of the results.
constexpr uint32_t kRow = 1, kClass = 1, kLabel = 1, kScore = 2, kValue = 1;

// Where the two parts of a reply are.
struct ReplyFields {
  uint32_t spec, result;
};

ReplyFields FieldsOf(ExampleMethod method, bool as_task) {
  if (!as_task) return {2, 1};
  return {1, method == ExampleMethod::kClassify ? 2u : 3u};
}

// proto3 leaves a zero out, but not a negative one.
size_t FloatFieldSize(uint32_t field, float value) {
  return std::bit_cast<uint32_t>(value) == 0 ? 0 : TagSize(field) + sizeof value;
}

void WriteFloat(uint32_t field, float value, CodedOutputStream& out) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (bits == 0) return;
  WriteTag(field, WireType::kFixed32, out);
  out.WriteLittleEndian32(bits);
}

size_t TextFieldSize(uint32_t field, std::string_view text) {
  return text.empty() ? 0 : BytesFieldSize(field, text.size());
}

size_t ClassSize(std::string_view label, float score) {
  return TextFieldSize(kLabel, label) + FloatFieldSize(kScore, score);
}

size_t RowSize(const ClassifyOutputs& out, int64_t row) {
  size_t size = 0;
  for (int64_t i = 0; i < out.classes; ++i)
    size += BytesFieldSize(kClass, ClassSize(out.Label(row, i), out.Score(row, i)));
  return size;
}

size_t RowSize(const RegressOutputs& out, int64_t row) {
  return FloatFieldSize(kValue, out.Value(row));
}

void WriteRow(const ClassifyOutputs& from, int64_t row, CodedOutputStream& out) {
  for (int64_t i = 0; i < from.classes; ++i) {
    const std::string_view label = from.Label(row, i);
    const float score = from.Score(row, i);
    BeginBytes(kClass, ClassSize(label, score), out);
    if (!label.empty()) WriteBytes(kLabel, label, out);
    WriteFloat(kScore, score, out);
  }
}

void WriteRow(const RegressOutputs& from, int64_t row, CodedOutputStream& out) {
  WriteFloat(kValue, from.Value(row), out);
}

template <typename Read>
absl::Status WriteReply(const Inference& asked, const Read& read, const ReplyFields& fields,
                        std::string* reply) {
  std::vector<size_t> rows(static_cast<size_t>(read.rows));
  size_t result = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    rows[row] = RowSize(read, static_cast<int64_t>(row));
    result += BytesFieldSize(kRow, rows[row]);
  }
  const ReplySpec spec = ReplySpecOf(asked);
  const size_t total = BytesFieldSize(fields.result, result) + SpecFieldSize(fields.spec, spec);
  FLOE_RETURN_IF_ERROR(CheckReplySize(total));
  reply->resize(total);
  ArrayOutputStream bytes(reply->data(), static_cast<int>(total));
  CodedOutputStream out(&bytes);
  WriteSpecField(fields.spec, spec, out);
  BeginBytes(fields.result, result, out);
  for (size_t row = 0; row < rows.size(); ++row) {
    BeginBytes(kRow, rows[row], out);
    WriteRow(read, static_cast<int64_t>(row), out);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EncodeExamples(const Inference& asked, Outputs outputs, ExampleMethod method,
                            bool as_task, std::string* reply) {
  const ReplyFields fields = FieldsOf(method, as_task);
  if (method == ExampleMethod::kRegress) {
    FLOE_ASSIGN_OR_RETURN(const RegressOutputs read, ReadRegressOutputs(asked, outputs));
    return WriteReply(asked, read, fields, reply);
  }
  FLOE_ASSIGN_OR_RETURN(const ClassifyOutputs read, ReadClassifyOutputs(asked, outputs));
  return WriteReply(asked, read, fields, reply);
}

}  // namespace floe::server
