// Element-wise ops one after the other, interpreted: what `chain` and `chain_any` compute.
#pragma once

#include <cstdint>

#include "kernels/cuda/divider.h"

namespace floe::cuda {

// Of elements in memory.
enum class Element : uint8_t {
  kFloat,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32
};

// Functions of float32 (of bools as 0 and 1) come first, then those of integers, which
// chain_any alone has: its integers are 64 bits wide, and are cut to those of the step's type.
enum class ChainOp : uint8_t {
  kCopy,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,
  kMinimum,
  kSquaredDifference,
  kDivNoNan,
  kMulNoNan,
  kXdivy,
  kFloorDiv,
  kPow,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kNot,
  kSelect,
  kClip,
  kRelu,
  kRelu6,
  kElu,
  kSelu,
  kLeakyRelu,
  kSigmoid,
  kTanh,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSqrt,
  kRsqrt,
  kSquare,
  kNeg,
  kAbs,
  kSign,
  kSoftplus,
  kSoftsign,
  kErf,
  kErfc,
  kGelu,
  kGeluTanh,
  kMish,
  kFloor,
  kCeil,
  kRound,
  kReciprocal,
  kIsNan,
  kIsInf,
  kIsFinite,
  kFirstOfIntegers,
  kIntCopy = kFirstOfIntegers,
  kIntAdd,
  kIntSub,
  kIntMul,
  kIntMaximum,
  kIntMinimum,
  kIntSquaredDifference,
  kIntEqual,
  kIntNotEqual,
  kIntLess,
  kIntLessEqual,
  kIntGreater,
  kIntGreaterEqual,
  kIntAnd,  // of bits, and of bools
  kIntOr,
  kIntXor,
  kIntNot,  // of a bool
  kIntInvert,
  kIntSelect,  // either type
  kIntClip,
  kIntRelu,
  kIntRelu6,
  kIntSquare,
  kIntNeg,
  kIntAbs,
  kIntSign,
  kToFloat,  // of an integer
  kToInt,    // of a float: kInt32, kInt64 by the step's type; narrower ones through an int32
  kToBool,   // of a float
  kIntToBool,
};

inline constexpr int kChainInputs = 8, kChainSteps = 16, kChainDims = 6;
inline constexpr int kChainThreads = 256, kChainEach = 4;
// Results that a later step than the next one reads are kept in slots: `chain` has these few.
inline constexpr int kChainSlots = 3, kChainAnySlots = 12;

// Operands of a step.
inline constexpr uint8_t kLastResult = 0;   // of the step before
inline constexpr uint8_t kFirstInput = 1;   // + input
inline constexpr uint8_t kFirstSlot = 128;  // + slot
inline constexpr uint8_t kNoSlot = 255;

struct ChainStep {
  ChainOp op;
  uint8_t operands;  // how many
  uint8_t operand[3];
  uint8_t keep_in;  // a slot, or kNoSlot
  Element type;     // of the result
  float alpha;
};

// How an input's elements belong to those of the output.
enum class Spread : uint8_t {
  kWhole,     // one each
  kOne,       // one for all
  kRepeated,  // i % period
  kHeld,      // i / period
  kStrided,   // by dims
};

struct ChainInput {
  const void* data;
  Element type;
  Spread spread;
  Divider period;
};

struct ChainArgs {
  void* out;
  int64_t elements;
  Element out_type;
  uint8_t steps, dims;
  ChainInput input[kChainInputs];
  ChainStep step[kChainSteps];
  Divider dim[kChainDims];  // of the output, for inputs that are kStrided
  int64_t stride[kChainInputs][kChainDims];
};

}  // namespace floe::cuda
