#include "server/executor/deviation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/status.h"

namespace floe::server {
namespace {

constexpr int64_t kMadeUpRows = 4;
constexpr int kMostCompared = 16;  // requests

// A request for all outputs of the model, which must have the signature.
absl::StatusOr<std::unique_ptr<Request>> RequestFor(ModelHandle model, std::string_view signature,
                                                    const TensorViews& inputs) {
  auto request = std::make_unique<Request>();
  FLOE_RETURN_IF_ERROR(ChooseSignature(std::move(model), signature, request.get()));
  FLOE_RETURN_IF_ERROR(ChooseOutputs({}, request.get()));
  request->inputs = inputs;
  return request;
}

absl::StatusOr<std::vector<Tensor>> OutputsOf(ModelHandle model, std::string_view signature,
                                              const TensorViews& inputs, const WarmUpLimits& limits,
                                              PlanExecutor* executor) {
  FLOE_ASSIGN_OR_RETURN(const auto request, RequestFor(std::move(model), signature, inputs));
  FLOE_RETURN_IF_ERROR(executor->Bind(request.get()));
  const Binding& binding = request->binding;
  if (binding.splittable && binding.max_rows > 0 && binding.rows > binding.max_rows)
    return absl::UnimplementedError("it needs several runs");
  Request* const batch[] = {request.get()};
  FLOE_RETURN_IF_ERROR(executor->Run(0, batch, LimitsNow(limits)));
  TensorViews views;
  executor->Outputs(0, *request, 0, &views);
  std::vector<Tensor> outputs;
  for (const TensorView& view : views) {
    Tensor& copy = outputs.emplace_back(Tensor::Allocate(DType::kFloat32, Shape({0})));
    if (view.dtype != DType::kFloat32) continue;
    copy = Tensor::Allocate(view.dtype, view.shape);
    if (view.bytes() > 0) std::memcpy(copy.mutable_data(), view.data, view.bytes());
  }
  return outputs;
}

// Unset where no number can be compared.
std::optional<double> DeviationOf(const Tensor& given, const Tensor& exact) {
  if (given.shape() != exact.shape()) return std::nullopt;
  std::optional<double> most;
  double largest = 0;
  for (int64_t i = 0; i < exact.elements(); ++i) {
    const double is = given.as<float>()[i], should = exact.as<float>()[i];
    if (!std::isfinite(should)) continue;
    largest = std::max(largest, std::abs(should));
    most = std::max(most.value_or(0), std::abs(is - should));
  }
  if (largest > 0) *most /= largest;
  return most;
}

// Data for the inputs of the signature's default variant.
std::optional<std::vector<Tensor>> MadeUpInputs(const Signature& signature, int64_t rows) {
  bool known = true;
  const auto shapes = GuessShapes(signature.default_variant(), rows, &known);
  if (!shapes) return std::nullopt;
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes->size(); ++i) {
    const DType dtype = signature.default_variant().signature().inputs[i].type.dtype;
    Tensor input = Tensor::Allocate(dtype, (*shapes)[i]);
    if (dtype == DType::kFloat32) {
      std::generate_n(static_cast<float*>(input.mutable_data()), input.elements(),
                      [&] { return uniform(random); });
    } else if (dtype != DType::kString) {
      std::memset(input.mutable_data(), 0, input.bytes());
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace

void DeviationMeter::Compare(const Request& request) {
  if (compared_++ >= kMostCompared) return;
  if (request.pending != nullptr && !request.pending->Decode().ok()) return;
  const std::string& name = request.signature->def().name;
  const auto run = [&](const ModelHandle& model) {
    return CatchOutOfMemory(
        [&] { return OutputsOf(model, name, request.inputs, limits_, &executor_); });
  };
  const auto given = run(request.model);
  const auto exact = run(exact_);
  if (!given.ok() || !exact.ok()) return;
  for (size_t i = 0; i < exact->size(); ++i) {
    if (const auto deviation = DeviationOf((*given)[i], (*exact)[i])) {
      double& largest = largest_.try_emplace(name, 0).first->second;
      largest = std::max(largest, *deviation);
    }
  }
}

void DeviationMeter::CompareMadeUp(const ModelHandle& model) {
  for (const auto& [name, signature] : model->signatures()) {
    const auto data = MadeUpInputs(signature, std::min(kMadeUpRows, executor_.options().max_rows));
    if (!data) continue;
    TensorViews inputs(signature.def().inputs.size());
    const std::vector<int>& places = signature.variants()[0].inputs;
    for (size_t i = 0; i < places.size(); ++i) inputs[places[i]] = (*data)[i].view();
    if (const auto request = RequestFor(model, name, inputs); request.ok()) Compare(**request);
  }
}

}  // namespace floe::server
