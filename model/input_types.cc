#include "model/input_types.h"

#include <array>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {
namespace {

// By TensorFlow's name of the op: its inputs in order, from TensorFlow's op registry. A dtype; or a
// letter for one that all inputs of that letter share, i to n for int32 or int64; `*`: as many of
// these as there are; `?`: any number of any dtype. Only ops with something to check are listed.
struct Inputs {
  const char* op;
  const char* types;
};
constexpr Inputs kInputs[] = {
    {"AccumulateNV2", "T*"},
    {"Add", "T T"},
    {"AddN", "T*"},
    {"AddV2", "T T"},
    {"AdjustContrastv2", "T float32"},
    {"AdjustHue", "T float32"},
    {"AdjustSaturation", "T float32"},
    {"All", "bool i"},
    {"Any", "bool i"},
    {"ArgMin", "T i"},
    {"Assert", "bool ?"},
    {"Atan2", "T T"},
    {"AudioSpectrogram", "float32"},
    {"BatchMatMul", "T T"},
    {"BatchMatMulV2", "T T"},
    {"BatchToSpaceND", "T i j"},
    {"BiasAdd", "T T"},
    {"BiasAddV1", "T T"},
    {"BitwiseAnd", "T T"},
    {"BitwiseOr", "T T"},
    {"BitwiseXor", "T T"},
    {"BlockLSTM", "int64 T T T T T T T T"},
    {"BlockLSTMV2", "int64 T T T T T T T T"},
    {"BroadcastTo", "T i"},
    {"CTCBeamSearchDecoder", "T int32"},
    {"CTCGreedyDecoder", "T int32"},
    {"Case", "int32 ?"},
    {"CombinedNonMaxSuppression", "float32 float32 int32 int32 float32 float32"},
    {"Concat", "int32 T*"},
    {"ConcatV2", "T* i"},
    {"Conv2D", "T T"},
    {"Conv2DBackpropInput", "int32 T T"},
    {"Conv3D", "T T"},
    {"Conv3DBackpropInputV2", "i T T"},
    {"CropAndResize", "T float32 int32 int32"},
    {"Cumprod", "T i"},
    {"Cumsum", "T i"},
    {"DataFormatDimMap", "i"},
    {"DataFormatVecPermute", "i"},
    {"DecodeBase64", "string"},
    {"DecodeRaw", "string"},
    {"DecodeWav", "string"},
    {"DenseBincount", "i i T"},
    {"DenseToDenseSetOperation", "T T"},
    {"DepthwiseConv2dNative", "T T"},
    {"Dequantize", "T float32 float32"},
    {"Div", "T T"},
    {"DivNoNan", "T T"},
    {"DynamicPartition", "T int32"},
    {"Einsum", "T*"},
    {"EmptyTensorList", "i int32"},
    {"EncodeBase64", "string"},
    {"Equal", "T T"},
    {"EuclideanNorm", "T i"},
    {"ExpandDims", "T i"},
    {"FakeQuantWithMinMaxArgs", "float32"},
    {"FakeQuantWithMinMaxVars", "float32 float32 float32"},
    {"FakeQuantWithMinMaxVarsPerChannel", "float32 float32 float32"},
    {"Fill", "i T"},
    {"FloorDiv", "T T"},
    {"FloorMod", "T T"},
    {"FusedBatchNorm", "float32 float32 float32 float32 float32"},
    {"FusedBatchNormV2", "T float32 float32 float32 float32"},
    {"FusedBatchNormV3", "T U U U U"},
    {"GRUBlockCell", "float32 float32 float32 float32 float32 float32"},
    {"Gather", "T i"},
    {"GatherV2", "T U i"},
    {"Greater", "T T"},
    {"GreaterEqual", "T T"},
    {"InTopK", "float32 i"},
    {"InTopKV2", "float32 i i"},
    {"InitializeTableFromTextFileV2", "resource string"},
    {"InvertPermutation", "i"},
    {"LSTMBlockCell", "T T T T T T T T"},
    {"LeftShift", "T T"},
    {"Less", "T T"},
    {"LessEqual", "T T"},
    {"LinSpace", "T T i"},
    {"ListDiff", "T T"},
    {"LogicalAnd", "bool bool"},
    {"LogicalNot", "bool"},
    {"LogicalOr", "bool bool"},
    {"LookupTableFindV2", "resource T U"},
    {"LookupTableSizeV2", "resource"},
    {"LoopCond", "bool"},
    {"MatMul", "T T"},
    {"MatrixBandPart", "T i i"},
    {"MatrixDiagPartV2", "T int32 T"},
    {"MatrixDiagPartV3", "T int32 T"},
    {"MatrixDiagV2", "T int32 int32 int32 T"},
    {"MatrixDiagV3", "T int32 int32 int32 T"},
    {"MatrixSetDiag", "T T"},
    {"MatrixSetDiagV2", "T T int32"},
    {"MatrixSetDiagV3", "T T int32"},
    {"Max", "T i"},
    {"Maximum", "T T"},
    {"Mean", "T i"},
    {"Merge", "T*"},
    {"Mfcc", "float32 int32"},
    {"Min", "T i"},
    {"Minimum", "T T"},
    {"MirrorPad", "T i"},
    {"Mod", "T T"},
    {"Mul", "T T"},
    {"Multinomial", "T int32"},
    {"NonMaxSuppressionV2", "T T int32 U"},
    {"NonMaxSuppressionV3", "T T int32 U U"},
    {"NonMaxSuppressionV4", "T T int32 U U"},
    {"NonMaxSuppressionV5", "T T int32 T T T"},
    {"NotEqual", "T T"},
    {"OneHot", "T int32 U U"},
    {"Pack", "T*"},
    {"Pad", "T i"},
    {"PadV2", "T i T"},
    {"Pow", "T T"},
    {"Prod", "T i"},
    {"QuantizeAndDequantizeV2", "T T T"},
    {"QuantizeAndDequantizeV3", "T T T int32"},
    {"QuantizeV2", "float32 float32 float32"},
    {"QuantizedReshape", "T i float32 float32"},
    {"QuantizedResizeBilinear", "T int32 float32 float32"},
    {"RFFT", "T int32"},
    {"RFFT2D", "T int32"},
    {"RaggedGather", "i* T j"},
    {"RaggedRange", "T T T"},
    {"RaggedTensorFromVariant", "variant"},
    {"RaggedTensorToSparse", "i* T"},
    {"RaggedTensorToTensor", "i T T j*"},
    {"RaggedTensorToVariant", "i* T"},
    {"RandomStandardNormal", "i"},
    {"RandomUniform", "i"},
    {"RandomUniformInt", "i j j"},
    {"Range", "T T T"},
    {"RealDiv", "T T"},
    {"ReduceJoin", "string int32"},
    {"RefMerge", "T*"},
    {"RefSwitch", "T bool"},
    {"Reshape", "T i"},
    {"ResizeArea", "T int32"},
    {"ResizeBicubic", "T int32"},
    {"ResizeBilinear", "T int32"},
    {"ResizeNearestNeighbor", "T int32"},
    {"ReverseSequence", "T i"},
    {"ReverseV2", "T i"},
    {"RightShift", "T T"},
    {"Roll", "T i j"},
    {"SampleDistortedBoundingBoxV2", "T float32 float32"},
    {"ScaleAndTranslate", "T int32 float32 float32"},
    {"ScatterNd", "T U T"},
    {"SegmentMax", "T i"},
    {"SegmentMean", "T i"},
    {"SegmentMin", "T i"},
    {"SegmentProd", "T i"},
    {"SegmentSum", "T i"},
    {"Select", "bool T T"},
    {"SelectV2", "bool T T"},
    {"ShapeN", "T*"},
    {"Slice", "T i i"},
    {"SoftmaxCrossEntropyWithLogits", "T T"},
    {"SpaceToBatchND", "T i j"},
    {"SparseFillEmptyRows", "int64 T int64 T"},
    {"SparseReshape", "int64 int64 int64"},
    {"SparseSegmentMean", "T i j"},
    {"SparseSegmentMeanWithNumSegments", "T i j k"},
    {"SparseSegmentSqrtN", "T i j"},
    {"SparseSegmentSqrtNWithNumSegments", "T i j k"},
    {"SparseSegmentSum", "T i j"},
    {"SparseSegmentSumWithNumSegments", "T i j k"},
    {"SparseSoftmaxCrossEntropyWithLogits", "T i"},
    {"SparseTensorDenseMatMul", "i T int64 T"},
    {"SparseToDense", "i i T T"},
    {"Split", "int32 T"},
    {"SplitV", "T U int32"},
    {"SquaredDifference", "T T"},
    {"StatelessCase", "int32 ?"},
    {"StaticRegexReplace", "string"},
    {"StridedSlice", "T U U U"},
    {"StringJoin", "string*"},
    {"StringLength", "string"},
    {"StringLower", "string"},
    {"StringNGrams", "string i"},
    {"StringSplit", "string string"},
    {"StringSplitV2", "string string"},
    {"StringToHashBucket", "string"},
    {"StringToHashBucketStrong", "string"},
    {"StringToNumber", "string"},
    {"StringUpper", "string"},
    {"Sub", "T T"},
    {"Substr", "string i i"},
    {"Sum", "T i"},
    {"Switch", "T bool"},
    {"TensorArrayCloseV3", "resource"},
    {"TensorArrayConcatV3", "resource float32"},
    {"TensorArrayGatherV3", "resource int32 float32"},
    {"TensorArrayReadV3", "resource int32 float32"},
    {"TensorArrayScatterV3", "resource int32 T float32"},
    {"TensorArraySizeV3", "resource float32"},
    {"TensorArraySplitV3", "resource T int64 float32"},
    {"TensorArrayV3", "int32"},
    {"TensorArrayWriteV3", "resource int32 T float32"},
    {"TensorListConcat", "variant"},
    {"TensorListConcatV2", "variant i int64"},
    {"TensorListElementShape", "variant"},
    {"TensorListFromTensor", "T i"},
    {"TensorListGather", "variant int32 int32"},
    {"TensorListGetItem", "variant int32 i"},
    {"TensorListLength", "variant"},
    {"TensorListPopBack", "variant int32"},
    {"TensorListPushBack", "variant T"},
    {"TensorListReserve", "i int32"},
    {"TensorListResize", "variant int32"},
    {"TensorListScatter", "T int32 i"},
    {"TensorListScatterIntoExistingList", "variant T int32"},
    {"TensorListScatterV2", "T int32 i int32"},
    {"TensorListSetItem", "variant int32 T"},
    {"TensorListSplit", "T i int64"},
    {"TensorListStack", "variant int32"},
    {"TensorScatterAdd", "T i T"},
    {"TensorScatterMax", "T i T"},
    {"TensorScatterMin", "T i T"},
    {"TensorScatterSub", "T i T"},
    {"TensorScatterUpdate", "T U T"},
    {"Tile", "T i"},
    {"Transpose", "T i"},
    {"TruncateDiv", "T T"},
    {"TruncateMod", "T T"},
    {"TruncatedNormal", "i"},
    {"UnicodeDecode", "string"},
    {"UnicodeDecodeWithOffsets", "string"},
    {"UnicodeEncode", "int32 i"},
    {"UnicodeTranscode", "string"},
    {"UnsortedSegmentMax", "T i j"},
    {"UnsortedSegmentMin", "T i j"},
    {"UnsortedSegmentProd", "T i j"},
    {"UnsortedSegmentSum", "T U i"},
    {"Xdivy", "T T"},
    {"Xlog1py", "T T"},
    {"Xlogy", "T T"},
};

struct Input {
  DType dtype = DType::kInvalid;  // given, or shared with all inputs of one `letter`
  char letter = 0;
  bool any = false, repeated = false;
  bool IsIndex() const { return letter >= 'i' && letter <= 'n'; }
};

std::vector<Input> Parse(const std::string& types) {
  std::vector<Input> inputs;
  std::istringstream words(types);
  for (std::string word; words >> word;) {
    Input input;
    input.repeated = word.back() == '*' || word == "?";
    if (word.back() == '*') word.pop_back();
    input.any = word == "?";
    if (word.size() == 1) {
      input.letter = word[0];
    } else {
      input.dtype = DTypeFromName(word).value();
    }
    inputs.push_back(input);
  }
  return inputs;
}

const std::vector<Input>* InputsOf(const OpDef& op) {
  static const auto* const by_op = [] {
    auto* table = new std::unordered_map<const OpDef*, std::vector<Input>>();
    for (const Inputs& row : kInputs) {
      if (const OpDef* def = FindTensorFlowOp(row.op)) table->emplace(def, Parse(row.types));
    }
    return table;
  }();
  const auto found = by_op->find(&op);
  return found == by_op->end() ? nullptr : &found->second;
}

absl::Status Mismatch(size_t input, DType dtype, const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("input ", input, " is ", DTypeName(dtype), ", expected ", wanted));
}

using Shared = std::array<DType, 128>;  // by letter

absl::Status CheckInput(const Input& rule, size_t k, DType dtype, Shared* shared) {
  if (rule.any || dtype == DType::kInvalid) return absl::OkStatus();
  if (rule.letter == 0) {
    return dtype == rule.dtype ? absl::OkStatus() : Mismatch(k, dtype, DTypeName(rule.dtype));
  }
  if (rule.IsIndex() && dtype != DType::kInt32 && dtype != DType::kInt64)
    return Mismatch(k, dtype, "int32 or int64");
  DType& first = (*shared)[static_cast<size_t>(rule.letter)];
  if (first == DType::kInvalid) first = dtype;
  if (first == dtype) return absl::OkStatus();
  return Mismatch(k, dtype, absl::StrCat(DTypeName(first), " as another input is"));
}

}  // namespace

absl::Status CheckInputTypes(const Node& node, absl::Span<const ValueInfo> inputs) {
  const std::vector<Input>* rules = InputsOf(*node.op);
  if (rules == nullptr) return absl::OkStatus();
  Shared shared;
  shared.fill(DType::kInvalid);
  // A repeated input takes what the others leave.
  const size_t repeats = inputs.size() + 1 > rules->size() ? inputs.size() + 1 - rules->size() : 0;
  size_t k = 0;
  for (const Input& rule : *rules) {
    const size_t count = rule.repeated ? repeats : 1;
    for (size_t i = 0; i < count && k < inputs.size(); ++i, ++k)
      FLOE_RETURN_IF_ERROR(CheckInput(rule, k, inputs[k].type.dtype, &shared));
  }
  return absl::OkStatus();
}

}  // namespace floe
