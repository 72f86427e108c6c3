// Reads and writes the header and the elements of .npy files.
#include "cli/npy.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written in native byte order");

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
constexpr size_t kMaxHeaderBytes = 1 << 16;  // NumPy's own headers of plain arrays are below 200
constexpr size_t kMaxRank = 64;              // NumPy 2's limit
constexpr size_t kHeaderAlignment = 64;

struct Descr {
  const char* kind_and_size;  // without the byte order
  DType dtype;
};
constexpr Descr kDescrs[] = {
    {"f2", DType::kFloat16},   {"f4", DType::kFloat32},     {"f8", DType::kFloat64},
    {"i1", DType::kInt8},      {"i2", DType::kInt16},       {"i4", DType::kInt32},
    {"i8", DType::kInt64},     {"u1", DType::kUInt8},       {"u2", DType::kUInt16},
    {"u4", DType::kUInt32},    {"u8", DType::kUInt64},      {"b1", DType::kBool},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128}, {"V2", DType::kBFloat16},
};

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError("not a valid .npy array: " + what);
}

// The header's text: a Python dict literal of three known keys, nothing else.
class DictParser {
 public:
  explicit DictParser(const std::string& text) : text_(text) {}

  absl::Status Parse(std::string* descr, bool* fortran_order, std::vector<int64_t>* shape) {
    if (!Take('{')) return Error("'{' expected");
    unsigned seen = 0;
    while (!Take('}')) {
      FLOE_ASSIGN_OR_RETURN(const std::string key, QuotedString());
      if (!Take(':')) return Error("':' expected after '" + key + "'");
      FLOE_ASSIGN_OR_RETURN(const unsigned bit, Value(key, descr, fortran_order, shape));
      if ((seen & bit) != 0) return Error("key '" + key + "' is given twice");
      seen |= bit;
      if (!Take(',') && !Peek('}')) return Error("',' or '}' expected");
    }
    if (seen != 7) return Error("the keys descr, fortran_order and shape are all needed");
    SkipSpace();
    return at_ == text_.size() ? absl::OkStatus() : Error("text after '}'");
  }

 private:
  absl::StatusOr<unsigned> Value(const std::string& key, std::string* descr, bool* fortran_order,
                                 std::vector<int64_t>* shape) {
    if (key == "descr") {
      if (Peek('[')) {
        return absl::UnimplementedError(
            "structured arrays are not read; save each field as its own array");
      }
      FLOE_ASSIGN_OR_RETURN(*descr, QuotedString());
      return 1u;
    }
    if (key == "fortran_order") {
      FLOE_ASSIGN_OR_RETURN(*fortran_order, Bool());
      return 2u;
    }
    if (key == "shape") {
      FLOE_RETURN_IF_ERROR(Tuple(shape));
      return 4u;
    }
    return Error("unknown key '" + key + "'");
  }

  absl::StatusOr<std::string> QuotedString() {
    SkipSpace();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return Error("a quoted string expected");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) return Error("a string is not closed");
    std::string value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  absl::StatusOr<bool> Bool() {
    SkipSpace();
    for (const bool value : {true, false}) {
      const std::string word = value ? "True" : "False";
      if (text_.compare(at_, word.size(), word) == 0) {
        at_ += word.size();
        return value;
      }
    }
    return Error("True or False expected");
  }

  absl::Status Tuple(std::vector<int64_t>* shape) {
    if (!Take('(')) return Error("'(' expected");
    while (!Take(')')) {
      SkipSpace();
      int64_t dim = 0;
      const char* const end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, dim);
      if (error != std::errc() || dim < 0) return Error("a dimension must be an integer >= 0");
      at_ = stop - text_.data();
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
      shape->push_back(dim);
      if (shape->size() > kMaxRank) return Error("more than 64 dimensions");
      if (!Take(',') && !Peek(')')) return Error("',' or ')' expected in the shape");
    }
    return absl::OkStatus();
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Peek(char c) {
    SkipSpace();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool Take(char c) {
    if (!Peek(c)) return false;
    ++at_;
    return true;
  }
  absl::Status Error(const std::string& what) const {
    return Malformed(absl::StrCat("header, character ", at_, ": ", what));
  }

  const std::string& text_;
  size_t at_ = 0;
};

absl::StatusOr<DType> DTypeOf(const std::string& descr) {
  if (!descr.empty() && descr[0] == '>') {
    return absl::UnimplementedError(
        absl::StrCat("big-endian arrays ('", descr,
                     "') are not read; save a.astype(a.dtype.newbyteorder('<'))"));
  }
  if (descr == "|O" || descr == "O") {
    return absl::UnimplementedError("pickled Python objects are not read; save plain arrays");
  }
  const size_t skip = !descr.empty() && std::strchr("<|=", descr[0]) != nullptr ? 1 : 0;
  for (const Descr& d : kDescrs) {
    if (descr.compare(skip, std::string::npos, d.kind_and_size) == 0) return d.dtype;
  }
  std::string message = absl::StrCat("dtype '", descr, "' is not read");
  if (descr.size() > skip && std::strchr("US", descr[skip]) != nullptr) {
    message +=
        "; strings are one 1-D uint8 array: each element a little-endian u32 length, then its "
        "bytes";
  }
  return absl::UnimplementedError(message);
}

absl::Status ReadExactly(const ByteSource& source, void* to, size_t size) {
  auto* bytes = static_cast<char*>(to);
  for (size_t done = 0; done < size;) {
    FLOE_ASSIGN_OR_RETURN(const size_t got, source(bytes + done, size - done));
    if (got == 0) return Malformed(absl::StrCat("it ends ", size - done, " bytes early"));
    done += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> DecodeHeader(const std::string& text) {
  NpyHeader header;
  std::string descr;
  std::vector<int64_t> dims;
  FLOE_RETURN_IF_ERROR(DictParser(text).Parse(&descr, &header.fortran_order, &dims));
  FLOE_ASSIGN_OR_RETURN(header.dtype, DTypeOf(descr));
  const size_t element = DTypeSize(header.dtype);
  const auto elements = CheckedElements(dims, element);
  if (!elements.ok()) return Malformed(std::string(elements.status().message()));
  header.shape = Shape(dims);
  header.data_bytes = *elements * static_cast<int64_t>(element);
  return header;
}

// Consumes the header; `consumed` gets its size.
absl::StatusOr<NpyHeader> ReadHeader(const ByteSource& source, uint64_t total_bytes,
                                     uint64_t* consumed) {
  unsigned char start[12] = {};  // magic, version, length (2 bytes in version 1, 4 later)
  if (total_bytes < 10) return Malformed(absl::StrCat(total_bytes, " bytes are too few"));
  FLOE_RETURN_IF_ERROR(ReadExactly(source, start, 8));
  if (std::memcmp(start, kMagic, kMagicBytes) != 0)
    return Malformed("it does not begin with \\x93NUMPY");
  const int major = start[6];
  if (major < 1 || major > 3)
    return Malformed(absl::StrCat("format version ", major, " is unknown"));
  const size_t length_bytes = major == 1 ? 2 : 4;
  FLOE_RETURN_IF_ERROR(ReadExactly(source, start + 8, length_bytes));
  size_t length = start[8] | start[9] << 8;
  if (major > 1)
    length |= static_cast<size_t>(start[10]) << 16 | static_cast<size_t>(start[11]) << 24;
  *consumed = 8 + length_bytes + length;
  if (length > kMaxHeaderBytes || *consumed > total_bytes) {
    return Malformed(absl::StrCat("a header of ", length, " bytes in a file of ", total_bytes));
  }
  std::string text(length, '\0');
  FLOE_RETURN_IF_ERROR(ReadExactly(source, text.data(), length));
  return DecodeHeader(text);
}

// Column-major elements of `size` bytes to row-major.
void ToRowMajor(const char* from, char* to, const Shape& shape, size_t size) {
  const int rank = shape.rank();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (int d = 1; d < rank; ++d) stride[d] = stride[d - 1] * shape.dim(d - 1);
  int64_t at = 0;
  for (int64_t i = 0, n = shape.elements(); i < n; ++i) {
    std::memcpy(to + i * size, from + at * size, size);
    for (int d = rank - 1; d >= 0; --d) {
      at += stride[d];
      if (++index[d] < shape.dim(d)) break;
      at -= stride[d] * shape.dim(d);
      index[d] = 0;
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> ReadNpy(const ByteSource& source, uint64_t total_bytes) {
  uint64_t consumed = 0;
  FLOE_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(source, total_bytes, &consumed));
  const uint64_t present = total_bytes - consumed;
  if (static_cast<uint64_t>(header.data_bytes) != present) {
    return Malformed(absl::StrCat(DTypeName(header.dtype), header.shape.ToString(), " needs ",
                                  header.data_bytes, " bytes of data, the file holds ", present));
  }
  Tensor tensor = Tensor::Allocate(header.dtype, header.shape);
  FLOE_RETURN_IF_ERROR(ReadExactly(source, tensor.mutable_data(), tensor.bytes()));
  if (header.dtype == DType::kBool) {
    // Any other byte in a C++ bool is undefined behaviour in whoever reads it.
    auto* bytes = static_cast<uint8_t*>(tensor.mutable_data());
    for (int64_t i = 0; i < tensor.elements(); ++i) bytes[i] = bytes[i] != 0;
  }
  if (header.fortran_order && header.shape.rank() > 1 && tensor.elements() > 0) {
    Tensor row_major = Tensor::Allocate(header.dtype, header.shape);
    ToRowMajor(tensor.as<char>(), static_cast<char*>(row_major.mutable_data()), header.shape,
               DTypeSize(header.dtype));
    return row_major;
  }
  return tensor;
}

absl::StatusOr<Tensor> ParseNpy(const std::string& bytes) {
  size_t at = 0;
  return ReadNpy(
      [&](void* to, size_t size) -> absl::StatusOr<size_t> {
        const size_t n = std::min(size, bytes.size() - at);
        std::memcpy(to, bytes.data() + at, n);
        at += n;
        return n;
      },
      bytes.size());
}

absl::StatusOr<Tensor> ReadNpyFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) {
    const std::string why = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(why) : absl::InvalidArgumentError(why);
  }
  if (std::fseek(file.get(), 0, SEEK_END) != 0)
    return absl::InvalidArgumentError(path + ": not a regular file");
  const int64_t size = std::ftell(file.get());
  if (size < 0) return absl::InvalidArgumentError(path + ": not a regular file");
  std::rewind(file.get());
  auto tensor =
      ReadNpy([&](void* to,
                  size_t n) -> absl::StatusOr<size_t> { return std::fread(to, 1, n, file.get()); },
              size);
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  return tensor;
}

absl::StatusOr<std::string> NpyHeaderFor(DType dtype, const Shape& shape) {
  std::string descr;
  for (const Descr& d : kDescrs) {
    if (d.dtype == PlainDType(dtype))
      descr = absl::StrCat(DTypeSize(dtype) == 1 ? "|" : "<", d.kind_and_size);
  }
  if (descr.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(DTypeName(dtype), " has no .npy form"));
  }
  std::string dims;
  for (int d = 0; d < shape.rank(); ++d) absl::StrAppend(&dims, d == 0 ? "" : ", ", shape.dim(d));
  if (shape.rank() == 1) dims += ",";
  std::string dict =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", dims, "), }");
  constexpr size_t kPrefix = kMagicBytes + 4;
  dict.append(AlignUp(kPrefix + dict.size() + 1, kHeaderAlignment) - kPrefix - dict.size() - 1,
              ' ');
  dict += '\n';
  std::string header(kMagic, kMagicBytes);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

absl::StatusOr<std::string> SerializeNpy(const TensorView& view) {
  FLOE_ASSIGN_OR_RETURN(std::string bytes, NpyHeaderFor(view.dtype, view.shape));
  bytes.append(view.as<char>(), view.bytes());
  return bytes;
}

}  // namespace floe::cli
