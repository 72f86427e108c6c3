#include "base/work_note.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

template <size_t kSize>
void Put(std::string_view text, char (&to)[kSize]) {
  const size_t size = std::min(text.size(), kSize - 1);
  if (size > 0) std::memcpy(to, text.data(), size);
  to[size] = 0;
}

template <size_t kSize>
std::string Read(const char (&from)[kSize]) {
  std::string text(from, strnlen(from, kSize));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace

void WorkNote::Enter(std::string_view stage) {
  if (busy_.test_and_set(std::memory_order_acquire)) return;
  Put(stage, stage_);
  Put("", verb_);
  busy_.clear(std::memory_order_release);
}

void WorkNote::Do(std::string_view verb, std::string_view node, std::string_view op) {
  if (busy_.test_and_set(std::memory_order_acquire)) return;
  Put(verb, verb_);
  Put(node, node_);
  Put(op, op_);
  busy_.clear(std::memory_order_release);
}

std::string WorkNote::Describe() const {
  std::string stage = Read(stage_);
  const std::string verb = Read(verb_), node = Read(node_), op = Read(op_);
  if (verb.empty()) return stage;
  return absl::StrCat(stage, ", ", verb, node.empty() ? "" : absl::StrCat(" node '", node, "'"),
                      op.empty() ? "" : absl::StrCat(" (", op, ")"));
}

}  // namespace floe
