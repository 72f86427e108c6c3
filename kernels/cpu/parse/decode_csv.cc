// Records in strings taken apart: lines of CSV, and numbers in bytes of a fixed length.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/parse_number.h"
#include "base/quoted.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

struct CsvOptions {
  char delimiter = ',';
  bool quotes = true;
  std::string missing;
  std::vector<int64_t> columns;  // empty: all
};

// Takes the fields of one record in turn.
class CsvRecord {
 public:
  CsvRecord(const std::string& text, const CsvOptions& options) : text_(text), options_(options) {}

  // The wanted fields.
  absl::Status Read(std::vector<std::string>* fields) {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n' || text_[at_] == '\r') {
        ++at_;
        continue;
      }
      std::string field;
      FLOE_RETURN_IF_ERROR(options_.quotes && text_[at_] == '"' ? ReadQuoted(&field)
                                                                : ReadPlain(&field));
      if (Wanted(fields->size())) fields->push_back(std::move(field));
      ++number_;
      if (!options_.columns.empty() && fields->size() == options_.columns.size())
        return absl::OkStatus();
    }
    if (!text_.empty() && text_.back() == options_.delimiter && Wanted(fields->size()))
      fields->emplace_back();
    return absl::OkStatus();
  }

 private:
  bool Wanted(size_t have) const {
    return options_.columns.empty() ||
           (have < options_.columns.size() && options_.columns[have] == number_);
  }

  absl::Status ReadPlain(std::string* field) {
    for (; at_ < text_.size() && text_[at_] != options_.delimiter; ++at_) {
      const char c = text_[at_];
      if ((options_.quotes && c == '"') || c == '\n' || c == '\r')
        return absl::InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside");
      *field += c;
    }
    ++at_;
    return absl::OkStatus();
  }

  // Ends at a quote before a delimiter or the end; two quotes are one.
  absl::Status ReadQuoted(std::string* field) {
    ++at_;
    while (at_ + 1 < text_.size() && !(text_[at_] == '"' && text_[at_ + 1] == options_.delimiter)) {
      if (text_[at_] == '"') {
        if (text_[at_ + 1] != '"')
          return absl::InvalidArgumentError(
              "Quote inside a string has to be escaped by another quote");
        ++at_;
      }
      *field += text_[at_++];
    }
    if (at_ >= text_.size() || text_[at_] != '"')
      return absl::InvalidArgumentError(
          "Quoted field has to end with quote followed by delim or end");
    at_ += 2;
    return absl::OkStatus();
  }

  const std::string& text_;
  const CsvOptions& options_;
  size_t at_ = 0;
  int64_t number_ = 0;
};

template <class T>
absl::Status StoreField(const std::string& field, bool missing, const TensorView& otherwise,
                        T* to) {
  if (missing) {
    if (otherwise.elements() != 1) return absl::InvalidArgumentError("is required but missing");
    *to = *otherwise.as<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    *to = field;
  } else if (!ParseNumber(field, to)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not a valid ", DTypeName(kDTypeOf<T>), ": ", Quoted(field)));
  }
  return absl::OkStatus();
}

absl::Status DecodeCsv(const KernelContext& ctx, const CsvOptions& options) {
  using Fields = TypeList<float, double, int32_t, int64_t, std::string>;
  const size_t count = ctx.outputs.size();
  int64_t bytes = 0;  // a long default may be copied often
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    if (i % 256 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
    std::vector<std::string> fields;
    FLOE_RETURN_IF_ERROR(CsvRecord(ctx.in(0).as<std::string>()[i], options).Read(&fields));
    if (fields.size() != count)
      return absl::InvalidArgumentError(
          absl::StrCat("Expect ", count, " fields but have ", fields.size(), " in record ", i));
    for (size_t f = 0; f < count; ++f) {
      const TensorView &out = ctx.out(static_cast<int>(f)),
                       &otherwise = ctx.in(static_cast<int>(f) + 1);
      const bool missing = fields[f].empty() || fields[f] == options.missing;
      absl::Status status;
      ForDType(out.dtype, Fields{}, [&](auto t) {
        using T = decltype(t);
        status = StoreField<T>(fields[f], missing, otherwise, out.as<T>() + i);
        if constexpr (std::is_same_v<T, std::string>)
          bytes += static_cast<int64_t>(out.as<T>()[i].size());
      });
      if (!status.ok())
        return absl::InvalidArgumentError(
            absl::StrCat("Field ", f, " in record ", i, " ", std::string(status.message())));
      FLOE_RETURN_IF_ERROR(CheckValueBytes(bytes));
    }
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeCsv(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  CsvOptions options{a.String("field_delim", ",")[0], a.Bool("use_quote_delim", true),
                     a.String("na_value"), a.Ints("select_cols")};
  return FromFunction(
      [options = std::move(options)](const KernelContext& ctx) { return DecodeCsv(ctx, options); });
}
FLOE_REGISTER_KERNEL(DecodeCSV, kCpu, MakeCsv, DType::kString);

// Strings cut or filled with zeros to the length.
absl::StatusOr<std::unique_ptr<Kernel>> MakePaddedRaw(const KernelArgs& args) {
  const bool little = args.node.attrs.Bool("little_endian", true);
  return FromFunction([little](const KernelContext& ctx) -> absl::Status {
    const TensorView &in = ctx.in(0), &out = ctx.out(0);
    const size_t word = DTypeSize(out.dtype),
                 width = static_cast<size_t>(out.shape.dim(out.shape.rank() - 1)) * word;
    auto* to = out.as<char>();
    for (int64_t i = 0; i < in.elements(); ++i, to += width) {
      const std::string& text = in.as<std::string>()[i];
      const size_t given = std::min(text.size(), width);
      std::memcpy(to, text.data(), given);
      std::memset(to + given, 0, width - given);
      for (size_t at = 0; !little && at < width; at += word) std::reverse(to + at, to + at + word);
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(DecodePaddedRaw, kCpu, MakePaddedRaw, DType::kString);

}  // namespace
}  // namespace floe::kernels
