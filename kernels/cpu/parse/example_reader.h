// tf.train.Example read from its bytes: where the list of each feature lies, and what it holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/dtype.h"

namespace floe::kernels {

// The values of one feature, as bytes of a BytesList, FloatList or Int64List.
struct FeatureList {
  DType dtype = DType::kInvalid;  // string, float32 or int64; kInvalid: no values are given at all
  int64_t count = 0;
  std::string_view bytes;
};

// Calls found(key, bytes of the Feature) for every feature in order; a key may come again, and then
// the last counts. False: the bytes are no Example.
template <class F>
bool ForEachFeature(std::string_view example, const F& found);

// Finds the list of a Feature and counts its values; false when it is none.
bool ReadFeature(std::string_view feature, FeatureList* list);

// Writes the `count` values of a list that ReadFeature has counted.
void WriteFloats(const FeatureList& list, float* to);
void WriteInts(const FeatureList& list, int64_t* to);
void WriteStrings(const FeatureList& list, std::string* to);

// ---- inside ----

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kFixed32 = 5 };

// The fields of a protobuf message in turn. Any bytes may be given.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}
  bool Done() const { return left_.empty(); }
  // The next field and the bytes of its value: of a length-delimited one without the length, of a
  // group nothing. False: the bytes are no message.
  bool Next(uint32_t* field, Wire* type, std::string_view* value);

 private:
  bool Varint(uint64_t* value);
  bool Take(uint64_t size, std::string_view* value);
  bool SkipGroup(uint32_t field);

  std::string_view left_;
};

// Calls each(value) for the length-delimited fields `wanted` of a message; others are skipped.
template <class F>
bool ForEachPart(std::string_view message, uint32_t wanted, const F& each) {
  FieldReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    Wire type;
    std::string_view value;
    if (!reader.Next(&field, &type, &value)) return false;
    if (field == wanted && type == Wire::kBytes && !each(value)) return false;
  }
  return true;
}

template <class F>
bool ForEachFeature(std::string_view example, const F& found) {
  return ForEachPart(example, 1, [&found](std::string_view features) {
    return ForEachPart(features, 1, [&found](std::string_view entry) {
      std::string_view key, feature;
      const bool read = ForEachPart(entry, 1,
                                    [&key](std::string_view value) {
                                      key = value;
                                      return true;
                                    }) &&
                        ForEachPart(entry, 2, [&feature](std::string_view value) {
                          feature = value;
                          return true;
                        });
      if (read) found(key, feature);
      return read;
    });
  });
}

}  // namespace floe::kernels
