#include "server/registry/memory_estimate.h"

#include <algorithm>
#include <vector>

namespace floe::server {
namespace {

int64_t ArenaBytes(const CompiledSignature& form, int64_t rows) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < form.signature().inputs.size(); ++i) {
    const SymShape& sym = form.signature().inputs[i].type.shape;
    Shape shape;
    for (int axis = 0; sym.rank_known() && axis < sym.rank(); ++axis) {
      const Dim dim = sym.dim(axis);
      const bool has_rows = axis == 0 && form.InputHasRows(static_cast<int>(i));
      shape.push_back(has_rows || !dim.concrete() ? 1 : dim.size());
    }
    shapes.push_back(std::move(shape));
  }
  const auto plan = form.Bind(shapes);
  if (!plan.ok()) return 0;  // the guess was wrong
  return (*plan)->ArenaBytes((*plan)->has_rows() ? rows : 1);
}

}  // namespace

int64_t ArenaBytes(const Model& model, int64_t rows) {
  int64_t bytes = 0;
  for (const auto& [name, signature] : model.signatures())
    for (const CompiledSignature* form : {&signature.defaults_form(), signature.live_form()})
      if (form != nullptr) bytes = std::max(bytes, ArenaBytes(*form, rows));
  return bytes;
}

}  // namespace floe::server
