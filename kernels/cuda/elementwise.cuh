// Chains of element-wise ops. All threads of a launch run the same steps, so that the interpreter's
// branches cost little, once for the elements of a thread.
#pragma once

#include "kernels/cuda/chain_ops.cuh"
#include "kernels/cuda/index.cuh"

namespace floe::cuda {

// Where input `k` has the element that belongs to element `i` of the output.
GPU_DEVICE int64_t PlaceInInput(const ChainArgs& args, int k, int64_t i) {
  const ChainInput& in = args.input[k];
  int64_t rest = 0;
  switch (in.spread) {
    case Spread::kWhole:
      return i;
    case Spread::kOne:
      return 0;
    case Spread::kRepeated:
      Divide(i, in.period, &rest);
      return rest;
    case Spread::kHeld:
      return Divide(i, in.period, &rest);
    case Spread::kStrided:
      break;
  }
  int64_t at = 0;
  for (int d = args.dims - 1; d >= 0; --d) {
    i = Divide(i, args.dim[d], &rest);
    at += rest * args.stride[k][d];
  }
  return at;
}

// An operand of a step for the thread's elements.
GPU_DEVICE void FetchFloats(const ChainArgs& args, uint8_t from, const float (&last)[kChainEach],
                            const float (&slot)[kChainSlots][kChainEach], float (&to)[kChainEach]) {
  if (from == kLastResult) {
    GPU_UNROLL
    for (int v = 0; v < kChainEach; ++v) to[v] = last[v];
    return;
  }
  if (from >= kFirstSlot) {
    GPU_UNROLL
    for (int k = 0; k < kChainSlots; ++k) {  // registers have no index
      GPU_UNROLL
      for (int v = 0; v < kChainEach; ++v) to[v] = from == kFirstSlot + k ? slot[k][v] : to[v];
    }
    return;
  }
  const int k = from - kFirstInput;
  const bool is_float = args.input[k].type == Element::kFloat;
  GPU_UNROLL
  for (int v = 0; v < kChainEach; ++v) {
    const int64_t i = ElementOf<kChainThreads, kChainEach>(v);
    if (i >= args.elements) continue;
    const int64_t at = PlaceInInput(args, k, i);
    to[v] = is_float ? static_cast<const float*>(args.input[k].data)[at]
                     : AsBool(static_cast<const uint8_t*>(args.input[k].data)[at] != 0);
  }
}

// Float32 and bools: four elements a thread, values in registers.
GPU_KERNEL(chain, ChainArgs, kChainThreads) {
  constexpr int kEach = kChainEach;
  float last[kEach] = {}, slot[kChainSlots][kEach] = {};
  for (int s = 0; s < args.steps; ++s) {
    const ChainStep& step = args.step[s];
    float a[kEach] = {}, b[kEach] = {}, c[kEach] = {};
    FetchFloats(args, step.operand[0], last, slot, a);
    if (step.operands > 1) FetchFloats(args, step.operand[1], last, slot, b);
    if (step.operands > 2) FetchFloats(args, step.operand[2], last, slot, c);
    GPU_UNROLL
    for (int v = 0; v < kEach; ++v) last[v] = FloatFunction(step.op, a[v], b[v], c[v], step.alpha);
    GPU_UNROLL
    for (int k = 0; k < kChainSlots; ++k) {
      GPU_UNROLL
      for (int v = 0; v < kEach; ++v) slot[k][v] = step.keep_in == k ? last[v] : slot[k][v];
    }
  }
  GPU_UNROLL
  for (int v = 0; v < kEach; ++v) {
    const int64_t i = ElementOf<kChainThreads, kEach>(v);
    if (i >= args.elements) continue;
    if (args.out_type == Element::kFloat) {
      static_cast<float*>(args.out)[i] = last[v];
    } else {
      static_cast<uint8_t*>(args.out)[i] = last[v] != 0;
    }
  }
}

// An element as a word: a float's bits, or an integer's number.
GPU_DEVICE int64_t LoadWord(const void* data, Element type, int64_t at) {
  switch (type) {
    case Element::kFloat:
      return BitsOfFloat(static_cast<const float*>(data)[at]);
    case Element::kBool:
      return static_cast<const uint8_t*>(data)[at] != 0;
    case Element::kInt8:
      return static_cast<const int8_t*>(data)[at];
    case Element::kInt16:
      return static_cast<const int16_t*>(data)[at];
    case Element::kInt32:
      return static_cast<const int32_t*>(data)[at];
    case Element::kInt64:
      return static_cast<const int64_t*>(data)[at];
    case Element::kUInt8:
      return static_cast<const uint8_t*>(data)[at];
    case Element::kUInt16:
      return static_cast<const uint16_t*>(data)[at];
    case Element::kUInt32:
      return static_cast<const uint32_t*>(data)[at];
  }
  return 0;
}
GPU_DEVICE void StoreWord(void* data, Element type, int64_t at, int64_t word) {
  switch (type) {
    case Element::kFloat:
    case Element::kUInt32:
    case Element::kInt32:
      static_cast<uint32_t*>(data)[at] = static_cast<uint32_t>(word);
      break;
    case Element::kBool:
    case Element::kInt8:
    case Element::kUInt8:
      static_cast<uint8_t*>(data)[at] = static_cast<uint8_t>(word);
      break;
    case Element::kInt16:
    case Element::kUInt16:
      static_cast<uint16_t*>(data)[at] = static_cast<uint16_t>(word);
      break;
    case Element::kInt64:
      static_cast<int64_t*>(data)[at] = word;
      break;
  }
}

GPU_DEVICE int64_t AnyFunction(const ChainStep& step, const int64_t* operand) {
  if (step.op == ChainOp::kToFloat) return BitsOfFloat(static_cast<float>(operand[0]));
  if (step.op >= ChainOp::kFirstOfIntegers) {
    const int64_t result = IntFunction(step.op, operand[0], operand[1], operand[2], step.type);
    return step.type == Element::kFloat ? result : Cut(result, step.type);
  }
  float number[3];
  GPU_UNROLL
  for (int o = 0; o < 3; ++o) number[o] = FloatOfBits(static_cast<uint32_t>(operand[o]));
  const float result = FloatFunction(step.op, number[0], number[1], number[2], step.alpha);
  return step.type == Element::kBool ? static_cast<int64_t>(result != 0) : BitsOfFloat(result);
}

// Any types, any chain: one element a thread, values that are read again in shared memory.
GPU_KERNEL(chain_any, ChainArgs, kChainThreads) {
  GPU_SHARED(int64_t, slots, kChainAnySlots * kChainThreads);
  const int64_t i = ElementOf<kChainThreads, 1>(0);
  if (i >= args.elements) return;
  int64_t* const slot = slots + threadIdx.x;
  int64_t last = 0;
  for (int s = 0; s < args.steps; ++s) {
    const ChainStep& step = args.step[s];
    int64_t operand[3] = {};
    GPU_UNROLL
    for (int o = 0; o < 3; ++o) {
      const uint8_t from = step.operand[o];
      if (o >= step.operands) break;
      if (from == kLastResult) {
        operand[o] = last;
      } else if (from >= kFirstSlot) {
        operand[o] = slot[(from - kFirstSlot) * kChainThreads];
      } else {
        const int k = from - kFirstInput;
        operand[o] = LoadWord(args.input[k].data, args.input[k].type, PlaceInInput(args, k, i));
      }
    }
    last = AnyFunction(step, operand);
    if (step.keep_in != kNoSlot) slot[step.keep_in * kChainThreads] = last;
  }
  StoreWord(args.out, args.out_type, i, last);
}

}  // namespace floe::cuda
