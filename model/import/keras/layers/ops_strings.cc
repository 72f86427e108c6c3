// TensorFlow's operations on strings.
#include <string>

#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue Plain(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"input"});
  if (c.class_name == "strings.strip") return b.Op("StringStrip", {x});
  const std::string encoding = TextOption(c, {"encoding"}, "");
  const char* const op = c.class_name == "strings.lower" ? "StringLower" : "StringUpper";
  return b.Op(op, {x}, {{"encoding", encoding}});
}

KValue Length(LayerContext& c) {
  const std::string unit = TextOption(c, {"unit"}, "BYTE");
  return c.b.Op("StringLength", {TensorAt(c, 0, {"input"})}, {{"unit", unit}});
}

KValue Join(LayerContext& c) {
  std::vector<ValueRef> parts;
  for (const Operand& part : OperandsAt(c, 0, {"inputs"})) parts.push_back(part.value);
  const std::string separator = TextOption(c, {"separator"}, "");
  return c.b.Op("StringJoin", parts,
                {{"N", static_cast<int64_t>(parts.size())}, {"separator", separator}});
}

KValue RegexReplace(LayerContext& c) {
  const std::string pattern = TextOption(c, {"pattern"}, ""), with = TextOption(c, {"rewrite"}, "");
  const bool all = BoolOption(c, {"replace_global"}, true);
  return c.b.Op("StaticRegexReplace", {TensorAt(c, 0, {"input"})},
                {{"pattern", pattern}, {"rewrite", with}, {"replace_global", all}});
}

KValue Substring(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"input"});
  const int64_t at = IntOption(c, {"pos"}, 0), length = IntOption(c, {"len"}, 0);
  const std::string unit = TextOption(c, {"unit"}, "BYTE");
  return b.Op("Substr", {x, Int(b, at), Int(b, length)}, {{"unit", unit}});
}

KValue Bucket(LayerContext& c) {
  const int64_t buckets = IntOption(c, {"num_buckets"}, 0);
  return c.b.Op("StringToHashBucketFast", {TensorAt(c, 0, {"input"})}, {{"num_buckets", buckets}});
}

KValue ToNumber(LayerContext& c) {
  const DType dtype = TypeOption(c, {"out_type"}).value_or(DType::kFloat32);
  return c.b.Op("StringToNumber", {TensorAt(c, 0, {"input"})}, {{"out_type", dtype}});
}

KValue AsString(LayerContext& c) {
  const int64_t precision = IntOption(c, {"precision"}, -1), width = IntOption(c, {"width"}, -1);
  const bool scientific = BoolOption(c, {"scientific"}, false),
             shortest = BoolOption(c, {"shortest"}, false);
  const std::string fill = TextOption(c, {"fill"}, "");
  return c.b.Op("AsString", {TensorAt(c, 0, {"input"})},
                {{"precision", precision},
                 {"width", width},
                 {"scientific", scientific},
                 {"shortest", shortest},
                 {"fill", fill}});
}

const OperationRegistrar kStrings[] = {
    {"", {"strings.lower", "strings.upper", "strings.strip"}, Plain},
    {"", {"strings.length"}, Length},
    {"", {"strings.join"}, Join},
    {"", {"strings.regex_replace"}, RegexReplace},
    {"", {"strings.substr"}, Substring},
    {"", {"strings.to_hash_bucket_fast"}, Bucket},
    {"", {"strings.to_number"}, ToNumber},
    {"", {"strings.as_string"}, AsString}};

}  // namespace
}  // namespace floe::keras
