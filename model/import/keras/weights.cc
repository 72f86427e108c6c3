#include "model/import/keras/weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/variables.h"

namespace floe::keras {
namespace {

std::string Arrays(size_t count) { return absl::StrCat(count, count == 1 ? " array" : " arrays"); }

// That an array has the shape which the configuration says.
absl::Status CheckShape(const Tensor& array, const Variable& variable) {
  if (!variable.dims.has_value()) return absl::OkStatus();
  const std::vector<int64_t>& want = *variable.dims;
  bool same = array.shape().rank() == static_cast<int>(want.size());
  for (int k = 0; same && k < array.shape().rank(); ++k)
    same = want[k] < 0 || want[k] == array.shape().dim(k);
  if (same) return absl::OkStatus();
  const auto shown = [](std::string* out, int64_t dim) {
    absl::StrAppend(out, dim < 0 ? "?" : absl::StrCat(dim));
  };
  return absl::InvalidArgumentError(
      absl::StrCat("its shape in the weights file is [", absl::StrJoin(array.shape().dims(), ", "),
                   "], by the configuration it is [", absl::StrJoin(want, ", ", shown),
                   "]; the two are not of the same model"));
}

class ByPlace : public WeightSource {
 public:
  ByPlace(const Hdf5File* file, LayerVariables variables)
      : file_(file), moved_(std::move(variables.moved)) {
    for (Variable& variable : variables.all) known_[variable.path].push_back(std::move(variable));
  }

  absl::StatusOr<Tensor> Get(const std::string& path, int index) override {
    const std::string vars = absl::StrCat(path, path.empty() ? "" : "/", "vars");
    const auto known = known_.find(path);
    if (known == known_.end()) return file_->Read(absl::StrCat(vars, "/", index));
    const size_t count = file_->Names(vars).size(), wanted = known->second.size();
    if (count != wanted)
      return absl::InvalidArgumentError(
          absl::StrCat("the weights file has ", Arrays(count), " in ", Quoted(vars),
                       ", by its configuration the layer has ", wanted));
    FLOE_ASSIGN_OR_RETURN(Tensor array, file_->Read(absl::StrCat(vars, "/", index)));
    if (index >= 0 && static_cast<size_t>(index) < wanted)
      FLOE_RETURN_IF_ERROR(CheckShape(array, known->second[index]));
    return array;
  }

  absl::StatusOr<Tensor> Named(const std::string& path, const std::string& name) override {
    return file_->Read(absl::StrCat(path, path.empty() ? "" : "/", "vars/", name));
  }

  bool Has(const std::string& path) const override { return file_->Has(path); }

  std::string Moved(const std::string& path) const override {
    const auto moved = moved_.find(path);
    return moved == moved_.end() ? path : moved->second;
  }

 private:
  const Hdf5File* const file_;
  const std::map<std::string, std::string> moved_;
  std::map<std::string, std::vector<Variable>> known_;  // by path, in order
};

// Which array each variable is was settled beforehand, or why it cannot be.
class InOrder : public WeightSource {
 public:
  explicit InOrder(const Hdf5File* file) : file_(file) {}

  // The variables of a layer in Keras' order, and the arrays of its group.
  void Assign(const NamedVariables& layer, const std::string& group,
              const std::vector<std::string>& arrays) {
    std::vector<Variable> variables = layer.variables.all;
    std::stable_partition(variables.begin(), variables.end(),
                          [](const Variable& variable) { return variable.trained; });
    absl::Status wrong;
    if (arrays.size() != variables.size()) {
      const std::vector<std::string>& unknown = layer.variables.unknown;
      wrong = absl::InvalidArgumentError(
          absl::StrCat("the weights file has ", Arrays(arrays.size()), " in ", Quoted(group),
                       ", by its configuration the layer has ", variables.size(),
                       unknown.empty() ? ""
                                       : absl::StrCat(", and what a layer of class ",
                                                      Quoted(unknown[0]), " has is not known")));
    }
    // Keras 3.0 stops in the middle of a file in which it has given a name twice.
    const std::set<std::string> names(arrays.begin(), arrays.end());
    if (wrong.ok() && names.size() != arrays.size())
      wrong = absl::InvalidArgumentError(
          absl::StrCat("two arrays in ", Quoted(group),
                       " have the same name, so the file is incomplete; save it as .keras"));
    for (size_t k = 0; k < variables.size(); ++k) {
      Place place{wrong, wrong.ok() ? absl::StrCat(group, "/", arrays[k]) : "", variables[k]};
      places_.emplace(std::pair(variables[k].path, variables[k].index), std::move(place));
    }
  }

  absl::StatusOr<Tensor> Named(const std::string& path, const std::string& name) override {
    return absl::NotFoundError(absl::StrCat(Quoted(path), " has no ", Quoted(name)));
  }

  absl::StatusOr<Tensor> Get(const std::string& path, int index) override {
    const auto found = places_.find({path, index});
    if (found == places_.end()) return absl::NotFoundError("the weights file has no array for it");
    const Place& place = found->second;
    FLOE_RETURN_IF_ERROR(place.wrong);
    FLOE_ASSIGN_OR_RETURN(Tensor array, file_->Read(place.array));
    FLOE_RETURN_IF_ERROR(CheckShape(array, place.variable));
    return array;
  }

  bool Has(const std::string&) const override { return true; }
  std::string Moved(const std::string& path) const override { return path; }

 private:
  struct Place {
    absl::Status wrong;
    std::string array;
    Variable variable;
  };

  const Hdf5File* const file_;
  std::map<std::pair<std::string, int>, Place> places_;
};

struct LayerGroup {
  std::string name;
  std::vector<std::string> arrays;
};

// The groups of layers that have arrays.
absl::StatusOr<std::vector<LayerGroup>> GroupsOf(const Hdf5File& file, const std::string& root) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file.Strings(root, "layer_names"));
  std::vector<LayerGroup> groups;
  for (const std::string& name : names) {
    FLOE_ASSIGN_OR_RETURN(
        std::vector<std::string> arrays,
        file.Strings(absl::StrCat(root, root.empty() ? "" : "/", name), "weight_names"));
    if (!arrays.empty()) groups.push_back({name, std::move(arrays)});
  }
  return groups;
}

}  // namespace

absl::StatusOr<Tensor> LayerWeights::Get(int index) const {
  if (source_ == nullptr) return absl::NotFoundError("there is no weights file");
  return source_->Get(path_, index);
}

absl::StatusOr<Tensor> LayerWeights::Named(const std::string& name) const {
  if (source_ == nullptr) return absl::NotFoundError("there is no weights file");
  return source_->Named(path_, name);
}

LayerWeights LayerWeights::Child(const std::string& name) const {
  return {source_, absl::StrCat(path_, path_.empty() ? "" : "/", name)};
}

LayerWeights LayerWeights::Child(const std::string& name, const std::string& other) const {
  LayerWeights first = Child(name);
  return source_ == nullptr || source_->Has(first.path_) ? first : Child(other);
}

LayerWeights LayerWeights::OfLayer(const std::string& place) const {
  if (source_ == nullptr) return {};
  return {source_, source_->Moved(absl::StrCat(path_, path_.empty() ? "" : "/", "layers/", place))};
}

LayerWeights WeightsByPlace(const Hdf5File* file, const Json& model) {
  LayerVariables best;
  if (!file->Has(kOldLayers)) {
    best = VariablesOf(model, "", Writer::kKeras3);
  } else {
    // Which of the two it was is seen from the places that are there.
    int64_t most = -1;
    for (const Writer writer : {Writer::kKeras214, Writer::kKeras213}) {
      LayerVariables variables = VariablesOf(model, "", writer);
      const int64_t there =
          std::count_if(variables.all.begin(), variables.all.end(), [&](const Variable& variable) {
            return file->Has(absl::StrCat(variable.path, "/vars/", variable.index));
          });
      if (there <= most) continue;
      most = there;
      best = std::move(variables);
    }
  }
  return {std::make_shared<ByPlace>(file, std::move(best)), ""};
}

absl::StatusOr<LayerWeights> WeightsInOrder(const Hdf5File* file, const std::string& group,
                                            const Json& model, int version) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<LayerGroup> groups, GroupsOf(*file, group));
  std::vector<NamedVariables> layers =
      VariablesOfLayers(model, version < 3 ? Writer::kKeras2 : Writer::kKeras3);
  layers.erase(std::remove_if(layers.begin(), layers.end(),
                              [](const auto& layer) { return layer.variables.all.empty(); }),
               layers.end());
  const bool by_name = groups.size() != layers.size();
  auto source = std::make_shared<InOrder>(file);
  for (size_t k = 0; k < layers.size(); ++k) {
    auto found = groups.begin() + (by_name ? 0 : static_cast<int64_t>(k));
    if (by_name)
      found = std::find_if(groups.begin(), groups.end(),
                           [&](const LayerGroup& g) { return g.name == layers[k].name; });
    const std::string path =
        absl::StrCat(group, group.empty() ? "" : "/", found == groups.end() ? "" : found->name);
    source->Assign(layers[k], path,
                   found == groups.end() ? std::vector<std::string>() : found->arrays);
  }
  return LayerWeights(std::move(source), "");
}

}  // namespace floe::keras
