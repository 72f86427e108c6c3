// Attention: softmax(scale * Q K^T + mask) V for each head of each row. Made by a pass; no file
// holds it. Inputs: Q, K, V and, if there is one, the mask.
//
// Attributes: "scale", and "q", "k", "v", "out": which axis is which, such as "BTNH" (batch, place,
// head, feature). Batches and heads are broadcast; a layout without N has one head. With "fill" the
// mask has bools: scores where it is false are that number, and with "zero" their weights are 0.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/op_def.h"

namespace floe::ops {

enum AttentionAxis { kBatch, kHead, kPlace, kFeature };
// The axis of each of these in a tensor, or -1.
using AttentionAxes = std::array<int, 4>;

struct AttentionForm {
  float scale = 1;
  std::optional<float> fill;
  bool zero = false;
  AttentionAxes q, k, v, out;
};

// Of "BTNH", "BNTH", "BTH", and for K also "BNHT" and "BHT". INVALID_ARGUMENT for another layout,
// or when some have heads and others not.
absl::StatusOr<AttentionForm> AttentionFormOf(const Node& node);

// A mask's axes are those of [batch, head, place of the query, place of the key], or without heads
// [batch, query, key], counted from the back; the keys stand as kFeature.
AttentionAxes MaskAxes(const AttentionForm& form, int rank);

}  // namespace floe::ops
