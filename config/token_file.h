// The file of tokens: a line for each, with what a token may do and a salted hash of it. It does
// not hold the tokens themselves.
//
//   name=ci roles=infer,read models=mnist_* expires=2027-01-31T00:00:00Z id=.. salt=.. sha256=..
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "config/role.h"

namespace floe {

// "floe_1f2e3d4c_" and 64 hexadecimal digits: the id, which is no secret, and 256 random bits.
struct TokenLine {
  static constexpr size_t kIdDigits = 8, kSaltBytes = 16, kHashBytes = 32;

  std::string name;  // what messages and the log call it; several tokens may have the same
  Roles roles;
  std::vector<std::string> models;  // globs; empty: all
  int64_t expires = 0;              // seconds since 1970; 0: never
  std::string id;                   // unique in a file
  std::string salt, hash;           // bytes
  friend bool operator==(const TokenLine&, const TokenLine&) = default;
};

inline constexpr size_t kMostTokens = 100'000;
inline constexpr size_t kMostTokenNameBytes = 64;

// INVALID_ARGUMENT with a line for each mistake, as "file:line: what is wrong, what was expected".
// Hashes are not shown. `file` is what messages call it.
absl::StatusOr<std::vector<TokenLine>> ParseTokens(std::string_view text, const std::string& file);
// The line, without its end.
std::string TokenLineText(const TokenLine& line);

// Letters, digits, '.', '_', '-' and '@', up to kMostTokenNameBytes.
bool IsTokenName(std::string_view name);
// A model's name in which '*', '?' and [...] have the meaning of fnmatch(3); no spaces or commas.
bool IsModelGlob(std::string_view glob);

// Fills in id, salt and hash, and returns the token. UNAVAILABLE without random numbers.
absl::StatusOr<std::string> MakeToken(TokenLine* line);

// The id that a token begins with; "": it has not the form of one.
std::string_view TokenId(std::string_view token);
// Whether `token` is that of the line. Takes the same time for every token of a token's form.
bool IsTokenOf(std::string_view token, const TokenLine& line);

// "2027-01-31T00:00:00Z" as seconds since 1970, and the reverse. False: it is none.
bool ParseUtc(const std::string& text, int64_t* seconds);
std::string UtcText(int64_t seconds);

}  // namespace floe
