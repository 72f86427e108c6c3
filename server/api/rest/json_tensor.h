// JsonTensor: a tensor whose values stand in JSON, as lists in lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "model/shape.h"
#include "model/tensor.h"
#include "server/api/rest/json_body.h"
#include "server/request/inference.h"

namespace floe::server {

// Reads values straight into the tensor's memory, which grows as they come and which `storage` is
// charged for. All lists of one depth have the same length. Errors are INVALID_ARGUMENT and name
// the value's path, or RESOURCE_EXHAUSTED. One class: the lists, their values and the memory grow
// together.
class JsonTensor {
 public:
  static constexpr size_t kMostDims = 32;

  // HasJson(dtype). `body` and `storage` outlive it.
  JsonTensor(DType dtype, JsonBody* body, InputStorage* storage);

  // Either: the whole tensor.
  absl::Status Read(JsonValue value, JsonPath* path) { return ReadValue(value, 0, path); }
  // Or: its rows, one after another.
  void BeginRows() { dims_.push_back(0); }
  absl::Status ReadRow(JsonValue value, JsonPath* path);
  int64_t rows() const { return dims_[0]; }

  // Lists without elements do not show how many dims follow: `taken`, of the signature, does.
  // `storage` keeps the values.
  void Finish(const SymShape& taken, TensorView* view);

  int64_t bytes() const { return charged_; }
  int64_t elements() const { return size_; }
  const Shape::Dims& dims() const { return dims_; }

  // The bytes that {"b64": "..."} stands for, into `out`.
  static absl::Status ReadBase64(JsonValue value, JsonBody* body, JsonPath* path, std::string* out);
  // The text of a JSON string that stands for bytes, in base64, into `out`.
  static absl::Status FromBase64(std::string_view text, const JsonPath& path, std::string* out);

 private:
  static constexpr int64_t kOpen = -1;  // a dim whose first list has not ended

  absl::Status ReadValue(JsonValue value, size_t depth, JsonPath* path);
  absl::Status ReadList(JsonValue value, size_t depth, JsonPath* path);
  template <typename T>
  absl::Status ReadNumbers(simdjson::ondemand::array array, JsonPath* path, int64_t* count);
  absl::Status ReadOne(JsonValue value, JsonPath* path);
  absl::Status ReadString(JsonValue value, JsonPath* path);
  absl::Status CloseDim(size_t depth, int64_t count, const JsonPath& path);
  absl::Status Grow();
  absl::Status Charge(int64_t bytes);
  static absl::Status Misplaced(JsonValue value, const std::string& belongs, const JsonPath& path);
  absl::Status WrongNumber(JsonValue value, const JsonPath& path) const;

  const DType dtype_;
  const size_t element_bytes_;
  JsonBody& body_;
  InputStorage& storage_;
  Shape::Dims dims_;
  int rank_ = -1;  // -1: no value has come
  int64_t size_ = 0, capacity_ = 0;
  int64_t charged_ = 0, unpaid_ = 0;
  std::unique_ptr<std::byte[]> numbers_;
  std::unique_ptr<std::string[]> strings_;
};

// Rounded once; NaN, Infinity and -Infinity, too. False: it is no number, or out of range.
bool ReadJsonFloat(JsonValue value, float* out);

}  // namespace floe::server
