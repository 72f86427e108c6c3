// Where a layer's variables lie in a weights file: by place in the model (.keras and what
// save_weights writes today), or in order (.h5).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/import/keras/hdf5_file.h"
#include "model/import/keras/json.h"
#include "model/tensor.h"

namespace floe::keras {

// One way of laying out weights. Paths are those of layers: "layers/dense". Threading: one thread.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual absl::StatusOr<Tensor> Get(const std::string& path, int index) = 0;
  virtual absl::StatusOr<Tensor> Named(const std::string& path, const std::string& name) = 0;
  // Whether there is something at a path; true where paths mean nothing.
  virtual bool Has(const std::string& path) const = 0;
  // Where a layer is that has this path if layers of a class are counted once.
  virtual std::string Moved(const std::string& path) const = 0;
};

// The variables of one layer and of the objects in it. A cheap value.
class LayerWeights {
 public:
  LayerWeights() = default;  // of a layer without any
  LayerWeights(std::shared_ptr<WeightSource> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {}

  // The layer's own variable number `index`, in the order in which the layer makes them, those that
  // are trained first. NOT_FOUND names the place; INVALID_ARGUMENT where the file has more or fewer
  // arrays than the configuration asks for, or one of another shape.
  absl::StatusOr<Tensor> Get(int index) const;
  // What the layer has saved by a name of its own. NOT_FOUND, always in .h5 files.
  absl::StatusOr<Tensor> Named(const std::string& name) const;
  // Those of the attribute `name` of the layer, which is a layer.
  LayerWeights Child(const std::string& name) const;
  // The same for an attribute that versions of Keras call differently: the name that is there.
  LayerWeights Child(const std::string& name, const std::string& other) const;
  // Those of a layer of a model, by class and number (PlaceNames).
  LayerWeights OfLayer(const std::string& place) const;
  const std::string& path() const { return path_; }

 private:
  std::shared_ptr<WeightSource> source_;
  std::string path_;
};

// model.weights.h5 and what save_weights writes today: layers/dense/vars/0. `file` is of `model`.
LayerWeights WeightsByPlace(const Hdf5File* file, const Json& model);
// Whole models in .h5 and old save_weights: a group for each layer, whose weight_names lists its
// arrays, those of nested models too, in Keras' order: all that are trained before all others.
// `group` is where they begin, `version` that of Keras, 2 or 3. Layers and groups are matched in
// order as well; their names count only where there are more of the one than of the other.
absl::StatusOr<LayerWeights> WeightsInOrder(const Hdf5File* file, const std::string& group,
                                            const Json& model, int version);

}  // namespace floe::keras
