// Numbers of the file layout that model/form/form.h describes. Used by its reader and writer only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace floe::form {

inline constexpr unsigned char kMagic[8] = {0x8b, 'F', 'L', 'O', 'E', '\r', '\n', 0x1a};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kByteOrder = 0x01020304;
inline constexpr uint32_t kNone = 0xffffffff;  // no tensor; a shape of unknown rank
inline constexpr size_t kSectionAlignment = 8;
inline constexpr size_t kWeightsAlignment = 4096;  // a page: the section can be mapped by itself
inline constexpr int kMaxRank = 254;               // as in TensorFlow

enum class SectionKind : uint32_t {
  kTensors = 1,
  kGraphs = 2,
  kSignatures = 3,
  kPreparation = 4,
  kWeights = 5,
};
inline constexpr int kSections = 5;

struct Header {
  unsigned char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t file_bytes;
  uint32_t sections;
  uint32_t crc;  // of header and table with this field zero
  uint64_t zero[4];
};
static_assert(sizeof(Header) == 64);

struct Section {
  uint32_t kind;
  uint32_t crc;
  uint64_t offset;
  uint64_t bytes;
  uint64_t items;
};
static_assert(sizeof(Section) == 32);

inline constexpr size_t kTableEnd = sizeof(Header) + kSections * sizeof(Section);

// Which alternative of AttrValue a stored attribute is.
enum class AttrKind : uint32_t {
  kInt = 1,
  kFloat = 2,
  kBool = 3,
  kString = 4,
  kType = 5,
  kShape = 6,
  kTensor = 7,
  kFunction = 8,
  kInts = 9,
  kFloats = 10,
  kBools = 11,
  kStrings = 12,
  kTypes = 13,
  kShapes = 14,
  kFunctions = 15,
};

}  // namespace floe::form
