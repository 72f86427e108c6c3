// Finds shapes that a model accepts, and fills them with values.
#include "runtime/made_up_inputs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/half.h"
#include "runtime/shape_hints.h"

namespace floe {
namespace {

void Fill(Tensor& tensor, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(0, 1);
  const auto fill = [&](auto* values) {
    for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = uniform(random);
  };
  void* const data = tensor.mutable_data();
  switch (tensor.dtype()) {
    case DType::kFloat32:
      fill(static_cast<float*>(data));
      break;
    case DType::kFloat64:
      fill(static_cast<double*>(data));
      break;
    case DType::kFloat16:
      fill(static_cast<Half*>(data));
      break;
    case DType::kBFloat16:
      fill(static_cast<BFloat16*>(data));
      break;
    default:
      if (tensor.bytes() != 0) std::memset(data, 0, tensor.bytes());
  }
}

// Plans of large graphs take their time.
constexpr int64_t kMostNodesPlanned = 200'000, kLeastAttempts = 30, kMostAttempts = 500;

// A file may declare inputs of any size; nobody waits for numbers to fill such.
constexpr int64_t kMostInputBytes = int64_t{1} << 30;

// Sizes that images, windows and sequences have; 1 first, as the least that says something.
std::vector<int64_t> UsualSizes() {
  std::vector<int64_t> sizes = {1, 224, 299, 128, 64, 32, 28, 256, 512, 227};
  constexpr int64_t kStep = 4, kDense = 256, kLongStep = 20, kMost = 640;
  for (int64_t size = kStep; size < kDense; size += kStep) sizes.push_back(size);
  for (int64_t size = kDense + kStep; size <= kMost; size += kLongStep) sizes.push_back(size);
  return sizes;
}

// What is open in an input's shape: a rank that nothing tells may be any of these.
enum class Rank { kAsTold, kRows, kScalar, kMatrix, kImage };
constexpr std::array<Rank, 4> kRanks = {Rank::kRows, Rank::kScalar, Rank::kMatrix, Rank::kImage};

class Search {
 public:
  Search(const Signature& signature, const MadeUpOptions& options, InputsFit fits)
      : signature_(signature),
        options_(options),
        fits_(fits),
        attempts_(
            std::clamp(kMostNodesPlanned / std::max(signature.default_variant().graph().size(), 1),
                       kLeastAttempts, kMostAttempts)) {
    const std::vector<SignatureTensor>& inputs = signature.def().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      SymShape shape = inputs[i].type.shape;
      if (!inputs[i].optional && !shape.rank_known()) {
        shape = HintedShape(signature, static_cast<int>(i));
        if (!shape.rank_known()) guessed_.push_back(i);
      }
      open_ = open_ || (!inputs[i].optional && HasOpenDims(shape));
      shapes_.push_back(shape);
      ranks_.push_back(shape.rank_known() ? Rank::kAsTold : Rank::kRows);
    }
  }

  absl::StatusOr<MadeUpInputs> Run() {
    std::vector<int64_t> sizes = UsualSizes();
    if (options_.unknown_dim != 0) sizes = {options_.unknown_dim};
    if (!open_ && guessed_.empty()) sizes.resize(1);
    const std::vector<std::vector<Rank>> ranks = RanksToTry();
    for (const int64_t rows : options_.rows) {
      for (const int64_t size : sizes) {
        for (const std::vector<Rank>& some : ranks) {
          absl::StatusOr<MadeUpInputs> made = Made(some, rows, size);
          if (made.ok()) return made;
          if (first_error_.ok()) first_error_ = made.status();
          if (--attempts_ <= 0) return first_error_;
        }
      }
      constexpr size_t kSizesOfOtherRows = 8;
      sizes.resize(std::min(sizes.size(), kSizesOfOtherRows));
    }
    return first_error_;
  }

 private:
  static bool HasOpenDims(const SymShape& shape) {
    for (int axis = 1; axis < shape.rank(); ++axis) {
      if (!shape.dim(axis).concrete()) return true;
    }
    return false;
  }

  // Every rank for all inputs that nothing tells it of, and then another for one of them.
  std::vector<std::vector<Rank>> RanksToTry() const {
    std::vector<std::vector<Rank>> ranks;
    const auto add = [&](const std::vector<Rank>& some) {
      if (std::find(ranks.begin(), ranks.end(), some) == ranks.end()) ranks.push_back(some);
    };
    std::vector<Rank> all = ranks_;
    add(all);
    for (const Rank rank : kRanks) {
      for (const size_t i : guessed_) all[i] = rank;
      add(all);
      for (const size_t one : guessed_) {
        for (const Rank other : kRanks) {
          std::vector<Rank> some = all;
          some[one] = other;
          add(some);
        }
      }
    }
    return ranks;
  }

  Shape ShapeOf(size_t i, Rank rank, int64_t rows, int64_t size) const {
    constexpr int64_t kColours = 3;
    switch (rank) {
      case Rank::kRows:
        return Shape({rows});
      case Rank::kScalar:
        return Shape();
      case Rank::kMatrix:
        return Shape({rows, size});
      case Rank::kImage:
        return Shape({rows, size, size, kColours});
      case Rank::kAsTold:
        break;
    }
    return FilledShape(shapes_[i], rows, size);
  }

  absl::StatusOr<MadeUpInputs> Made(const std::vector<Rank>& ranks, int64_t rows,
                                    int64_t size) const {
    MadeUpInputs made;
    made.rows = rows;
    const std::vector<SignatureTensor>& inputs = signature_.def().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      made.inputs.emplace_back();
      if (inputs[i].optional) continue;
      const Shape shape = ShapeOf(i, ranks[i], rows, size);
      FLOE_RETURN_IF_ERROR(CheckMadeUp(inputs[i], shape));
      made.inputs.back() = Tensor::Allocate(inputs[i].type.dtype, shape);
    }
    // Values take longer than plans: they are made for the shapes that fit.
    FLOE_RETURN_IF_ERROR(fits_(made.inputs));
    std::mt19937 random = MadeUpRandom();
    for (Tensor& tensor : made.inputs)
      if (tensor.valid()) tensor = MadeUpTensor(tensor.dtype(), tensor.shape(), random);
    return made;
  }

  const Signature& signature_;
  const MadeUpOptions& options_;
  const InputsFit fits_;
  std::vector<SymShape> shapes_;  // by input, as far as they are told
  std::vector<Rank> ranks_;       // by input
  std::vector<size_t> guessed_;   // inputs whose rank nothing tells
  bool open_ = false;
  int64_t attempts_;  // left
  absl::Status first_error_;
};

}  // namespace

Shape FilledShape(const SymShape& declared, int64_t rows, int64_t size) {
  Shape shape;
  for (int axis = 0; axis < declared.rank(); ++axis) {
    const Dim dim = declared.dim(axis);
    shape.push_back(dim.concrete() ? dim.size() : axis == 0 ? rows : size);
  }
  return shape;
}

std::optional<std::vector<Shape>> GuessShapes(const CompiledSignature& variant, int64_t rows,
                                              bool* known) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < variant.signature().inputs.size(); ++i) {
    const SymShape& declared = variant.signature().inputs[i].type.shape;
    if (!declared.rank_known()) return std::nullopt;
    const bool has_rows = declared.rank() > 0 && variant.InputHasRows(static_cast<int>(i));
    for (int axis = has_rows ? 1 : 0; axis < declared.rank(); ++axis)
      if (!declared.dim(axis).concrete()) *known = false;
    shapes.push_back(FilledShape(declared, /*rows=*/1, /*size=*/1));
    if (has_rows) shapes.back().set_dim(0, rows);
  }
  return shapes;
}

std::vector<Tensor> ZeroInputs(size_t inputs, ExecContext* context) {
  std::vector<Tensor> texts;  // they have no place in the context's memory
  for (size_t i = 0; i < inputs; ++i) {
    const TensorView& input = context->Input(static_cast<int>(i));
    if (input.dtype == DType::kString) {
      texts.push_back(Tensor::Allocate(input.dtype, input.shape));
      context->BindInput(static_cast<int>(i), texts.back().data());
    } else if (input.bytes() > 0) {
      std::memset(input.data, 0, input.bytes());
    }
  }
  return texts;
}

absl::Status CheckMadeUp(const SignatureTensor& input, const Shape& shape) {
  const DType dtype = input.type.dtype;
  const size_t element = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  if (element == 0) {
    return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(input.key), " is a ",
                                                   DTypeName(dtype), "; give it with --inputs"));
  }
  return CheckedElements(shape.dims(), element, kMostInputBytes).status();
}

Tensor MadeUpTensor(DType dtype, const Shape& shape, std::mt19937& random) {
  Tensor tensor = Tensor::Allocate(dtype, shape);
  Fill(tensor, random);
  return tensor;
}

std::mt19937 MadeUpRandom() { return std::mt19937(20240101); }

absl::StatusOr<MadeUpInputs> MakeUpInputs(const Signature& signature, const MadeUpOptions& options,
                                          InputsFit fits) {
  return Search(signature, options, fits).Run();
}

}  // namespace floe
