// A walk over a message by its descriptor.
#include "server/api/rest/proto_json.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "server/api/rest/json_text.h"

namespace floe::server {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

// JSON has no words for what is not finite.
void AppendFinite(double value, std::string* out) {
  if (!std::isfinite(value)) return out->append("null"), void();
  char text[32];
  out->append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void AppendText(const FieldDescriptor& field, const std::string& text, std::string* out) {
  AppendJsonString(field.type() == FieldDescriptor::TYPE_BYTES ? absl::Base64Escape(text) : text,
                   out);
}

// Element `index` of a repeated field; -1: the field itself.
void AppendValue(const ProtoMessage& message, const FieldDescriptor& field, int index,
                 std::string* out) {
  const Reflection& in = *message.GetReflection();
  const auto of = [&](auto get, auto get_repeated) {
    return index < 0 ? (in.*get)(message, &field) : (in.*get_repeated)(message, &field, index);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrAppend(out, of(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrAppend(out, of(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrAppend(out, of(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrAppend(out, of(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return AppendFinite(of(&Reflection::GetFloat, &Reflection::GetRepeatedFloat), out);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return AppendFinite(of(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), out);
    case FieldDescriptor::CPPTYPE_BOOL:
      return absl::StrAppend(
          out, of(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false");
    case FieldDescriptor::CPPTYPE_ENUM:
      return AppendJsonString(of(&Reflection::GetEnum, &Reflection::GetRepeatedEnum)->name(), out);
    case FieldDescriptor::CPPTYPE_STRING:
      return AppendText(field, of(&Reflection::GetString, &Reflection::GetRepeatedString), out);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return AppendProtoJson(index < 0 ? in.GetMessage(message, &field)
                                       : in.GetRepeatedMessage(message, &field, index),
                             out);
  }
}

// An entry of a map is a message of a key and a value.
void AppendEntry(const ProtoMessage& entry, std::string* out) {
  const google::protobuf::Descriptor& type = *entry.GetDescriptor();
  const FieldDescriptor& key = *type.FindFieldByNumber(1);
  const bool quoted = key.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (!quoted) out->push_back('"');
  AppendValue(entry, key, -1, out);
  out->append(quoted ? ":" : "\":");
  AppendValue(entry, *type.FindFieldByNumber(2), -1, out);
}

void AppendRepeated(const ProtoMessage& message, const FieldDescriptor& field, std::string* out) {
  const Reflection& in = *message.GetReflection();
  out->push_back(field.is_map() ? '{' : '[');
  for (int i = 0; i < in.FieldSize(message, &field); ++i) {
    if (i > 0) out->push_back(',');
    if (field.is_map())
      AppendEntry(in.GetRepeatedMessage(message, &field, i), out);
    else
      AppendValue(message, field, i, out);
  }
  out->push_back(field.is_map() ? '}' : ']');
}

bool IsWritten(const ProtoMessage& message, const FieldDescriptor& field) {
  const Reflection& in = *message.GetReflection();
  if (field.is_map()) return in.FieldSize(message, &field) > 0;
  return field.is_repeated() || !field.has_presence() || in.HasField(message, &field);
}

}  // namespace

void AppendProtoJson(const ProtoMessage& message, std::string* out) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  bool first = true;
  out->push_back('{');
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!IsWritten(message, field)) continue;
    if (!std::exchange(first, false)) out->push_back(',');
    AppendJsonString(field.name(), out);
    out->push_back(':');
    if (field.is_repeated())
      AppendRepeated(message, field, out);
    else
      AppendValue(message, field, -1, out);
  }
  out->push_back('}');
}

}  // namespace floe::server
