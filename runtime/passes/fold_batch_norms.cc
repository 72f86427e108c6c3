#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/op_def.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

bool IsBatchNorm(const Node& node) { return node.op->name.rfind("FusedBatchNorm", 0) == 0; }

// y = x * scale + shift, channel by channel. float64, so that folding rounds once.
struct Affine {
  std::vector<double> scale, shift;
  bool scales = false;  // something was multiplied

  explicit Affine(int64_t channels)
      : scale(static_cast<size_t>(channels), 1.0), shift(static_cast<size_t>(channels), 0.0) {}
  void Multiply(const std::vector<float>& by, bool divide) {
    for (size_t c = 0; c < scale.size(); ++c) {
      const double factor = divide ? 1.0 / static_cast<double>(by[c]) : by[c];
      scale[c] *= factor;
      shift[c] *= factor;
    }
    scales = true;
  }
  void Add(const std::vector<float>& what, double sign) {
    for (size_t c = 0; c < shift.size(); ++c) shift[c] += sign * static_cast<double>(what[c]);
  }
  bool Finite() const {
    for (size_t c = 0; c < scale.size(); ++c) {
      if (!std::isfinite(static_cast<float>(scale[c])) ||
          !std::isfinite(static_cast<float>(shift[c])))
        return false;
    }
    return true;
  }
};

// Follows the readers of a product while each multiplies or shifts whole channels by constants.
class Folder {
 public:
  explicit Folder(const Graph& graph) : graph_(graph), uses_(graph), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) FindChain(i);
    for (int i = 0; i < graph_.size(); ++i) {
      const auto chain = chains_.find(i);
      if (chain == chains_.end() || !EmitFolded(i, chain->second)) rebuild_.Keep(i);
    }
    return rebuild_.Finish();
  }

 private:
  struct Chain {
    int product;
    Affine affine;
  };

  void FindChain(int product) {
    const Node& node = graph_.node(product);
    const Channels channels = ChannelsOf(graph_, node);
    if (channels.weights == nullptr || channels.count < 1 || EpilogueOf(node.attrs) != Epilogue())
      return;
    Affine affine(channels.count);
    int end = product;
    for (int user = uses_.OnlyUser(end); user >= 0; user = uses_.OnlyUser(end)) {
      Affine longer = affine;
      if (!Extend(user, end, channels, &longer) || !longer.Finite()) break;
      affine = std::move(longer);
      end = user;
    }
    if (affine.scales) chains_.emplace(end, Chain{product, std::move(affine)});
  }

  // True when `node` is such a step; its data is output 0 of `from`.
  bool Extend(int user, int from, const Channels& channels, Affine* affine) const {
    const Node& node = graph_.node(user);
    const std::string& op = node.op->name;
    if (IsBatchNorm(node)) return ExtendByNorm(user, from, channels, affine);
    if (node.inputs.size() != 2 || node.inputs[0].node == node.inputs[1].node) return false;
    const int side = node.inputs[0].node == from ? 0 : 1;
    const Tensor* constant = ConstantOf(graph_, node.inputs[1 - side]);
    if (constant == nullptr) return false;
    std::vector<float> values;
    if (op == "BiasAdd") {
      const bool first = node.attrs.String("data_format") == "NCHW";
      // In two dims the last one is dim 1 either way.
      if (side != 0 || (first && (channels.rank != 2 || channels.deep))) return false;
      if (constant->shape() != Shape({channels.count})) return false;
      if (!AlongAxis(*constant, 1, 0, channels.count, &values)) return false;
      affine->Add(values, 1);
      return true;
    }
    if (!AlongAxis(*constant, channels.rank, channels.axis, channels.count, &values)) return false;
    if (op == "Mul") {
      affine->Multiply(values, false);
    } else if (op == "RealDiv" && side == 0) {
      affine->Multiply(values, true);
    } else if (op == "Add") {
      affine->Add(values, 1);
    } else if (op == "Sub" && side == 0) {
      affine->Add(values, -1);
    } else {
      return false;
    }
    return true;
  }

  bool ExtendByNorm(int user, int from, const Channels& channels, Affine* affine) const {
    const Node& node = graph_.node(user);
    const bool first = node.attrs.String("data_format", "NHWC").substr(0, 2) == "NC";
    if (node.attrs.Bool("is_training", true) || node.inputs.size() != 5 ||
        node.inputs[0].node != from || first || channels.rank < 4 || !uses_.first_output_only[user])
      return false;
    std::vector<float> p[4];  // scale, offset, mean, variance
    for (int k = 0; k < 4; ++k) {
      const Tensor* constant = ConstantOf(graph_, node.inputs[k + 1]);
      if (constant == nullptr || constant->shape() != Shape({channels.count}) ||
          !AlongAxis(*constant, 1, 0, channels.count, &p[k]))
        return false;
    }
    const double epsilon = node.attrs.Float("epsilon", 1e-4f);
    for (size_t c = 0; c < affine->scale.size(); ++c) {
      const double factor = p[0][c] / std::sqrt(static_cast<double>(p[3][c]) + epsilon);
      affine->scale[c] *= factor;
      affine->shift[c] =
          (affine->shift[c] - static_cast<double>(p[2][c])) * factor + static_cast<double>(p[1][c]);
    }
    affine->scales = true;
    return true;
  }

  // The weights times the scale; nothing when a product leaves float32.
  static std::optional<Tensor> Scaled(const Channels& channels, const Affine& affine) {
    Tensor scaled = Tensor::Allocate(DType::kFloat32, channels.weights->shape());
    const float* from = channels.weights->as<float>();
    float* to = static_cast<float*>(scaled.mutable_data());
    const int64_t n = scaled.elements(), inner = channels.inner;
    bool finite = true;  // looked at once a row, so that the loops need not stop
    const auto times = [&finite](float value, double scale) {
      const auto product = static_cast<float>(value * scale);
      finite &= std::abs(product) <= std::numeric_limits<float>::max();
      return product;
    };
    int64_t channel = 0;
    for (int64_t i = 0; i < n && finite;) {
      if (inner == 1) {  // the usual layout: channels last
        for (const double scale : affine.scale) {
          to[i] = times(from[i], scale);
          ++i;
        }
        continue;
      }
      const double scale = affine.scale[static_cast<size_t>(channel)];
      for (const int64_t end = i + inner; i < end; ++i) to[i] = times(from[i], scale);
      if (++channel == channels.count) channel = 0;
    }
    if (!finite) return std::nullopt;
    return scaled;
  }

  // In the place of the chain's last node: the product with other weights, and one bias.
  bool EmitFolded(int end, const Chain& chain) {
    Node product = graph_.node(chain.product);
    const Channels channels = ChannelsOf(graph_, product);
    const std::optional<Tensor> weights = Scaled(channels, chain.affine);
    if (!weights.has_value()) return false;
    const std::string name = graph_.node(end).name;
    for (ValueRef& in : product.inputs) in = rebuild_.Map(in);
    product.inputs[1] = {rebuild_.Append(ConstNode(absl::StrCat(name, "/weights"), *weights)), 0};
    std::vector<float> shift(chain.affine.shift.begin(), chain.affine.shift.end());
    Node bias;
    bias.name = name;
    bias.op = FindOp("BiasAdd");
    bias.attrs.Set("T", DType::kFloat32);
    product.name = absl::StrCat(name, "/product");
    const ValueRef data{rebuild_.Append(std::move(product)), 0};
    const ValueRef vector{rebuild_.Append(ConstNode(absl::StrCat(name, "/bias"),
                                                    Tensor::Vector(DType::kFloat32, shift))),
                          0};
    bias.inputs = {data, vector};
    rebuild_.Emit(end, std::move(bias));
    return true;
  }

  const Graph& graph_;
  const Uses uses_;
  Rebuild rebuild_;
  std::map<int, Chain> chains_;  // by their last node
};

}  // namespace

void FoldBatchNorms(Graph* graph) { *graph = Folder(*graph).Run(); }

}  // namespace floe
