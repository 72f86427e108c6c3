#include "model/import/keras/weights.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::keras {
namespace {

class ByPlace : public WeightSource {
 public:
  explicit ByPlace(const Hdf5File* file) : file_(file) {}

  absl::StatusOr<Tensor> Get(const std::string& path, int index) override {
    std::string full = absl::StrCat(path, path.empty() ? "" : "/", "vars/", index);
    if (!file_->Has(full)) {  // Keras 2.13
      const std::string old =
          absl::StrReplaceAll(full, {{"layers", "_layer_checkpoint_dependencies"}});
      if (file_->Has(old)) full = old;
    }
    return file_->Read(full);
  }

  bool Has(const std::string& path) const override { return file_->Has(path); }

  std::shared_ptr<WeightSource> OfLayer(const std::string& path, const std::string&,
                                        std::string* layer_path) override {
    *layer_path = path;
    return shared_from_this();
  }

 private:
  const Hdf5File* const file_;
};

// Has a source for each layer, by its name.
class ByLayer : public WeightSource {
 public:
  ByLayer(const Hdf5File* file, std::string group) : file_(file), group_(std::move(group)) {}

  bool Has(const std::string&) const override { return true; }

  std::shared_ptr<WeightSource> OfLayer(const std::string&, const std::string& name,
                                        std::string* layer_path) override {
    layer_path->clear();
    std::shared_ptr<WeightSource>& layer = layers_[name];
    if (layer == nullptr) layer = Make(name);
    return layer;
  }

 protected:
  virtual std::shared_ptr<WeightSource> Make(const std::string& name) = 0;

  const Hdf5File* const file_;
  const std::string group_;

 private:
  std::map<std::string, std::shared_ptr<WeightSource>> layers_;
};

// The arrays of one layer, in order.
class Ordered : public ByLayer {
 public:
  Ordered(const Hdf5File* file, std::string group, std::vector<std::string> names)
      : ByLayer(file, std::move(group)), names_(std::move(names)) {}

  absl::StatusOr<Tensor> Get(const std::string& path, int index) override {
    // A layer's own variables lie side by side, whichever is asked for first.
    int& own = own_[path];
    for (; own <= index; ++own) taken_[{path, own}] = next_++;
    const size_t number = taken_[{path, index}];
    if (number >= names_.size())
      return absl::NotFoundError(absl::StrCat("the weights file has ", names_.size(), " arrays in ",
                                              Quoted(group_), ", one more is needed"));
    return file_->Read(absl::StrCat(group_, "/", names_[number]));
  }

 private:
  // Weights of a nested model carry the names of their layers.
  std::shared_ptr<WeightSource> Make(const std::string& name) override {
    std::vector<std::string> mine;
    for (const std::string& full : names_) {
      const std::vector<std::string> parts = absl::StrSplit(full, '/');
      if (std::find(parts.begin(), parts.end(), name) != parts.end()) mine.push_back(full);
    }
    return std::make_shared<Ordered>(file_, group_, std::move(mine));
  }

  const std::vector<std::string> names_;
  std::map<std::pair<std::string, int>, size_t> taken_;  // which array a variable is
  std::map<std::string, int> own_;                       // variables of a path that are taken
  size_t next_ = 0;
};

class ByName : public ByLayer {
 public:
  using ByLayer::ByLayer;

  absl::StatusOr<Tensor> Get(const std::string&, int) override {
    return absl::NotFoundError("weights of the model itself, outside its layers");
  }

 private:
  std::shared_ptr<WeightSource> Make(const std::string& name) override {
    const std::string group = absl::StrCat(group_, group_.empty() ? "" : "/", name);
    auto names = file_->Strings(group, "weight_names");
    if (!names.ok()) names = std::vector<std::string>();
    return std::make_shared<Ordered>(file_, group, *std::move(names));
  }
};

bool Upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool Lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

}  // namespace

absl::StatusOr<Tensor> LayerWeights::Get(int index) const {
  if (source_ == nullptr) return absl::NotFoundError("there is no weights file");
  return source_->Get(path_, index);
}

LayerWeights LayerWeights::Child(const std::string& name) const {
  return {source_, absl::StrCat(path_, path_.empty() ? "" : "/", name)};
}

LayerWeights LayerWeights::Child(const std::string& name, const std::string& other) const {
  LayerWeights first = Child(name);
  return source_ == nullptr || source_->Has(first.path_) ? first : Child(other);
}

LayerWeights LayerWeights::OfLayer(const std::string& place, const std::string& name) const {
  if (source_ == nullptr) return {};
  std::string path;
  auto source = source_->OfLayer(absl::StrCat(path_, path_.empty() ? "" : "/", "layers/", place),
                                 name, &path);
  return {std::move(source), std::move(path)};
}

LayerWeights WeightsByPlace(const Hdf5File* file) { return {std::make_shared<ByPlace>(file), ""}; }

LayerWeights WeightsByName(const Hdf5File* file, const std::string& group) {
  return {std::make_shared<ByName>(file, group), ""};
}

std::string SnakeCase(const std::string& exported_name) {
  // The one layer whose class is not called as it is exported.
  const std::string class_name =
      exported_name == "GroupQueryAttention" ? "GroupedQueryAttention" : exported_name;
  std::string words;  // a word that begins with a capital and goes on in small letters
  for (size_t i = 0; i < class_name.size();) {
    if (i + 2 < class_name.size() && Upper(class_name[i + 1]) && Lower(class_name[i + 2])) {
      words += {class_name[i], '_', class_name[i + 1]};
      for (i += 2; i < class_name.size() && Lower(class_name[i]); ++i) words += class_name[i];
    } else {
      words += class_name[i++];
    }
  }
  std::string snake;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0 && Lower(words[i - 1]) && Upper(words[i])) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(words[i])));
  }
  return snake;
}

}  // namespace floe::keras
