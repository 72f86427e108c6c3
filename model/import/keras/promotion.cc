#include "model/import/keras/promotion.h"

#include <array>
#include <cstdint>

namespace floe::keras {
namespace {

enum TypeNode : uint8_t {
  kB,
  kU8,
  kU16,
  kU32,
  kU64,
  kWeakInt,
  kI8,
  kI16,
  kI32,
  kI64,
  kWeakFloat,
  kBf16,
  kF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kTypeNodes,
  kNoType = kTypeNodes
};

struct Edges {
  DType dtype;
  std::vector<TypeNode> up;  // the types just above
};

const std::array<Edges, kTypeNodes>& Lattice() {
  static const std::array<Edges, kTypeNodes> lattice{{
      {DType::kBool, {kWeakInt}},
      {DType::kUInt8, {kI16, kU16}},
      {DType::kUInt16, {kI32, kU32}},
      {DType::kUInt32, {kI64, kU64}},
      {DType::kUInt64, {kWeakFloat}},
      {DType::kInvalid, {kU8, kI8, kC64}},  // weak integers
      {DType::kInt8, {kI16}},
      {DType::kInt16, {kI32}},
      {DType::kInt32, {kI64}},
      {DType::kInt64, {kWeakFloat}},
      {DType::kInvalid, {kBf16, kF16}},  // weak floats
      {DType::kBFloat16, {kF32}},
      {DType::kFloat16, {kF32}},
      {DType::kFloat32, {kF64, kC64}},
      {DType::kFloat64, {kC128}},
      {DType::kComplex64, {kC128}},
      {DType::kComplex128, {}},
  }};
  return lattice;
}

// Bit n: node n is this one or above it.
std::array<uint32_t, kTypeNodes> UpperBounds() {
  std::array<uint32_t, kTypeNodes> bounds{};
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = 0; n < kTypeNodes; ++n) {
      uint32_t all = bounds[n] | (1U << n);
      for (const TypeNode up : Lattice()[n].up) all |= bounds[up];
      changed = changed || all != bounds[n];
      bounds[n] = all;
    }
  }
  return bounds;
}

TypeNode NodeOf(const OperandType& type) {
  if (type.weak && IsInteger(type.dtype)) return kWeakInt;
  if (type.weak && IsFloating(type.dtype)) return kWeakFloat;
  for (size_t n = 0; n < kTypeNodes; ++n) {
    if (Lattice()[n].dtype == type.dtype && type.dtype != DType::kInvalid)
      return static_cast<TypeNode>(n);
  }
  return kNoType;
}

DType TypeOfNode(TypeNode node) {
  if (node == kWeakInt) return DType::kInt32;
  if (node == kWeakFloat) return DType::kFloat32;
  // Keras has no uint64 of mixed types.
  return node == kU64 ? DType::kUInt32 : Lattice()[node].dtype;
}

}  // namespace

DType ResultType(const std::vector<OperandType>& types) {
  static const std::array<uint32_t, kTypeNodes> bounds = UpperBounds();
  if (types.empty()) return DType::kFloat32;
  uint32_t common = ~0U;
  bool same = true;
  for (const OperandType& type : types) {
    const TypeNode node = NodeOf(type);
    same = same && type.dtype == types[0].dtype && !type.weak;
    common &= node == kNoType ? 0 : bounds[node];
  }
  if (same && types[0].dtype != DType::kUInt64) return types[0].dtype;
  for (size_t n = 0; n < kTypeNodes; ++n) {
    if ((common >> n & 1U) != 0 && (common & ~bounds[n]) == 0)
      return TypeOfNode(static_cast<TypeNode>(n));
  }
  return DType::kInvalid;
}

DType SumType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt16:
      return DType::kInt32;
    case DType::kUInt8:
    case DType::kUInt16:
      return DType::kUInt32;
    default:
      return dtype;
  }
}

DType FloatingType(DType dtype) {
  return IsInteger(dtype) || dtype == DType::kBool ? DType::kFloat32 : dtype;
}

}  // namespace floe::keras
