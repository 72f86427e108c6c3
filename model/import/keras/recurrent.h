// Recurrent layers: cells, and the loop over time that runs one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/import/keras/layer.h"

namespace floe::keras {

struct CellStep {
  ValueRef output;
  std::vector<ValueRef> states;
};

// What is done at each step. Works in any graph: weights are constants of the graph that asks.
class Cell {
 public:
  // The options, weights and file of `c`, whose call is none of the cell's.
  Cell(LayerContext& c, const Json& config, LayerWeights weights);
  virtual ~Cell() = default;

  // What depends on the inputs alone, done for all steps at once (x of any rank, features last).
  virtual ValueRef Project(GraphBuilder& b, ValueRef x) = 0;
  virtual CellStep Step(GraphBuilder& b, ValueRef projected,
                        const std::vector<ValueRef>& states) = 0;
  // States of zeros for a projected sequence [batch, time, ...].
  virtual std::vector<ValueRef> ZeroStates(GraphBuilder& b, ValueRef projected);
  // The number of units of each state.
  virtual std::vector<int64_t> StateSizes() const { return {units_}; }
  int64_t units() const { return units_; }

 protected:
  ValueRef Weight(GraphBuilder& b, int index) const;
  ValueRef Activate(GraphBuilder& b, const std::string& option, ValueRef x) const;
  bool Option(const std::string& name, bool otherwise) const;
  const Config& options() const { return options_; }

  int64_t units_ = 1;

 private:
  LayerContext& c_;
  const Config options_;
  const LayerWeights weights_;
};

// The cell of a layer (LSTM, LSTMCell, ...) or of a list of cells; null after an error. `c`
// outlives it.
std::unique_ptr<Cell> MakeCell(LayerContext& c, const std::string& class_name, const Json& config,
                               const LayerWeights& weights);

struct Sequence {
  ValueRef x;                    // projected: [batch, time, ...]
  ValueRef mask;                 // [batch, time] or none
  std::vector<ValueRef> states;  // before the first step
  bool backwards = false, zero_output_for_mask = false, return_sequences = false;
};
struct SequenceResult {
  ValueRef output;  // [batch, time, ...] or that of the last step
  std::vector<ValueRef> states;
};
SequenceResult RunSequence(GraphBuilder& b, Cell& cell, const Sequence& sequence);

// A whole layer: arguments, masks, the loop, and what is returned, by the options of `config`.
// `backwards` and `zero_output` are set by layers that wrap this one.
struct RecurrentOptions {
  bool backwards = false, zero_output_for_mask = false, return_sequences = false;
  bool return_state = false;
};
RecurrentOptions OptionsOf(LayerContext& c, const Json& config);
KValue RunRecurrent(LayerContext& c, Cell& cell, const RecurrentOptions& options,
                    std::vector<ValueRef> initial);
// The initial states that a call names, flat; none where it names none.
std::vector<ValueRef> InitialStates(LayerContext& c);

}  // namespace floe::keras
