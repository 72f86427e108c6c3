// Where a layer's variables lie in a weights file, new (by place in the model) or old (by order).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/import/keras/hdf5_file.h"
#include "model/tensor.h"

namespace floe::keras {

// One way of laying out weights. Threading: one thread.
class WeightSource : public std::enable_shared_from_this<WeightSource> {
 public:
  virtual ~WeightSource() = default;
  virtual absl::StatusOr<Tensor> Get(const std::string& path, int index) = 0;
  // Whether there is something at a path; true where paths mean nothing.
  virtual bool Has(const std::string& path) const = 0;
  // The source and the path of a layer inside a model at `path`.
  virtual std::shared_ptr<WeightSource> OfLayer(const std::string& path, const std::string& name,
                                                std::string* layer_path) = 0;
};

// The variables of one layer and of the objects in it. A cheap value.
class LayerWeights {
 public:
  LayerWeights() = default;  // of a layer without any
  LayerWeights(std::shared_ptr<WeightSource> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {}

  // The layer's own variable number `index`. Layers ask in the order in which they make variables,
  // those that are trained first; asking again gives the same. NOT_FOUND names the place.
  absl::StatusOr<Tensor> Get(int index) const;
  // Those of the attribute `name` of the layer, which is a layer.
  LayerWeights Child(const std::string& name) const;
  // The same for an attribute that versions of Keras call differently: the name that is there.
  LayerWeights Child(const std::string& name, const std::string& other) const;
  // Those of a layer of a model. `place`: its name by class and number; `name`: its own.
  LayerWeights OfLayer(const std::string& place, const std::string& name) const;
  const std::string& path() const { return path_; }

 private:
  std::shared_ptr<WeightSource> source_;
  std::string path_;
};

// model.weights.h5 and what save_weights writes today: layers/dense/vars/0.
LayerWeights WeightsByPlace(const Hdf5File* file);
// Whole models in .h5 and old save_weights: groups by layer, weight_names in each. `group` is where
// they begin.
LayerWeights WeightsByName(const Hdf5File* file, const std::string& group);

// "Conv2DTranspose" -> "conv2d_transpose", as Keras names places.
std::string SnakeCase(const std::string& exported_name);

}  // namespace floe::keras
