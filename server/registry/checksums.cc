#include "server/registry/checksums.h"

#include <openssl/evp.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file_beneath.h"
#include "base/status.h"

namespace floe::server {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 20;  // of SHA256SUMS itself
constexpr size_t kHexDigits = 64;

// The sum of one file, in lower-case hexadecimal digits.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::bad_alloc();
  }
  void Add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string Hex() {
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), sum, &size);
    return absl::BytesToHexString({reinterpret_cast<const char*>(sum), size});
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

struct Line {
  std::string sum, file;
};

// "SUM  FILE" or "SUM *FILE"; files are relative to the directory of the sums.
absl::StatusOr<Line> ReadLine(const std::string& text, int number) {
  const bool spaced = text.size() > kHexDigits + 2 && text[kHexDigits] == ' ' &&
                      (text[kHexDigits + 1] == ' ' || text[kHexDigits + 1] == '*');
  const std::string sum = absl::AsciiStrToLower(text.substr(0, kHexDigits));
  if (!spaced || sum.find_first_not_of("0123456789abcdef") != std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat(kChecksumsFile, ":", number, ": expected ", kHexDigits,
                     " hexadecimal digits, two spaces and a file, as sha256sum writes them"));
  return Line{sum, text.substr(kHexDigits + 2)};
}

// Where the model's file is, which is read through links, in absolute terms; as given where that
// cannot be said.
std::string Followed(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         std::free);
  return real == nullptr ? path : std::string(real.get());
}

absl::Status CheckFile(const std::string& directory, const std::string& model, const Line& line,
                       const CancelToken* cancel) {
  Sha256 sum;
  const auto add = [&](std::string_view block) {
    if (cancel != nullptr && cancel->cancelled()) return absl::CancelledError("no longer wanted");
    sum.Add(block);
    return absl::OkStatus();
  };
  const std::string real = line.file == model ? Followed(absl::StrCat(directory, "/", model)) : "";
  const absl::Status status =
      real.empty() ? ReadBlocksBeneath(directory, line.file, add)
                   : ReadBlocksBeneath(DirectoryOf(real), real.substr(real.rfind('/') + 1), add);
  if (absl::IsNotFound(status))
    return absl::InvalidArgumentError(
        absl::StrCat(kChecksumsFile, " names '", line.file, "', which is not there"));
  FLOE_RETURN_IF_ERROR(status);
  const std::string found = sum.Hex();
  if (found == line.sum) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", line.file, "' has the SHA-256 ", found,
                                                 ", and not ", line.sum, " as ", kChecksumsFile,
                                                 " says: it was damaged, or is not whole"));
}

}  // namespace

absl::StatusOr<int> CheckChecksums(const std::string& directory, const std::string& model,
                                   bool alone, const CancelToken* cancel) {
  const auto text = ReadFileBeneath(directory, kChecksumsFile, kMostBytes);
  if (absl::IsNotFound(text.status())) return 0;
  if (!text.ok()) return text.status();
  int number = 0, checked = 0;
  for (const std::string& one : std::vector<std::string>(absl::StrSplit(*text, '\n'))) {
    ++number;
    const std::string stripped(absl::StripSuffix(one, "\r"));
    if (stripped.empty() || stripped[0] == '#') continue;
    FLOE_ASSIGN_OR_RETURN(Line line, ReadLine(stripped, number));
    if (line.file.compare(0, 2, "./") == 0) line.file.erase(0, 2);
    if (line.file == kChecksumsFile || (alone && line.file != model)) continue;
    FLOE_RETURN_IF_ERROR(CheckFile(directory, model, line, cancel));
    ++checked;
  }
  return checked;
}

}  // namespace floe::server
