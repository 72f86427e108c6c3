// Any bytes as a file of tokens: what is read is the same when written and read again, each line
// has an id of its own and whole hashes, and nothing but its token opens it.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/token_file.h"
#include "tests/fuzz/fuzzer.h"

namespace floe::fuzz {
namespace {

void CheckLine(const TokenLine& line, std::string_view bytes) {
  if (line.salt.size() != TokenLine::kSaltBytes || line.hash.size() != TokenLine::kHashBytes)
    Fail("a hash is not whole");
  if (!IsTokenName(line.name)) Fail("a name is none");
  for (const std::string& model : line.models)
    if (!IsModelGlob(model)) Fail("a model's name is none");
  const std::string like =
      absl::StrCat("floe_", line.id, "_", std::string(2 * TokenLine::kHashBytes, '0'));
  if (TokenId(like) != line.id) Fail("an id is not found in its token");
  if (IsTokenOf(like, line) || IsTokenOf(bytes, line)) Fail("a hash was guessed");
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) {
  const auto read = ParseTokens(bytes, "f");
  if (!read.ok()) {
    if (read.status().message().empty()) Fail("a refusal has no reason");
    return read.status();
  }
  std::string text;
  std::set<std::string> ids;
  for (const TokenLine& line : *read) {
    CheckLine(line, bytes);
    if (!ids.insert(line.id).second) Fail("two lines have one id");
    absl::StrAppend(&text, TokenLineText(line), "\n");
  }
  const auto again = ParseTokens(text, "f");
  if (!again.ok()) Fail("what was written is refused: " + again.status().ToString());
  if (*again != *read) Fail("what was written is another file");
  return absl::OkStatus();
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  static constexpr std::string_view kParts[] = {"name=",
                                                "roles=infer,read",
                                                "models=a*,b",
                                                "expires=2027-01-31T00:00:00Z",
                                                "id=00000001",
                                                "salt=",
                                                "sha256=",
                                                "00",
                                                " ",
                                                "\n",
                                                "#",
                                                ",",
                                                "="};
  if (random.OneIn(3)) return MutateBytes(bytes, max_size);
  return PutInto(bytes, random.Pick(kParts), random);
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
