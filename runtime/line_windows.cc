#include "runtime/line_windows.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/passes/line_slice.h"

namespace floe {
namespace {

constexpr int64_t kTriedRows = 2;  // rows that are no dimension of size one

class WindowMaker {
 public:
  WindowMaker(const Graph& graph, std::vector<Slot>* slots, std::vector<Step>* steps)
      : graph_(graph),
        slots_(*slots),
        steps_(*steps),
        uses_(slots->size()),
        maker_(slots->size(), nullptr),
        pinned_(slots->size(), false) {}

  void Run(absl::Span<const int> outputs) {
    for (const int out : outputs) pinned_[out] = true;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].root != static_cast<int>(i)) pinned_[slots_[i].root] = true;
    }
    for (const Step& step : steps_) {
      for (size_t k = 0; k < step.inputs.size(); ++k)
        uses_[step.inputs[k]].push_back({&step, static_cast<int>(k)});
      for (const int out : step.outputs) maker_[out] = &step;
    }
    // The last first, so that a whole that is itself a part has its place before its parts do.
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) PlaceJoined(*step);
    for (const Step& step : steps_) {
      PlaceSplit(step);
      PlaceSlice(step);
    }
    for (Step& step : steps_) SetStrides(&step);
  }

 private:
  struct Use {
    const Step* step;
    int input;
  };
  struct Shapes {
    std::vector<Shape> inputs, outputs;
  };

  static bool IsPlanned(const Step& step) { return !step.dynamic && step.kernel != nullptr; }

  // Elements of a line; 0: not known, or there are no lines.
  static int64_t Width(const TensorType& type) {
    const SymShape& shape = type.shape;
    if (!shape.known() || shape.rank() < 2 || DTypeSize(type.dtype) == 0) return 0;
    const Dim last = shape.dim(shape.rank() - 1);
    return last.concrete() ? last.size() : 0;
  }

  // Parts in front of their whole.
  void PlaceJoined(const Step& step) {
    const std::string& op = graph_.node(step.node).op->name;
    const bool axis_first = op == "Concat";
    if ((op != "ConcatV2" && !axis_first) || !IsPlanned(step) || !step.kernel->WritesSpacedLines())
      return;
    int64_t at = 0;
    const size_t first = axis_first ? 1 : 0;
    for (size_t k = first; k < first + step.inputs.size() - 1; ++k) {
      const int part = step.inputs[k];
      if (IsMadeApart(part)) PlacePart(step.outputs[0], part, at);
      at += Width(slots_[part].type);
    }
  }

  bool IsMadeApart(int part) const {
    const Step* maker = maker_[part];
    return maker != nullptr && IsPlanned(*maker) && maker->outputs.size() == 1 &&
           maker->kernel->WritesSpacedLines();
  }

  // Parts behind their whole.
  void PlaceSplit(const Step& step) {
    const std::string& op = graph_.node(step.node).op->name;
    const int data = op == "Split" ? 1 : 0;
    if ((op != "SplitV" && data == 0) || !IsPlanned(step) || !ReadsSpaced({&step, data})) return;
    int64_t at = 0;
    for (const int part : step.outputs) {
      PlacePart(step.inputs[data], part, at);
      at += Width(slots_[part].type);
    }
  }

  void PlaceSlice(const Step& step) {
    const Node& node = graph_.node(step.node);
    if ((node.op->name != "Slice" && node.op->name != "StridedSlice") || !IsPlanned(step)) return;
    std::vector<ValueInfo> inputs;
    for (const int in : step.inputs) {
      const bool constant = slots_[in].home == Slot::Home::kConstant;
      inputs.push_back({slots_[in].type, constant ? slots_[in].constant : Tensor(), {}});
    }
    const std::optional<int64_t> at =
        LineSliceStart(node, inputs, slots_[step.outputs[0]].type.shape);
    if (at.has_value()) PlacePart(step.inputs[0], step.outputs[0], *at);
  }

  // Elements [at, at + its width) of each line of the whole.
  void PlacePart(int whole, int part, int64_t at) {
    const Slot& of = slots_[whole];
    Slot& slot = slots_[part];
    const int64_t width = Width(of.type), line = Width(slot.type),
                  size = static_cast<int64_t>(DTypeSize(of.type.dtype));
    if (slots_[of.root].home != Slot::Home::kArena || line < kShortestWindowLine || at < 0 ||
        at + line > width || !IsOwn(part) || !AllReadSpaced(part))
      return;
    slot.root = of.root;
    slot.window_offset = of.window_offset + at * size;
    slot.line_stride = of.line_stride != 0 ? of.line_stride : width;
  }

  bool IsOwn(int part) const {
    return slots_[part].home == Slot::Home::kArena && slots_[part].root == part && !pinned_[part];
  }

  bool AllReadSpaced(int part) {
    return std::all_of(uses_[part].begin(), uses_[part].end(),
                       [this](const Use& use) { return ReadsSpaced(use); });
  }

  bool ReadsSpaced(const Use& use) {
    if (!IsPlanned(*use.step)) return false;
    const auto [at, fresh] = shapes_.try_emplace(use.step);
    if (fresh) at->second = {ShapesOf(use.step->inputs), ShapesOf(use.step->outputs)};
    return use.step->kernel->ReadsSpacedLines(use.input, at->second.inputs, at->second.outputs);
  }

  std::vector<Shape> ShapesOf(const std::vector<int>& slots) const {
    std::vector<Shape> shapes;
    shapes.reserve(slots.size());
    for (const int s : slots) shapes.push_back(slots_[s].type.shape.At(kTriedRows));
    return shapes;
  }

  void SetStrides(Step* step) const {
    std::vector<int64_t> strides;
    for (const std::vector<int>* slots : {&step->inputs, &step->outputs}) {
      for (const int s : *slots) strides.push_back(slots_[s].line_stride);
    }
    const bool any =
        std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 0; });
    if (any) step->line_strides = std::move(strides);
  }

  const Graph& graph_;
  std::vector<Slot>& slots_;
  std::vector<Step>& steps_;
  std::vector<std::vector<Use>> uses_;  // by slot
  std::vector<const Step*> maker_;      // by slot
  std::vector<bool> pinned_;            // read as they are: outputs, and what others are views of
  std::unordered_map<const Step*, Shapes> shapes_;  // of steps that were asked
};

}  // namespace

void MakeLineWindows(const Graph& graph, absl::Span<const int> outputs, std::vector<Slot>* slots,
                     std::vector<Step>* steps) {
  WindowMaker(graph, slots, steps).Run(outputs);
}

int64_t BytesInPlace(const std::vector<Slot>& slots, const Step& step, int64_t rows) {
  int64_t bytes = 0;
  for (const int in : step.inputs) {
    for (const int out : step.outputs) {
      const bool joined = IsWindowOf(slots[in], slots[out]);
      if (!joined && !IsWindowOf(slots[out], slots[in])) continue;
      const TensorType& part = slots[joined ? in : out].type;
      bytes += part.shape.elements().At(rows) * static_cast<int64_t>(DTypeSize(part.dtype));
    }
  }
  return bytes;
}

}  // namespace floe
