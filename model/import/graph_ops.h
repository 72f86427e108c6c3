// What importers write with a GraphBuilder again and again: inputs, numbers, shapes that a run may
// settle, parts of values, arithmetic. Ops have TensorFlow's meaning. After an error of the builder
// they do nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/import/graph_builder.h"

namespace floe::build {

ValueRef Input(GraphBuilder& b, const std::string& name, const TensorType& type);
// An Identity of exactly this name, for what clients see.
ValueRef Named(GraphBuilder& b, const std::string& name, ValueRef value);

// ---- constants ----

ValueRef Scalar(GraphBuilder& b, DType dtype, double value);
ValueRef Int64(GraphBuilder& b, int64_t value);
ValueRef Int(GraphBuilder& b, int64_t value);                        // int32 scalar
ValueRef Ints(GraphBuilder& b, const std::vector<int64_t>& values);  // int32 vector
ValueRef Text(GraphBuilder& b, const std::string& value);

// ---- types ----

inline bool Floating(const GraphBuilder& b, ValueRef v) { return IsFloating(b.dtype(v)); }
// An error where the rank is unknown; 0 then.
int Rank(GraphBuilder& b, ValueRef v);
// From the end when `axis` is negative; unknown outside the rank.
Dim SizeAt(const GraphBuilder& b, ValueRef v, int axis);

// ---- shapes ----

// A dim of a shape that is wanted: a number, or dim `axis` of a value, settled by a run.
struct WantedDim {
  WantedDim(int64_t n) : size(n) {}  // NOLINT: dims read as numbers
  WantedDim(ValueRef v, int a) : from(v), axis(a) {}
  bool fixed() const { return from.node < 0; }
  int64_t size = -1;
  ValueRef from;
  int axis = 0;
};

WantedDim DimOf(GraphBuilder& b, ValueRef v, int axis);
ValueRef ShapeVector(GraphBuilder& b, const std::vector<WantedDim>& dims);  // int32
ValueRef Reshape(GraphBuilder& b, ValueRef v, const std::vector<WantedDim>& dims);
ValueRef Fill(GraphBuilder& b, const std::vector<WantedDim>& dims, ValueRef scalar);

// ---- values laid out anew, and their parts ----

ValueRef Cast(GraphBuilder& b, ValueRef v, DType dtype);  // v itself where it is of that type
ValueRef Transpose(GraphBuilder& b, ValueRef v, const std::vector<int64_t>& order);
ValueRef Reduce(GraphBuilder& b, const std::string& op, ValueRef v,
                const std::vector<int64_t>& axes, bool keep);
inline constexpr int64_t kToEnd = INT64_MAX;
ValueRef Slice(GraphBuilder& b, ValueRef v, int axis, int64_t begin, int64_t end);
ValueRef At(GraphBuilder& b, ValueRef v, int axis, int64_t index);  // without that axis
ValueRef ExpandDims(GraphBuilder& b, ValueRef v, int axis);
ValueRef Squeeze(GraphBuilder& b, ValueRef v, const std::vector<int64_t>& axes);
ValueRef Concat(GraphBuilder& b, const std::vector<ValueRef>& values, int axis);
ValueRef Pack(GraphBuilder& b, const std::vector<ValueRef>& values, int axis);
std::vector<ValueRef> Split(GraphBuilder& b, ValueRef v, int axis, int parts);
ValueRef Pad(GraphBuilder& b, ValueRef v, const std::vector<std::pair<int64_t, int64_t>>& pads,
             double value = 0);

// ---- arithmetic of values of one type, or with a number of v's type ----

ValueRef Add(GraphBuilder& b, ValueRef v, ValueRef other);
ValueRef Sub(GraphBuilder& b, ValueRef v, ValueRef other);
ValueRef Mul(GraphBuilder& b, ValueRef v, ValueRef other);
ValueRef Add(GraphBuilder& b, ValueRef v, double n);
ValueRef Mul(GraphBuilder& b, ValueRef v, double n);

}  // namespace floe::build
