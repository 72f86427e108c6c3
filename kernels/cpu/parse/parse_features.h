// Parsing the features of whole examples, which sequence examples have too.
#pragma once

#include "kernels/cpu/parse/example_reader.h"
#include "kernels/kernel.h"
#include "model/ops/parse_example.h"

namespace floe::kernels {

// Gives the outputs from 0 on for the examples in input 0: of the features that `spec` asks for,
// whose keys are in inputs or `attrs`. INVALID_ARGUMENT names the example and the key.
absl::Status ParseFeatures(const KernelContext& ctx, const ops::ExampleSpec& spec,
                           const Attrs& attrs);

// Writes the values of a feature into `out` from element `at` on; the dtype is that of `out`.
void WriteValues(const FeatureList& list, const TensorView& out, int64_t at);

// Which example an error is about: by the name that input 1 gives it, or its number.
std::string ExampleName(const KernelContext& ctx, int64_t example);

}  // namespace floe::kernels
