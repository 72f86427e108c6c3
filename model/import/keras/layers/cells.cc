// The cells of recurrent layers: LSTM, GRU, SimpleRNN and stacks of them.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/recurrent.h"
#include "model/import/keras/variables.h"

namespace floe::keras {

Cell::Cell(LayerContext& c, const Json& config, LayerWeights weights)
    : c_(c), options_(c.Nested(config, "its cell")), weights_(std::move(weights)) {
  Config options = options_;
  options.Ignore({"dropout", "recurrent_dropout", "unit_forget_bias"});  // of training
  units_ = options.Int("units", options.Int("filters", 1));
  c.b.Fail(options.status());
  if (units_ < 1 || units_ > INT32_MAX / 8) c.b.Fail(absl::StrCat("units is ", units_));
}

ValueRef Cell::Weight(GraphBuilder& b, int index) const {
  if (!b.ok()) return {};
  const absl::StatusOr<Tensor> tensor = weights_.Get(index);
  if (!tensor.ok()) {
    b.Fail(Annotate(tensor.status(), absl::StrCat("variable ", index)));
    return {};
  }
  return Cast(b, b.Const(*tensor), c_.compute_dtype);
}

ValueRef Cell::Activate(GraphBuilder& b, const std::string& option, ValueRef x) const {
  LayerContext inner{b,        c_.file,       c_.layer, c_.call,         c_.log,
                     options_, c_.class_name, c_.name,  c_.compute_dtype};
  return inner.Activate(option, x);
}

bool Cell::Option(const std::string& name, bool otherwise) const {
  Config options = options_;
  return options.Bool(name, otherwise);
}

std::vector<ValueRef> Cell::ZeroStates(GraphBuilder& b, ValueRef projected) {
  std::vector<ValueRef> states;
  for (const int64_t size : StateSizes())
    states.push_back(Fill(b, {DimOf(b, projected, 0), size}, Scalar(b, b.dtype(projected), 0)));
  return states;
}

namespace {

class SimpleRnn : public Cell {
 public:
  using Cell::Cell;
  ValueRef Project(GraphBuilder& b, ValueRef x) override {
    const ValueRef y = MatrixProduct(b, x, Weight(b, 0));
    return Option("use_bias", true) ? b.Op("BiasAdd", {y, Weight(b, 2)}) : y;
  }
  CellStep Step(GraphBuilder& b, ValueRef x, const std::vector<ValueRef>& states) override {
    const ValueRef h =
        Activate(b, "activation", Add(b, x, MatrixProduct(b, states[0], Weight(b, 1))));
    return {h, {h}};
  }
};

class Lstm : public Cell {
 public:
  using Cell::Cell;
  std::vector<int64_t> StateSizes() const override { return {units_, units_}; }
  ValueRef Project(GraphBuilder& b, ValueRef x) override {
    const ValueRef y = MatrixProduct(b, x, Weight(b, 0));
    return Option("use_bias", true) ? b.Op("BiasAdd", {y, Weight(b, 2)}) : y;
  }
  CellStep Step(GraphBuilder& b, ValueRef x, const std::vector<ValueRef>& states) override {
    if (states.size() < 2) {
      b.Fail("it needs two initial states");
      return {};
    }
    const ValueRef z = Add(b, x, MatrixProduct(b, states[0], Weight(b, 1)));
    const std::vector<ValueRef> gates = Split(b, z, 1, 4);
    const auto gate = [&](int k) { return Activate(b, "recurrent_activation", gates[k]); };
    const ValueRef in = gate(0), forget = gate(1);
    const ValueRef c =
        Add(b, Mul(b, forget, states[1]), Mul(b, in, Activate(b, "activation", gates[2])));
    const ValueRef h = Mul(b, gate(3), Activate(b, "activation", c));
    return {h, {h, c}};
  }
};

class Gru : public Cell {
 public:
  using Cell::Cell;
  ValueRef Project(GraphBuilder& b, ValueRef x) override {
    const ValueRef y = MatrixProduct(b, x, Weight(b, 0));
    if (!Option("use_bias", true)) return y;
    const ValueRef bias = Weight(b, 2);
    return b.Op("BiasAdd", {y, ResetAfter() ? At(b, bias, 0, 0) : bias});
  }
  CellStep Step(GraphBuilder& b, ValueRef x, const std::vector<ValueRef>& states) override {
    const ValueRef h = states[0];
    const std::vector<ValueRef> xs = Split(b, x, 1, 3);
    ValueRef update, candidate;
    if (ResetAfter()) {
      ValueRef inner = MatrixProduct(b, h, Weight(b, 1));
      if (Option("use_bias", true)) inner = b.Op("BiasAdd", {inner, At(b, Weight(b, 2), 0, 1)});
      const std::vector<ValueRef> hs = Split(b, inner, 1, 3);
      update = Activate(b, "recurrent_activation", Add(b, xs[0], hs[0]));
      const ValueRef reset = Activate(b, "recurrent_activation", Add(b, xs[1], hs[1]));
      candidate = Add(b, xs[2], Mul(b, reset, hs[2]));
    } else {
      const std::vector<ValueRef> kernels = Split(b, Weight(b, 1), 1, 3);
      update = Activate(b, "recurrent_activation", Add(b, xs[0], MatrixProduct(b, h, kernels[0])));
      const ValueRef reset =
          Activate(b, "recurrent_activation", Add(b, xs[1], MatrixProduct(b, h, kernels[1])));
      candidate = Add(b, xs[2], MatrixProduct(b, Mul(b, reset, h), kernels[2]));
    }
    candidate = Activate(b, "activation", candidate);
    const ValueRef rest = Sub(b, Scalar(b, b.dtype(update), 1), update);
    const ValueRef next = Add(b, Mul(b, update, h), Mul(b, rest, candidate));
    return {next, {next}};
  }

 private:
  bool ResetAfter() const { return Option("reset_after", true); }
};

// Cells one above the other.
class Stack : public Cell {
 public:
  Stack(LayerContext& c, const Json& config, const LayerWeights& weights)
      : Cell(c, config, weights) {
    const Json& cells = options().At("cells");
    PlaceNames places;
    for (const Json& cell : cells) {
      const std::string name = Text(cell, "class_name"), place = places.Next(name);
      cells_.push_back(
          MakeCell(c, name, Member(cell, "config"), weights.Child("cells").Child(place)));
      if (cells_.back() == nullptr) return;
    }
    if (cells_.empty())
      c.Fail("a stack of no cells");
    else
      units_ = cells_.back()->units();
  }
  std::vector<int64_t> StateSizes() const override {
    std::vector<int64_t> sizes;
    for (const auto& cell : cells_) {
      for (const int64_t size : cell->StateSizes()) sizes.push_back(size);
    }
    return sizes;
  }
  ValueRef Project(GraphBuilder& b, ValueRef x) override {
    return b.ok() ? cells_[0]->Project(b, x) : ValueRef();
  }
  CellStep Step(GraphBuilder& b, ValueRef x, const std::vector<ValueRef>& states) override {
    CellStep all;
    size_t at = 0;
    for (size_t k = 0; k < cells_.size() && b.ok(); ++k) {
      if (k > 0) x = cells_[k]->Project(b, x);
      const size_t count = cells_[k]->StateSizes().size();
      if (at + count > states.size()) {
        b.Fail(absl::StrCat("it is given ", states.size(), " states"));
        return {};
      }
      CellStep step = cells_[k]->Step(b, x,
                                      {states.begin() + static_cast<int64_t>(at),
                                       states.begin() + static_cast<int64_t>(at + count)});
      at += count;
      x = step.output;
      all.states.insert(all.states.end(), step.states.begin(), step.states.end());
    }
    all.output = x;
    return all;
  }

 private:
  std::vector<std::unique_ptr<Cell>> cells_;
};

}  // namespace

std::unique_ptr<Cell> MakeCell(LayerContext& c, const std::string& class_name, const Json& config,
                               const LayerWeights& weights) {
  std::unique_ptr<Cell> cell;
  if (class_name == "LSTM" || class_name == "LSTMCell")
    cell = std::make_unique<Lstm>(c, config, weights);
  if (class_name == "GRU" || class_name == "GRUCell")
    cell = std::make_unique<Gru>(c, config, weights);
  if (class_name == "SimpleRNN" || class_name == "SimpleRNNCell")
    cell = std::make_unique<SimpleRnn>(c, config, weights);
  if (class_name == "StackedRNNCells") cell = std::make_unique<Stack>(c, config, weights);
  if (cell == nullptr)
    c.b.Fail(absl::UnimplementedError(
        absl::StrCat("a cell of class ", Quoted(class_name),
                     " is not supported; export the model with model.export() and serve the "
                     "SavedModel that it writes")));
  return c.b.ok() ? std::move(cell) : nullptr;
}

}  // namespace floe::keras
