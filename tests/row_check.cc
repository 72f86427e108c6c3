#include "tests/row_check.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::corpus {
namespace {

using Order = std::vector<int64_t>;

// Rows `order` of a tensor, counted over its rows again and again.
Tensor PickRows(const Tensor& from, const Order& order) {
  Shape shape = from.shape();
  const int64_t rows = shape.dim(0), row = from.elements() / rows;
  shape.set_dim(0, static_cast<int64_t>(order.size()));
  Tensor to = Tensor::Allocate(from.dtype(), shape);
  const size_t size = DTypeSize(from.dtype());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t source = order[i] % rows * row, target = static_cast<int64_t>(i) * row;
    if (from.dtype() == DType::kString) {
      std::copy_n(from.as<std::string>() + source, row,
                  static_cast<std::string*>(to.mutable_data()) + target);
    } else {
      std::memcpy(static_cast<char*>(to.mutable_data()) + target * size,
                  from.as<char>() + source * size, row * size);
    }
  }
  return to;
}

// One signature of the case: some inputs open, the rest constant.
class RowChecker {
 public:
  RowChecker(const CorpusCase& c, cli::LocalModel model, std::vector<Tensor> open)
      : case_(c), model_(std::move(model)), open_(std::move(open)) {}

  // False where the runtime would not batch.
  absl::StatusOr<bool> Run() {
    const auto bound = Bind(All());
    if (!bound.ok() || !bound->plan->has_rows() || !bound->plan->batchable()) return false;
    FLOE_RETURN_IF_ERROR(CompareWithCase());
    Order together = All(), backwards(together.rbegin(), together.rend());
    const absl::Status alone = RunAlone();
    if (!alone.ok()) {  // a row that fails does so in company too
      if (Outputs(together).ok()) return Annotate(alone, "fails alone and runs in company");
      return true;
    }
    for (const Order& order : {together, backwards, Order{2, 0}, Order{1, 1, 3}})
      FLOE_RETURN_IF_ERROR(CompareRows(order));
    return true;
  }

 private:
  static Order All() {
    Order order(4);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  absl::StatusOr<cli::BoundCall> Bind(const Order& order) const {
    std::vector<Tensor> inputs = open_;
    for (Tensor& input : inputs) {
      if (input.valid()) input = PickRows(input, order);
    }
    return cli::BindCall(*model_.signature, inputs);
  }

  absl::StatusOr<std::vector<Tensor>> Outputs(const Order& order) {
    FLOE_ASSIGN_OR_RETURN(const cli::BoundCall call, Bind(order));
    fill_ = fill_ == MemoryFill::kOnes ? MemoryFill::kStripes : MemoryFill::kOnes;
    context_.CheckMemory(fill_);
    FLOE_RETURN_IF_ERROR(cli::RunCall(call, context_));
    std::vector<Tensor> outputs;
    for (size_t k = 0; k < case_.outputs.size(); ++k)
      outputs.push_back(Tensor::Copy(context_.Output(static_cast<int>(k))));
    return outputs;
  }

  // The case's own inputs still give its answers.
  absl::Status CompareWithCase() {
    if (!case_.fails.empty()) return absl::OkStatus();
    FLOE_ASSIGN_OR_RETURN(const cli::BoundCall call, cli::BindCall(*model_.signature, open_));
    FLOE_RETURN_IF_ERROR(cli::RunCall(call, context_));
    return CompareOutputs(case_, context_);
  }

  absl::Status RunAlone() {
    for (const int64_t row : All()) {
      FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, Outputs({row}));
      alone_.push_back(std::move(outputs));
    }
    return absl::OkStatus();
  }

  absl::Status CompareRows(const Order& order) {
    FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, Outputs(order));
    const auto rows = static_cast<int64_t>(order.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Shape& shape = outputs[k].shape();
      if (shape.rank() == 0 || shape.dim(0) % rows != 0) {
        return absl::DataLossError(
            absl::StrCat("output ", k, " has shape ", shape.ToString(), " for ", rows, " rows"));
      }
      const int64_t block = shape.dim(0) / rows;
      for (int64_t i = 0; i < rows; ++i) {
        Order part(block);
        std::iota(part.begin(), part.end(), i * block);
        if (SameBitsButNaN(Part(outputs[k], part).view(), alone_[order[i]][k].view())) continue;
        return absl::DataLossError(absl::StrCat("output ", k, ", row ", order[i], " of a batch of ",
                                                rows, ": not the bits it has alone"));
      }
    }
    return absl::OkStatus();
  }

  static Tensor Part(const Tensor& whole, const Order& rows) {
    return whole.elements() == 0 && whole.shape().dim(0) == 0 ? whole : PickRows(whole, rows);
  }

  const CorpusCase& case_;
  const cli::LocalModel model_;
  const std::vector<Tensor> open_;  // by input; invalid: the input is constant
  std::vector<std::vector<Tensor>> alone_;
  ExecContext context_;
  MemoryFill fill_ = MemoryFill::kNone;
};

// Which inputs can be opened: those with rows, as many as the first has.
std::vector<size_t> Openable(const std::vector<Tensor>& inputs) {
  std::vector<size_t> which;
  int64_t rows = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid() || inputs[i].shape().rank() == 0 || inputs[i].shape().dim(0) == 0)
      continue;
    if (rows == 0) rows = inputs[i].shape().dim(0);
    if (inputs[i].shape().dim(0) == rows) which.push_back(i);
  }
  return which;
}

}  // namespace

absl::StatusOr<int> CheckRows(const CorpusCase& c, const CorpusVariant& variant,
                              const CompileOptions& compile) {
  FLOE_ASSIGN_OR_RETURN(const ImportedModel imported, ImportCorpusCase(c, variant));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, InputsOf(c, imported.signatures[0]));
  std::vector<size_t> which = Openable(inputs);
  constexpr size_t kMost = 4;  // sets of them double with each
  if (which.size() > kMost) which.resize(kMost);
  int checked = 0;
#ifdef FLOE_SANITIZED  // which sets are open is the analysis' matter, which needs no sanitizer
  const unsigned first = compile.islands.has_value() ? (1u << which.size()) - 1 : 1;
#else
  const unsigned first = 1;
#endif
  for (unsigned set = std::max(first, 1u); set < 1u << which.size(); ++set) {
    ImportedModel opened = imported;
    std::vector<Tensor> open(inputs.size());
    for (size_t k = 0; k < which.size(); ++k) {
      if ((set >> k & 1) != 0) open[which[k]] = inputs[which[k]];
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      SignatureTensor& input = opened.signatures[0].inputs[i];
      if (open[i].valid()) {
        SymShape shape(open[i].shape());
        shape.set_dim(0, Dim::Unknown());
        input.type.shape = shape;
        input.optional = false;
      } else if (inputs[i].valid()) {
        input.optional = true;
        input.default_value = inputs[i];
      }
    }
    auto model = CompileCorpusCase(c, std::move(opened), compile);
    if (!model.ok()) continue;  // it needs a fixed number of rows
    auto proved = RowChecker(c, *std::move(model), std::move(open)).Run();
    if (!proved.ok()) {
      std::string names;
      for (size_t k = 0; k < which.size(); ++k) {
        if ((set >> k & 1) != 0)
          absl::StrAppend(&names, names.empty() ? "" : ", ",
                          imported.signatures[0].inputs[which[k]].key);
      }
      return Annotate(proved.status(), absl::StrCat("rows in ", names));
    }
    checked += *proved ? 1 : 0;
  }
  return checked;
}

}  // namespace floe::corpus
