// ConvChain: convolutions of which each reads the one before, and nobody else does. Made by a pass;
// no file has it. Attribute stages: their names, in order: "expand", pointwise, "depthwise", and
// maybe "project", pointwise. Attribute NAME/X is attribute X of stage NAME, a Conv2D or
// DepthwiseConv2dNative. Inputs: the image [n, h, w, c], then each stage's without its image.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace floe::ops {

struct ConvStage {
  Node node;            // its op and attributes; no inputs
  int first_input = 0;  // of the chain's: the filter
  int inputs = 0;       // without the image
  Epilogue epilogue;    // the node's, with the numbers that its inputs have in the chain

  bool depthwise() const;
};

std::vector<ConvStage> ConvStagesOf(const Node& chain);

// Adds `stage`, a node with its attributes, to the chain's.
void AppendConvStage(const std::string& name, const Node& stage, Node* chain);

}  // namespace floe::ops
