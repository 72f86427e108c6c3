// The table of costs. Where an op is missing, it costs as much as a plain loop over its output.
#include "kernels/cpu/op_cost.h"

#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace floe::kernels {
namespace {

using enum CostBasis;

struct Entry {
  OpCost cost;
  std::initializer_list<absl::string_view> ops;
};

// Rates of vectors are those of AVX-512.
const Entry kEntries[] = {
    // Products: the part of the rate of a large matrix product.
    {{kProduct, 1}, {"MatMul", "BatchMatMul"}},
    {{kProduct, 0.95}, {"Conv2D", "Conv3D"}},
    {{kProduct, 0.85}, {"ConvChain"}},
    {{kProduct, 0.65}, {"Attention", "Einsum", "Conv2DBackpropInput", "Conv3DBackpropInputV2"}},
    {{kProduct, 0.5}, {"FusedRecurrent", "RecurrentPair", "LSTMBlockCell", "GRUBlockCell"}},
    {{kFlops, 0.02, true}, {"DepthwiseConv2dNative"}},
    {{kProduct, 0.02}, {"QuantizedConv2D", "QuantizedMatMul", "SparseTensorDenseMatMul"}},
    // Element by element.
    {{kOutput, 0.05, true}, {"Abs",          "Add",         "AddN",
                             "BiasAdd",      "BitwiseAnd",  "BitwiseOr",
                             "BitwiseXor",   "BroadcastTo", "Cast",
                             "Ceil",         "ClipByValue", "Equal",
                             "Fill",         "Floor",       "Greater",
                             "GreaterEqual", "Invert",      "LeakyRelu",
                             "Less",         "LessEqual",   "LogicalAnd",
                             "LogicalNot",   "LogicalOr",   "Maximum",
                             "Minimum",      "Mul",         "Neg",
                             "NotEqual",     "OnesLike",    "Real",
                             "Relu",         "Relu6",       "Rint",
                             "Round",        "Select",      "SelectV2",
                             "Sign",         "Square",      "SquaredDifference",
                             "Sub",          "ZerosLike"}},
    {{kOutput, 0.2, true},
     {"DivNoNan", "MulNoNan", "RealDiv", "Reciprocal", "Rsqrt", "Softsign", "Sqrt"}},
    {{kOutput, 0.5, true}, {"Elu", "Exp", "Log", "Selu", "Sigmoid", "Tanh"}},
    {{kOutput, 0.9, true},
     {"Cos", "Erf", "Expm1", "Gelu", "Log1p", "LogSoftmax", "Mish", "Sin", "Softplus"}},
    {{kOutput, 1.3, true}, {"LayerNorm", "Pow", "Softmax"}},
    {{kOutput, 0.1, true}, {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}},
    {{kOutput, 3},
     {"Acos",
      "Acosh",
      "Asin",
      "Asinh",
      "Atan",
      "Atan2",
      "Atanh",
      "Cosh",
      "Erfc",
      "FloorDiv",
      "FloorMod",
      "LRN",
      "RandomStandardNormal",
      "RandomUniform",
      "Sinh",
      "StatelessRandomNormal",
      "StatelessRandomUniform",
      "Tan",
      "TruncatedNormal",
      "Xdivy",
      "Xlogy"}},
    {{kOutput, 30}, {"Betainc", "Digamma", "Igamma", "Igammac", "Lgamma", "Polygamma", "Zeta"}},
    // Moves.
    {{kOutput, 0.05},
     {"BatchToSpaceND",
      "Concat",
      "ConcatV2",
      "DepthToSpace",
      "EmbeddingBag",
      "Gather",
      "GatherV2",
      "Identity",
      "Pack",
      "Pad",
      "PadV2",
      "ReverseV2",
      "Roll",
      "Slice",
      "SpaceToBatchND",
      "SpaceToDepth",
      "Split",
      "SplitV",
      "StridedSlice",
      "TensorArrayConcatV3",
      "TensorArrayGatherV3",
      "TensorArrayReadV3",
      "TensorArrayScatterV3",
      "TensorArraySplitV3",
      "TensorArrayWriteV3",
      "TensorListConcatV2",
      "TensorListFromTensor",
      "TensorListGather",
      "TensorListGetItem",
      "TensorListScatterV2",
      "TensorListSetItem",
      "TensorListStack",
      "Tile",
      "Unpack"}},
    {{kOutput, 0.5}, {"ConjugateTranspose", "MirrorPad", "OneHot", "ReverseSequence", "Transpose"}},
    // Whole inputs.
    {{kInput, 0.1, true}, {"All", "Any", "Max", "Mean", "Min", "Prod", "Sum", "L2Loss"}},
    {{kInput, 1},
     {"ArgMax", "ArgMin", "Bincount", "Cumprod", "Cumsum", "DenseBincount", "EuclideanNorm",
      "SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum", "UnsortedSegmentMax",
      "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "Where"}},
    {{kInput, 4}, {"ApproxTopK", "NthElement", "TopKV2"}},
    {{kInput, 30},
     {"CombinedNonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3",
      "NonMaxSuppressionV4", "NonMaxSuppressionV5", "Unique", "UniqueV2", "UniqueWithCounts",
      "UniqueWithCountsV2"}},
    {{kInput, 10},
     {"FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D", "RFFT",
      "RFFT2D", "RFFT3D"}},
    // Windows: by taps.
    {{kFlops, 0.1, true}, {"AvgPool", "AvgPool3D", "MaxPool", "MaxPool3D"}},
    {{kOutput, 1},
     {"CropAndResize", "Dilation2D", "ExtractImagePatches", "ResizeArea", "ResizeBicubic",
      "ResizeBilinear", "ScaleAndTranslate"}},
    // Texts, by strings.
    {{kOutput, 40},
     {"LookupTableFind", "StringJoin", "StringToHashBucketFast", "StringToNumber", "Substr"}},
    {{kOutput, 200},
     {"AsString", "RegexReplace", "StaticRegexReplace", "StringFormat", "StringLower",
      "StringStrip", "StringUpper"}},
    {{kInput, 1000},
     {"ParseExample", "ParseExampleV2", "StringNGrams", "StringSplit", "StringSplitV2",
      "UnicodeDecode"}},
    // Matrices.
    {{kCubic, 0.7},
     {"Cholesky", "LogMatrixDeterminant", "Lu", "MatrixDeterminant", "MatrixInverse", "MatrixSolve",
      "MatrixTriangularSolve", "Qr"}},
    {{kCubic, 10}, {"Eig", "MatrixSolveLs", "SelfAdjointEigV2", "Svd"}},
};

absl::flat_hash_map<absl::string_view, OpCost> MakeTable() {
  absl::flat_hash_map<absl::string_view, OpCost> table;
  for (const Entry& entry : kEntries)
    for (const absl::string_view op : entry.ops) table[op] = entry.cost;
  return table;
}

}  // namespace

OpCost CostOfOp(const std::string& op) {
  static const auto* const table = new absl::flat_hash_map<absl::string_view, OpCost>(MakeTable());
  const auto found = table->find(op);
  return found == table->end() ? OpCost() : found->second;
}

std::vector<std::string> OpsWithCosts() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries)
    for (const absl::string_view op : entry.ops) names.emplace_back(op);
  return names;
}

double CostOfActivation(Activation activation) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kRelu6:
    case Activation::kLeakyRelu:
      return 0;
    case Activation::kSoftsign:
      return 0.2;
    case Activation::kSoftplus:
    case Activation::kGelu:
    case Activation::kGeluTanh:
    case Activation::kMish:
      return 0.9;
    default:
      return 0.5;
  }
}

}  // namespace floe::kernels
