#include "model/attrs_key.h"

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

// Every part says how long it is, so that no two lists of parts give one key.
void Append(std::string* key, const std::string& text) {
  absl::StrAppend(key, text.size(), ":", text);
}
void Append(std::string* key, int64_t value) { absl::StrAppend(key, value, ","); }
void Append(std::string* key, bool value) { absl::StrAppend(key, value ? "t" : "f"); }
void Append(std::string* key, float value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void Append(std::string* key, DType value) { Append(key, static_cast<int64_t>(value)); }
void Append(std::string* key, const SymShape& value) { Append(key, value.ToString()); }
void Append(std::string* key, const FunctionName& value) { Append(key, value.name); }

void Append(std::string* key, const Epilogue& value) {
  Append(key, static_cast<int64_t>(value.activation));
  Append(key, value.alpha);
  Append(key, static_cast<int64_t>(value.bias));
  Append(key, static_cast<int64_t>(value.residual));
}

void Append(std::string* key, const Tensor& value) {
  absl::StrAppend(key, static_cast<int>(value.dtype()), value.shape().ToString());
  if (value.dtype() == DType::kString) {
    const auto* strings = static_cast<const std::string*>(value.data());
    for (int64_t i = 0; i < value.view().elements(); ++i) Append(key, strings[i]);
  } else if (value.bytes() != 0) {
    key->append(static_cast<const char*>(value.data()), value.bytes());
  }
}

template <typename T>
void Append(std::string* key, const std::vector<T>& values) {
  absl::StrAppend(key, values.size(), "[");
  for (const T& value : values) Append(key, value);
}

}  // namespace

std::string AttrsKey(const Attrs& attrs) {
  std::string key;
  for (const auto& [name, value] : attrs.values()) {
    Append(&key, name);
    absl::StrAppend(&key, value.index(), "=");
    std::visit([&](const auto& v) { Append(&key, v); }, value);
  }
  return key;
}

}  // namespace floe
