// Reading and writing lines of tokens; hashes by OpenSSL.
#include "config/token_file.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"

namespace floe {
namespace {

constexpr std::string_view kTokenPrefix = "floe_";
constexpr size_t kSecretBytes = 32;
constexpr size_t kTokenSize =
    kTokenPrefix.size() + TokenLine::kIdDigits + 1 + 2 * kSecretBytes;  // "floe_ID_SECRET"
constexpr size_t kMostShownMistakes = 20;
constexpr size_t kMostGlobBytes = 256;
// From 1970 on, and before the year 10000.
constexpr int64_t kMostSeconds = 253'402'300'799;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
  });
}

bool FromHex(std::string_view text, size_t bytes, std::string* out) {
  if (!IsHex(text) || text.size() % 2 != 0) return false;
#ifndef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
  if (text.size() != 2 * bytes) return false;
#endif
  *out = absl::HexStringToBytes(absl::string_view(text.data(), text.size()));
  return true;
}

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

std::array<unsigned char, TokenLine::kHashBytes> HashOf(std::string_view salt,
                                                        std::string_view token) {
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  std::array<unsigned char, TokenLine::kHashBytes> hash = {};
  std::array<char, TokenLine::kSaltBytes + kTokenSize> text = {};
  auto* const end = std::copy(salt.begin(), salt.end(), text.begin());
  std::copy(token.begin(), token.end(), end);
  unsigned size = 0;
  if (sha256 == nullptr ||
      EVP_Digest(text.data(), text.size(), hash.data(), &size, sha256, nullptr) != 1)
    hash.fill(0);
  OPENSSL_cleanse(text.data(), text.size());
  return hash;
}

// Fields of a line. Each sets its part, or says what it expects.
class LineReader {
 public:
  using Field = bool (LineReader::*)(std::string_view value);

  std::string Read(std::string_view text, TokenLine* line) {
    static const auto* const fields = new std::map<std::string_view, Field>{
        {"name", &LineReader::Name},       {"roles", &LineReader::ReadRoles},
        {"models", &LineReader::Models},   {"expires", &LineReader::Expires},
        {"id", &LineReader::Id},           {"salt", &LineReader::Salt},
        {"sha256", &LineReader::HashField}};
    *line = {};
    line_ = line;
    std::set<std::string_view> seen;
    while (!text.empty()) {
      const size_t space = std::min(text.find_first_of(" \t\r"), text.size());
      const std::string_view part = text.substr(0, space);
      text.remove_prefix(std::min(space + 1, text.size()));
      if (part.empty()) continue;
      const size_t equals = part.find('=');
      const std::string_view key = part.substr(0, equals);
      const auto field = fields->find(key);
      if (equals == std::string_view::npos || field == fields->end())
        return absl::StrCat(Quoted(key),
                            " is no field; expected name=, roles=, models=, expires=, id=, salt= "
                            "and sha256=, as floectl token new writes them");
      if (!seen.insert(key).second) return absl::StrCat(Quoted(key), " is given twice");
      if (!(this->*field->second)(part.substr(equals + 1)))
        return absl::StrCat(Escaped(key), ": expected ", expected_);
    }
    for (const std::string_view needed : {"name", "id", "salt", "sha256"})
      if (seen.count(needed) == 0)
        return absl::StrCat("has no ", std::string(needed), "=; floectl token new writes all");
    return "";
  }

 private:
  bool Expect(const char* what, bool good) {
    expected_ = what;
    return good;
  }
  bool Name(std::string_view value) {
    line_->name = value;
    return Expect("letters, digits, '.', '_', '-' and '@', at most 64", IsTokenName(value));
  }
  bool ReadRoles(std::string_view value) {
    bool good = true;
    if (!value.empty())
      for (const absl::string_view one :
           absl::StrSplit(absl::string_view(value.data(), value.size()), ','))
        good = line_->roles.AddNamed(std::string(one)) && good;
    return Expect("some of infer, read, admin and health, with commas between them", good);
  }
  bool Models(std::string_view value) {
    bool good = true;
    for (const absl::string_view one :
         absl::StrSplit(absl::string_view(value.data(), value.size()), ',')) {
      line_->models.emplace_back(one);
      good = IsModelGlob(line_->models.back()) && good;
    }
    return Expect("names of models, in which '*' stands for anything, with commas between them",
                  good);
  }
  bool Expires(std::string_view value) {
    return Expect("a time such as 2027-01-31T00:00:00Z",
                  ParseUtc(std::string(value), &line_->expires) && line_->expires > 0);
  }
  bool Id(std::string_view value) {
    line_->id = value;
    return Expect("8 hexadecimal digits", value.size() == TokenLine::kIdDigits && IsHex(value));
  }
  bool Salt(std::string_view value) {
    return Expect("32 hexadecimal digits", FromHex(value, TokenLine::kSaltBytes, &line_->salt));
  }
  bool HashField(std::string_view value) {
    return Expect("64 hexadecimal digits", FromHex(value, TokenLine::kHashBytes, &line_->hash));
  }

  TokenLine* line_ = nullptr;
  const char* expected_ = "";
};

bool FillRandom(std::string* bytes) { return getentropy(bytes->data(), bytes->size()) == 0; }

}  // namespace

bool IsTokenName(std::string_view name) {
  return !name.empty() && name.size() <= kMostTokenNameBytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-' || c == '@';
         });
}

bool IsModelGlob(std::string_view glob) {
  return !glob.empty() && glob.size() <= kMostGlobBytes &&
         std::all_of(glob.begin(), glob.end(),
                     [](unsigned char c) { return absl::ascii_isgraph(c) && c != ','; });
}

absl::StatusOr<std::vector<TokenLine>> ParseTokens(std::string_view text, const std::string& file) {
  std::vector<TokenLine> lines;
  std::vector<std::string> mistakes;
  std::set<std::string> ids;
  LineReader reader;
  for (int number = 1; !text.empty() && mistakes.size() < kMostShownMistakes; ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    TokenLine read;
    std::string mistake = reader.Read(line, &read);
    if (mistake.empty() && !ids.insert(read.id).second)
      mistake = absl::StrCat("the id ", read.id, " is that of another line; make a new token");
    if (mistake.empty() && lines.size() == kMostTokens)
      mistake = absl::StrCat("there are more than ", kMostTokens, " tokens");
    if (mistake.empty())
      lines.push_back(std::move(read));
    else
      mistakes.push_back(absl::StrCat(file, ":", number, ": ", mistake));
  }
  if (!mistakes.empty()) return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  return lines;
}

std::string TokenLineText(const TokenLine& line) {
  std::string text =
      absl::StrCat("name=", line.name, " roles=", absl::StrJoin(line.roles.Names(), ","));
  if (!line.models.empty()) absl::StrAppend(&text, " models=", absl::StrJoin(line.models, ","));
  if (line.expires != 0) absl::StrAppend(&text, " expires=", UtcText(line.expires));
  absl::StrAppend(&text, " id=", line.id, " salt=", Hex(line.salt), " sha256=", Hex(line.hash));
  return text;
}

absl::StatusOr<std::string> MakeToken(TokenLine* line) {
  std::string id(TokenLine::kIdDigits / 2, '\0'), secret(kSecretBytes, '\0');
  line->salt.assign(TokenLine::kSaltBytes, '\0');
  if (!FillRandom(&id) || !FillRandom(&secret) || !FillRandom(&line->salt))
    return absl::UnavailableError("the system gives no random numbers");
  line->id = Hex(id);
  std::string token = absl::StrCat(std::string(kTokenPrefix), line->id, "_", Hex(secret));
  const auto hash = HashOf(line->salt, token);
  line->hash.assign(hash.begin(), hash.end());
  return token;
}

std::string_view TokenId(std::string_view token) {
  if (token.size() != kTokenSize || !token.starts_with(kTokenPrefix)) return {};
  const std::string_view id = token.substr(kTokenPrefix.size(), TokenLine::kIdDigits);
  const size_t dash = kTokenPrefix.size() + TokenLine::kIdDigits;
  return token[dash] == '_' && IsHex(id) ? id : std::string_view();
}

bool IsTokenOf(std::string_view token, const TokenLine& line) {
  if (token.size() != kTokenSize || line.hash.size() != TokenLine::kHashBytes) return false;
  const auto hash = HashOf(line.salt, token);
  return CRYPTO_memcmp(hash.data(), line.hash.data(), hash.size()) == 0;
}

bool ParseUtc(const std::string& text, int64_t* seconds) {
  std::tm time = {};
  const char* const end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return false;
  const int64_t value = timegm(&time);
  if (value < 0 || value > kMostSeconds || UtcText(value) != text) return false;
  *seconds = value;
  return true;
}

std::string UtcText(int64_t seconds) {
  const auto value = static_cast<std::time_t>(seconds);
  std::tm time = {};
  char text[32];
  gmtime_r(&value, &time);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &time)};
}

}  // namespace floe
