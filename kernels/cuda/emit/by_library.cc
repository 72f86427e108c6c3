#include "kernels/cuda/emit/by_library.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emit/chain.h"
#include "kernels/cuda/emit/product.h"

namespace floe::cuda {
namespace {

// What floe's own launch would have read and written.
struct OwnLaunch {
  const float* x;
  float* y;
  int64_t rows;
  EpilogueArgs epilogue;
};

template <typename Args>
Args ArgsOf(const Launch& launch) {
  Args args;
  std::memcpy(&args, launch.args, sizeof args);
  return args;
}

OwnLaunch OwnLaunchOf(const VendorLayer& layer, const Launch& launch) {
  if (layer.is_product()) {
    const auto args = ArgsOf<GemmArgs>(launch);
    return {args.a, args.c, args.m, args.epilogue};
  }
  const auto args = ArgsOf<ConvArgs>(launch);
  return {args.x, args.y, args.images, args.epilogue};
}

// An activation as the steps of a chain over its value `x`; empty: none.
std::vector<OpOfChain> ActivationSteps(Activation activation, float alpha, int x, int next) {
  const auto one = [&](const char* op) {
    return std::vector<OpOfChain>{{op, {x}, DType::kFloat32, alpha}};
  };
  switch (activation) {
    case Activation::kNone:
      return {};
    case Activation::kRelu:
      return one("Relu");
    case Activation::kRelu6:
      return one("Relu6");
    case Activation::kSigmoid:
      return one("Sigmoid");
    case Activation::kTanh:
      return one("Tanh");
    case Activation::kElu:
      return one("Elu");
    case Activation::kSelu:
      return one("Selu");
    case Activation::kSoftplus:
      return one("Softplus");
    case Activation::kSoftsign:
      return one("Softsign");
    case Activation::kExp:
      return one("Exp");
    case Activation::kLeakyRelu:
      return one("LeakyRelu");
    case Activation::kGelu:
      return one("Gelu");
    case Activation::kGeluTanh:
      return one("GeluTanh");
    case Activation::kMish:
      return one("Mish");
    case Activation::kSwish:
      return {{"Sigmoid", {x}, DType::kFloat32}, {"Mul", {x, next}, DType::kFloat32}};
  }
  return {};
}

TensorView FloatsAt(const float* at, Shape shape) {
  return {DType::kFloat32, std::move(shape), const_cast<float*>(at)};
}

// Bias, residual and activation, where the product is.
void AppendEpilogue(const EpilogueArgs& epilogue, float* y, int64_t lines, int64_t columns,
                    std::vector<Launch>* launches) {
  const Shape shape({lines, columns});
  std::vector<TensorView> inputs = {FloatsAt(y, shape)};
  if (epilogue.bias != nullptr) inputs.push_back(FloatsAt(epilogue.bias, Shape({columns})));
  if (epilogue.residual != nullptr) inputs.push_back(FloatsAt(epilogue.residual, shape));
  const int count = static_cast<int>(inputs.size());
  std::vector<OpOfChain> steps;
  int value = 0, next = count;
  for (int i = 1; i < count; ++i, value = next++)
    steps.push_back({"Add", {value, i}, DType::kFloat32});
  for (OpOfChain& step : ActivationSteps(epilogue.activation, epilogue.alpha, value, next))
    steps.push_back(std::move(step));
  if (steps.empty()) return;
  const std::vector<DType> types(inputs.size(), DType::kFloat32);
  // The chain has all activations.
  if (const auto chain = ChainProgram::Make(types, steps); chain.ok())
    chain->Emit(inputs, inputs[0], {}, launches);
}

class LibraryKernel final : public DeviceKernel {
 public:
  LibraryKernel(std::shared_ptr<const Kernel> own, LibraryRoutine routine)
      : own_(std::move(own)),
        on_device_(*dynamic_cast<const DeviceKernel*>(own_.get())),
        layer_(*on_device_.Layer()),
        routine_(std::move(routine)) {
    const absl::Span<const Tensor> weights = on_device_.Weights();
    if (layer_.is_product())
      weights_.assign(weights.begin(), weights.end());
    else
      weights_.push_back(OutputsFirst(weights[0]));
    RouteChoice choice = own_->choice();
    if (choice.offers.empty()) choice.offers.push_back({"gemm", std::nullopt});
    choice.offers.push_back({routine_.name, std::nullopt});
    choice.chosen = routine_.name;
    SetChoice(std::move(choice));
  }

  absl::Span<const Tensor> Weights() const override { return weights_; }
  std::string Route() const override {
    return absl::StrCat(routine_.name, ", ", routine_.call->Text());
  }
  bool NeedsInput(int i) const override { return own_->NeedsInput(i); }
  int64_t ScratchBytes(absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return static_cast<int64_t>(routine_.workspace_bytes);
  }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    std::vector<Launch> own;
    on_device_.Emit(addresses, &own);
    if (own.empty()) return;
    const OwnLaunch at = OwnLaunchOf(layer_, own.front());
    for (int64_t row = 0; row < at.rows;) {
      int64_t rows = routine_.most_rows;
      while (rows > at.rows - row) rows /= 2;
      launches->push_back(Launch::Of(
          *routine_.call, VendorArgs{at.x + row * layer_.XRow(), addresses.weight<float>(0),
                                     at.y + row * layer_.YRow(), rows, addresses.scratch,
                                     routine_.workspace_bytes}));
      row += rows;
    }
    const int64_t columns = layer_.is_product() ? layer_.n : layer_.outputs;
    AppendEpilogue(at.epilogue, at.y, at.rows * layer_.YRow() / columns, columns, launches);
  }

 private:
  // Of [taps and channels, outputs], padded.
  Tensor OutputsFirst(const Tensor& packed) const {
    const int64_t inner = layer_.WeightElements() / layer_.outputs,
                  columns = FactorColumns(layer_.outputs);
    Tensor result = Tensor::Allocate(DType::kFloat32, Shape({layer_.outputs, inner}));
    auto* to = static_cast<float*>(result.mutable_data());
    for (int64_t output = 0; output < layer_.outputs; ++output) {
      for (int64_t i = 0; i < inner; ++i) *to++ = packed.as<float>()[i * columns + output];
    }
    return result;
  }

  const std::shared_ptr<const Kernel> own_;
  const DeviceKernel& on_device_;
  const VendorLayer layer_;
  const LibraryRoutine routine_;
  std::vector<Tensor> weights_;
};

}  // namespace

std::shared_ptr<const Kernel> ByLibrary(std::shared_ptr<const Kernel> own, LibraryRoutine routine) {
  return std::make_shared<LibraryKernel>(std::move(own), std::move(routine));
}

}  // namespace floe::cuda
