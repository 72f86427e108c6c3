// What emitters of convolutions share.
#pragma once

#include <vector>

#include "kernels/cuda/emit/product.h"
#include "model/ops/conv_nd.h"

namespace floe::cuda {

// Whether strides, dilations and paddings are so small that places fit 32 bits.
bool SmallNumbers(const ops::ConvNd& conv);
// Sets the epilogue, and what may be read and written 16 bytes at once.
void FinishArgs(const EpilogueArgs& epilogue, int64_t groups, ConvArgs* args);
void AppendConv(const ConvArgs& args, int64_t groups, Precision precision,
                std::vector<Launch>* launches);

}  // namespace floe::cuda
