// Binds every signature with guessed shapes, and takes the largest arena.
#include "server/registry/memory_estimate.h"

#include <algorithm>

#include "server/executor/warm_up.h"

namespace floe::server {
namespace {

int64_t ArenaBytes(const CompiledSignature& variant, int64_t rows) {
  bool known = true;
  const auto shapes = GuessShapes(variant, 1, &known);
  if (!shapes) return 0;
  const auto plan = variant.Bind(*shapes);
  if (!plan.ok()) return 0;  // the guess was wrong
  return (*plan)->ArenaBytes((*plan)->has_rows() ? rows : 1);
}

}  // namespace

int64_t ArenaBytes(const Model& model, int64_t rows) {
  int64_t bytes = 0;
  for (const auto& [name, signature] : model.signatures()) {
    for (const Signature::Variant& variant : signature.variants())
      bytes = std::max(bytes, ArenaBytes(*variant.compiled, rows));
    for (const DefaultProgram& program : signature.default_programs())
      if (program.compiled != nullptr) bytes = std::max(bytes, ArenaBytes(*program.compiled, rows));
  }
  return bytes;
}

}  // namespace floe::server
