// What this process and the parser of HDF5 files say to each other. They take turns: a request, any
// number of reads of the file's bytes with their replies, and the answer. Each block begins with a
// Frame. Both are of one build, so numbers are in the machine's order.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace floe::keras::hdf5 {

inline constexpr uint32_t kProtocol = 1;  // changes with anything in this file

enum class Kind : uint32_t {
  // Requests. The body is a path, whose parts are separated by '/'.
  kOpen = 1,  // `at`: the protocol, `extent`: the file's size; no path
  kList = 2,  // `at`: the most bytes of an answer. A group's attributes and entries
  kFill = 3,  // with a file of the size of this dataset, to be filled with its elements
  // To requests. The body of an answer begins with a byte, the code of a status: OK and what was
  // asked for, or a message.
  kRead = 4,  // `at`, `extent`: bytes of the HDF5 file, which come without a frame
  kAnswer = 5,
};

struct Frame {
  Kind kind;
  uint32_t size = 0;  // of the body that follows
  uint64_t at = 0, extent = 0;
};
static_assert(sizeof(Frame) == 24);

// A group's list:
//   number of attributes, and for each: its name, the number of its strings or kRefused; these, or
//   why they are refused
//   number of entries, and for each: its name, EntryKind, and
//     for a dataset: dtype, rank, dims, Layout, offset, bytes stored, bytes of two chunks
//     for what is refused: why
// Names and strings are a size and bytes.
inline constexpr uint32_t kRefused = UINT32_MAX;
enum class EntryKind : uint8_t { kGroup = 1, kDataset = 2, kRefused = 3 };
enum class Layout : uint8_t {
  kPlain = 1,    // the elements lie in the file at `offset`, as they are
  kWhole = 2,    // they lie there, in another form
  kChunked = 3,  // in chunks, which may be compressed
};
inline constexpr uint32_t kMaxRank = 32;

class Writer {
 public:
  template <typename T>
  void Add(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void AddText(std::string_view text) {
    Add(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  // Puts a number where one was added before.
  void Set(size_t at, uint32_t value) { std::memcpy(bytes_.data() + at, &value, sizeof(value)); }
  void Cut(size_t size) { bytes_.resize(size); }
  size_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what a stranger wrote. After something that is not there all else is 0 and empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::string_view at = Bytes(sizeof(T));
    if (ok_) std::memcpy(&value, at.data(), sizeof(T));
    return value;
  }
  std::string_view Text() { return Bytes(Take<uint32_t>()); }
  std::string_view Rest() { return Bytes(bytes_.size()); }
  size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  std::string_view Bytes(size_t size) {
    ok_ = ok_ && size <= bytes_.size();
    if (!ok_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace floe::keras::hdf5
