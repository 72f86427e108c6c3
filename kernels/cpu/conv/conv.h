// Conv2D and DepthwiseConv2dNative: what their backends share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "model/epilogue.h"
#include "model/ops/conv_nd.h"

namespace floe::kernels {

// All sizes of one run over NHWC images. A row and a pixel mean those of one image.
struct ConvSizes {
  ConvSizes(const ops::ConvNd& window, const Shape& input, const Shape& filter,
            const Shape& output);
  // Of inputs 0 and 1 and output 0, whose pixels may lie apart.
  ConvSizes(const ops::ConvNd& window, const KernelContext& ctx);

  int64_t images, in_h, in_w, in_c;
  int64_t kernel_h, kernel_w, filter_in, filter_out;  // the filter's four dims
  int64_t out_h, out_w, out_c;
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_left;
  int64_t padded_h, padded_w;   // the input with the zeros that some tap reads
  int64_t in_pixel, out_pixel;  // floats from one pixel to the next: in_c, out_c or more

  bool needs_padding() const { return padded_h != in_h || padded_w != in_w; }
  int64_t out_pixels() const { return out_h * out_w; }
  int64_t image_floats() const { return in_h * in_w * in_pixel; }
  int64_t out_floats() const { return out_pixels() * out_pixel; }
};

// INVALID_ARGUMENT when what inference could not know does not fit: filter against channels, bias
// against outputs.
absl::Status CheckConv(const ConvSizes& sizes, const KernelContext& ctx, const Epilogue& epilogue,
                       bool depthwise);

// Copies one image into a zero-padded image of padded_h x padded_w, whose pixels lie close.
void PadImage(const ConvSizes& sizes, const float* image, float* padded, ThreadPool& pool);

// The padded image: the image itself when nothing has to be done, else a copy in `scratch`,
// which needs PaddedScratch floats.
const float* PaddedImage(const ConvSizes& sizes, const float* image, float* scratch,
                         ThreadPool& pool);
int64_t PaddedScratch(const ConvSizes& sizes);

std::unique_ptr<Kernel> MakePlainConv(const KernelArgs& args, const ops::ConvNd& window,
                                      const Epilogue& epilogue, bool depthwise);
absl::StatusOr<std::unique_ptr<Kernel>> MakeBlasConv(const KernelArgs& args,
                                                     const ops::ConvNd& window,
                                                     const Epilogue& epilogue);

// For KernelTraits::options_key. The options follow from the size of the whole model. Kernels of
// other ops are shared whatever it is.
std::string ConvOptionsKey(const KernelOptions& options);

}  // namespace floe::kernels
