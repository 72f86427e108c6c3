// Conv3D and the gradients of convolutions by their input: what their forms share.
#pragma once

#include <memory>

#include "kernels/kernel.h"
#include "model/epilogue.h"
#include "model/ops/conv_nd.h"

namespace floe::kernels {

// Sizes of one run with channels last, with a leading dim of 1 for images of two dims. `image` is
// what is convolved, `result` what comes out: the gradient's kernel reads the result and writes the
// image.
struct ConvNdSizes {
  ConvNdSizes(const ops::ConvNd& conv, const Shape& image, const Shape& filter, const Shape& result,
              bool forward);

  int64_t images, image[3], channels, image_pixels;
  int64_t taps[3], filter_in, filter_out;
  int64_t result[3], result_channels, result_pixels;
  int64_t stride[3], dilation[3], low[3];

  int64_t groups() const { return filter_in == 0 ? 0 : channels / filter_in; }
  int64_t tap_count() const { return taps[0] * taps[1] * taps[2]; }
};

// INVALID_ARGUMENT when filter, image and result (of shape `result`, for the message) do not fit
// each other.
absl::Status CheckConvNd(const ops::ConvNd& conv, const ConvNdSizes& sizes, const Shape& result);

// INVALID_ARGUMENT for a bias of another length.
absl::Status CheckBias(const KernelContext& ctx, const Epilogue& epilogue, int64_t channels);

// The same of a gradient's kernel, with its batch and its bias.
absl::Status CheckBackward(const ops::ConvNd& conv, const ConvNdSizes& sizes,
                           const KernelContext& ctx, const Epilogue& epilogue);

// Channels of the image that a gradient's kernel makes, where they are known now; else -1.
int64_t ImageChannels(const KernelArgs& args, const ops::ConvNd& conv);

// The gradient by plain loops.
absl::Status RunPlainBackward(const ops::ConvNd& conv, const Epilogue& epilogue,
                              const KernelContext& ctx);

// Conv3D of float32. A bias is the last input.
std::unique_ptr<Kernel> MakeVolumeConv(const KernelArgs& args, const ops::ConvNd& conv,
                                       const Epilogue& epilogue);

// The gradient in float32 through columns and the packed multiplication, for 2 or 3 spatial dims.
// Inputs: input_sizes, filter, gradient, and a bias.
std::unique_ptr<Kernel> MakeColumnsConv(const KernelArgs& args, const ops::ConvNd& conv,
                                        const Epilogue& epilogue);

// The gradient in float32 by the phases of the stride. Fit: two spatial dims, a constant
// filter, no dilation, and no groups as far as is known.
bool PhasesFit(const KernelArgs& args, const ops::ConvNd& conv);
std::unique_ptr<Kernel> MakePhasesConv(const KernelArgs& args, const ops::ConvNd& conv,
                                       const Epilogue& epilogue);

}  // namespace floe::kernels
