// Compares two lists of models by name and by key.
#include "config/describe_changes.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quoted.h"
#include "config/key_table.h"

namespace floe {
namespace {

using ByName = std::map<std::string, const ModelConfig*>;

ByName Named(const std::vector<ModelConfig>& models) {
  ByName named;
  for (const ModelConfig& model : models) named[model.name] = &model;
  return named;
}

// The keys that differ.
std::string ChangedKeys(const ModelConfig& before, const ModelConfig& after) {
  std::vector<std::string> keys;
  for (const Key<ModelConfig>& key : ModelKeys())
    if (!key.same(before, after)) keys.push_back(key.path);
  return absl::StrJoin(keys, ", ");
}

void Append(const char* what, const std::vector<std::string>& models, std::string* text) {
  constexpr size_t kShown = 20;
  if (models.empty()) return;
  const size_t shown = std::min(models.size(), kShown);
  absl::StrAppend(text, text->empty() ? "" : "; ", what, " ",
                  absl::StrJoin(models.begin(), models.begin() + shown, ", "));
  if (shown < models.size()) absl::StrAppend(text, " and ", models.size() - shown, " more");
}

}  // namespace

std::string DescribeChanges(const std::vector<ModelConfig>& before,
                            const std::vector<ModelConfig>& after) {
  const ByName old_models = Named(before), new_models = Named(after);
  std::vector<std::string> added, changed, removed;
  for (const auto& [name, model] : new_models) {
    const auto old = old_models.find(name);
    if (old == old_models.end()) {
      added.push_back(Quoted(name));
    } else if (const std::string keys = ChangedKeys(*old->second, *model); !keys.empty()) {
      changed.push_back(absl::StrCat(Quoted(name), " (", keys, ")"));
    }
  }
  for (const auto& [name, model] : old_models)
    if (new_models.count(name) == 0) removed.push_back(Quoted(name));
  std::string text;
  Append("added", added, &text);
  Append("changed", changed, &text);
  Append("removed", removed, &text);
  return text.empty() ? "nothing changed" : text;
}

}  // namespace floe
