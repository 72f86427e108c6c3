// Lookup tables: the objects behind the handles of HashTable and its relatives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/handle.h"
#include "model/tensor.h"

namespace floe {

enum class TableKind : uint8_t {
  kFilledOnce,  // TensorFlow's HashTable: a key keeps its first value
  kMutable,     // MutableHashTable: the last value of a key counts
};

// Keys with a value each. Filled while a model is loaded (runtime/passes/load_tables.cc) and
// constant from then on.
// Threading: one thread fills it; afterwards any thread reads.
class TableObject final : public Object {
 public:
  // INVALID_ARGUMENT unless keys are int32, int64 or strings and values numbers, bools or strings.
  static absl::StatusOr<std::shared_ptr<TableObject>> Create(TableKind kind, DType key_dtype,
                                                             DType value_dtype,
                                                             const Shape& value_shape);

  TableKind kind() const { return kind_; }
  DType key_dtype() const { return key_dtype_; }
  DType value_dtype() const { return value_dtype_; }
  const Shape& value_shape() const { return value_shape_; }
  int64_t size() const;
  size_t bytes() const { return bytes_; }  // an estimate of all it holds
  // "string -> int64", for messages.
  std::string TypeText() const;

  // Adds entries: values has the shape of keys followed by value_shape. INVALID_ARGUMENT for other
  // dtypes or shapes; FAILED_PRECONDITION when a kFilledOnce table has a key with another value;
  // RESOURCE_EXHAUSTED past kMaxBytes.
  absl::Status Insert(const TensorView& keys, const TensorView& values);

  // Writes the value of every key to `out`, or, where there is none, `fallback`: one value for all
  // of them, or one for each key. INVALID_ARGUMENT when dtypes or shapes are not those of the
  // table.
  absl::Status Find(const TensorView& keys, const TensorView& fallback,
                    const TensorView& out) const;
  // The same for a vector of keys, of a table of strings.
  absl::Status Find(absl::Span<const absl::string_view> keys, const TensorView& fallback,
                    const TensorView& out) const;

  // The same keys with the same values.
  bool SameEntries(const TableObject& other) const;

  static constexpr size_t kMaxBytes = size_t{4} << 30;

 private:
  // Key -> place of its value. int32 keys are kept as int64.
  using Integers = absl::flat_hash_map<int64_t, int64_t>;
  using Strings = absl::flat_hash_map<std::string, int64_t>;

  TableObject(TableKind kind, DType key_dtype, DType value_dtype, const Shape& value_shape);

  absl::Status CheckDTypes(DType keys, DType values) const;
  // The place of key i, or -1.
  int64_t PlaceOf(const TensorView& keys, int64_t i) const;
  int64_t PlaceOf(absl::string_view key) const;
  // Find for keys of this shape; place_of(i) says where key i is.
  template <class PlaceOfKey>
  absl::Status Copy(const Shape& keys, const PlaceOfKey& place_of, const TensorView& fallback,
                    const TensorView& out) const;
  // The same after adding it with the next free place; true when it is new.
  bool AddPlace(const TensorView& keys, int64_t i, int64_t* place);
  // Value i of `values`, against or into the value at `place`.
  bool SameValue(int64_t place, const TensorView& values, int64_t i) const;
  void Write(int64_t place, const TensorView& values, int64_t i);
  // All values, by place.
  TensorView Values() const;

  const TableKind kind_;
  const DType key_dtype_, value_dtype_;
  const Shape value_shape_;
  const int64_t width_;  // elements of one value
  std::variant<Integers, Strings> places_;
  std::vector<std::string> strings_;  // the values of a table of strings ...
  std::vector<char> numbers_;         // ... or of another one
  size_t bytes_ = 0;
};

// The table that a handle leads to; null when it is no scalar handle of a table.
const TableObject* TableOf(const TensorView& handle);

// Bytes that a constant holds, those of a table behind it too.
size_t HeldBytes(const Tensor& constant);

}  // namespace floe
