#include "model/import/keras/read_log.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/way_out.h"

namespace floe::keras {
namespace {

// Options that cannot change an answer, whichever layer has them. Those of one layer are read by
// its rule (LayerContext::Ignore).
const std::set<std::string>& Harmless() {
  static const std::set<std::string> names{
      // What it is called, and that it was trained.
      "name", "trainable", "seed", "seed_generator", "rng_type",
      // Of the policy of types, which is read before any rule is called.
      "dtype", "autocast",
      // The shape of the input, which the graph has.
      "batch_input_shape", "batch_shape", "input_shape", "input_dtype", "build_input_shape",
      // How training, or another backend, computes the same.
      "dynamic", "synchronized", "use_cudnn", "jit_compile", "unroll", "implementation",
      // Low-rank updates: files have the sum of both.
      "lora_rank", "lora_alpha"};
  return names;
}

// Whether an option of this name cannot change what a layer answers.
bool ChangesNoAnswer(const std::string& option) {
  return absl::EndsWith(option, "_initializer") || absl::EndsWith(option, "_regularizer") ||
         absl::EndsWith(option, "_constraint") || Harmless().count(option) != 0;
}

std::string Value(const KValue& value) {
  if (value.kind == KValue::Kind::kJson) return Shown(*value.json);
  return value.is_tensor() ? "a tensor" : "a list or dict with tensors";
}

absl::Status NotRead(const std::string& what, const std::string& value) {
  return absl::UnimplementedError(
      absl::StrCat(what, " is ", value, ", which is not supported here; ", kExport));
}

}  // namespace

void ReadLog::NoteAll(const Call& call) {
  for (int k = 0; k < static_cast<int>(call.args.size()); ++k) NoteArgument(k);
  for (const auto& [name, value] : call.kwargs) NoteArgument(name);
}

// Whether an argument is none, or says only that nobody trains the model. A model of Keras 3 that
// is served hands training=False to all of its layers, whatever the file says of their calls.
bool ReadLog::SaysNothing(const std::string& name, const KValue& value) const {
  if (value.is_none()) return true;
  if (value.kind != KValue::Kind::kJson) return false;
  return HasOnlyNulls(*value.json) || (name == "name" && value.json->is_string()) ||
         (name == "training" && (!keras2_ || *value.json == false || *value.json == 0));
}

absl::Status ReadLog::Check(const Call& call) const {
  for (const auto& [object, what] : watched_) {
    const auto read = members_.find(object);
    for (const auto& [name, value] : object->items()) {
      if (value.is_null() || name == "name" || absl::StartsWith(name, "_")) continue;
      if (!operation_ && ChangesNoAnswer(name)) continue;
      if (read != members_.end() && read->second.count(name) != 0) continue;
      return NotRead(absl::StrCat("option ", Quoted(name), what.empty() ? "" : " of ", what),
                     Shown(value));
    }
  }
  for (int k = 0; k < static_cast<int>(call.args.size()); ++k) {
    if (positions_.count(k) == 0 && !SaysNothing("", call.args[k]))
      return NotRead(absl::StrCat("argument ", k, " of its call"), Value(call.args[k]));
  }
  for (const auto& [name, value] : call.kwargs) {
    if (names_.count(name) == 0 && !SaysNothing(name, value))
      return NotRead(absl::StrCat("argument ", Quoted(name), " of its call"), Value(value));
  }
  return absl::OkStatus();
}

}  // namespace floe::keras
