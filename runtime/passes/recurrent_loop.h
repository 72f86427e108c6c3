// Recognises a loop over time that runs a recurrent cell.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "model/graph.h"
#include "runtime/analyze.h"
#include "runtime/passes/recurrent_cell.h"

namespace floe {

// What does the same as the loop. Values are those of the loop's graph.
struct RecurrentLoop {
  MatchedCell cell;
  ValueRef sequence;             // [time, batch, in]
  ValueRef mask;                 // [time, batch] or [time, batch, 1]; none without masks
  int64_t steps = -1;            // -1: all of the sequence, whose length is not known
  ValueRef length;               // then: the scalar that is its length
  bool backwards = false;        // from the last element of the sequence on
  std::vector<ValueRef> states;  // before the first step: h, c
  // What each variable of the loop is after it.
  enum class End : uint8_t {
    kSame,   // what it was
    kSteps,  // a counter: what it was and the number of steps
    kH,
    kC,
    kSequence,    // the list of all outputs: h, or what masks leave of it
    kOutput,      // the output of the last step
    kLastAsList,  // a list of that alone
  };
  std::vector<End> ends;
  // Scalars that are known to be the number of steps.
  std::vector<ValueRef> counts;
  // Handles of the TensorArrays that are read, each with the node that fills it.
  std::vector<std::pair<ValueRef, int>> filled;
  ValueRef written;          // the handle of the TensorArray that is written, if one is
  bool zero_output = false;  // outputs of masked steps are 0, not the output before
  // The output of the last step is h, even where all steps were masked.
  bool output_is_h = true;
};

struct RecurrentContext {
  const Graph& graph;
  const Analysis& analysis;
  const KernelOptions& options;
  // Units of states that loops in front of this one leave, where the analysis does not know them.
  const std::map<ValueRef, int64_t>& units;
};

// Nothing unless every variable of the While is known: a counter, a list that is read or written at
// the counter, a state of the cell, or a value that stays. Errors are those of MatchRecurrentCell.
absl::StatusOr<std::optional<RecurrentLoop>> MatchRecurrentLoop(const RecurrentContext& context,
                                                                const Node& loop);

// Whether what a TensorArray declares of its elements allows [batch, units].
bool ElementFits(const Node& array, int64_t units);
// 0, 1, 2, ...
bool CountsUp(const Tensor& values);

}  // namespace floe
