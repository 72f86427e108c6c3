#include "model/import/graphdef/known_attributes.h"

#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace floe {
namespace {

// Attributes that cannot change an answer, of whatever op. Beside these: names that begin with an
// underscore, which are TensorFlow's notes to itself, and dtypes, which restate those of inputs and
// outputs or are read where they choose one.
constexpr const char* kHarmless[] = {
    // How it is run, and where.
    "config",
    "config_proto",
    "executor_type",
    "parallel_iterations",
    "use_cudnn_on_gpu",
    // How many inputs or outputs there are, which the node shows.
    "N",
    "num_outs",
    "num_row_partition_tensors",
    // Has had no effect since indices are always checked.
    "validate_indices",
    // What is known of shapes, and of what stays the same in a loop.
    "element_shape_except0",
    "is_constant",
    "output_shapes",
    // How a gradient is computed.
    "grad_a",
    "grad_b",
    "grad_x",
    "grad_y",
    "sparse_gradient",
    // What tables and lists are called beside their node.
    "container",
    "tensor_array_name",
    "use_node_name_sharing",
    // What is printed and said of errors.
    "end",
    "first_n",
    "message",
    "output_stream",
    "summarize",
    // TensorFlow's kernel for CPUs is exact and sorted as well, whatever these say.
    "aggregate_to_topk",
    "recall_target",
    "reduction_input_size_override",
    "sorted",
};

// What an op's meaning does not read: only these values will do, TensorFlow's default and what is
// the same on a CPU. `op` null: of all.
struct DefaultOnly {
  const char *op, *attribute, *value;
};
constexpr DefaultOnly kDefaultOnly[] = {
    {"Cast", "Truncate", "b: false"},
    {nullptr, "bad_indices_policy", "s: \"\""},
    {nullptr, "bad_indices_policy", "s: \"DEFAULT\""},
    {nullptr, "bad_indices_policy", "s: \"ERROR\""},
};

// Attributes that are read, or that restate what the node's inputs and outputs tell, and the ops
// that have them. A new op's attributes are added here: until then its nodes are refused, and with
// them its cases.
struct Reads {
  const char *attribute, *ops;
};
constexpr Reads kReads[] = {
    {"Ncontext_sparse", "ParseSequenceExampleV2"},
    {"Ndense", "ParseExample"},
    {"Nfeature_list_dense", "ParseSequenceExampleV2"},
    {"Nfeature_list_sparse", "ParseSequenceExampleV2"},
    {"Nsparse", "ParseExample RaggedCross"},
    {"OUTPUT_RAGGED_RANK", "RaggedGather"},
    {"PARAMS_RAGGED_RANK", "RaggedGather"},
    {"RAGGED_RANK", "RaggedTensorToSparse RaggedTensorToVariant"},
    {"acceptable_fraction", "DecodeAndCropJpeg DecodeJpeg"},
    {"adj_x", "BatchMatMul BatchMatMulV2 BatchMatMulV3"},
    {"adj_y", "BatchMatMul BatchMatMulV2 BatchMatMulV3"},
    {"adjoint", "BandedTriangularSolve MatrixInverse MatrixSolve MatrixTriangularSolve"},
    {"adjoint_a", "SparseTensorDenseMatMul"},
    {"adjoint_b", "SparseTensorDenseMatMul"},
    {"align", "MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiagV3"},
    {"align_corners",
     "QuantizedResizeBilinear ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor"},
    {"alpha", "LRN LeakyRelu"},
    {"antialias", "ScaleAndTranslate"},
    {"area_range", "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"},
    {"aspect_ratio_range", "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"},
    {"axis",
     "Dequantize OneHot Pack QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeV2 Unpack"},
    {"batch_dim", "ReverseSequence"},
    {"batch_dims", "GatherV2"},
    {"batched_input", "RaggedTensorToVariant"},
    {"beam_width", "CTCBeamSearchDecoder"},
    {"begin_mask", "StridedSlice"},
    {"beta", "LRN"},
    {"bias", "LRN"},
    {"binary_output",
     "DenseBincount DenseCountSparseOutput RaggedBincount RaggedCountSparseOutput SparseBincount "
     "SparseCountSparseOutput"},
    {"blank_index", "CTCGreedyDecoder"},
    {"block_size", "DepthToSpace SpaceToDepth"},
    {"boundaries", "Bucketize"},
    {"cell_clip", "BlockLSTM BlockLSTMV2 LSTMBlockCell"},
    {"channels", "DecodeAndCropJpeg DecodeBmp DecodeImage DecodeJpeg DecodePng"},
    {"chroma_downsampling", "EncodeJpeg"},
    {"clear_after_read", "TensorArrayV3"},
    {"clip_boxes", "CombinedNonMaxSuppression"},
    {"compression", "EncodePng"},
    {"compression_type", "DecodeCompressed"},
    {"compute_uv", "Svd"},
    {"compute_v", "Eig SelfAdjointEigV2"},
    {"concat_dim", "SparseConcat"},
    {"context_dense_shapes", "ParseSequenceExampleV2"},
    {"data_format",
     "AvgPool AvgPool3D BiasAdd Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2 "
     "DepthToSpace DepthwiseConv2dNative FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 MaxPool "
     "MaxPool3D SpaceToDepth"},
    {"dct_coefficient_count", "Mfcc"},
    {"dct_method", "DecodeAndCropJpeg DecodeJpeg"},
    {"delimiter", "InitializeTableFromTextFile InitializeTableFromTextFileV2"},
    {"dense_keys", "ParseSingleExample"},
    {"dense_shapes", "ParseExample ParseExampleV2 ParseSingleExample"},
    {"density_unit", "EncodeJpeg"},
    {"depth_radius", "LRN"},
    {"desired_channels", "DecodeWav"},
    {"desired_samples", "DecodeWav"},
    {"dilations",
     "Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2 DepthwiseConv2dNative "
     "QuantizedConv2D"},
    {"dst_format", "DataFormatDimMap DataFormatVecPermute"},
    {"dynamic_size", "TensorArrayV3"},
    {"element_shape", "TensorArrayGatherV3 TensorArrayV3 TensorListConcat"},
    {"ellipsis_mask", "StridedSlice"},
    {"encoding", "StringLower StringUpper"},
    {"end_mask", "StridedSlice"},
    {"ensure_minimum_range", "QuantizeV2"},
    {"epsilon", "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"},
    {"equation", "Einsum"},
    {"errors", "UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeTranscode"},
    {"exclusive", "Cumprod Cumsum CumulativeLogsumexp"},
    {"expand_animations", "DecodeImage"},
    {"explicit_paddings", "Conv2D Conv2DBackpropInput DepthwiseConv2dNative MaxPool"},
    {"exponential_avg_factor", "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"},
    {"extrapolation_value", "CropAndResize"},
    {"fancy_upscaling", "DecodeAndCropJpeg DecodeJpeg"},
    {"fast", "MatrixSolveLs"},
    {"feature_list_dense_shapes", "ParseSequenceExampleV2"},
    {"field_delim", "DecodeCSV"},
    {"fill", "AsString"},
    {"fill_mode", "ImageProjectiveTransformV2 ImageProjectiveTransformV3"},
    {"filterbank_channel_count", "Mfcc"},
    {"forget_bias", "BlockLSTM LSTMBlockCell"},
    {"format", "EncodeJpeg"},
    {"frame_name", "Enter RefEnter"},
    {"full_matrices", "Qr Svd"},
    {"given_y_max", "QuantizedInstanceNorm"},
    {"given_y_min", "QuantizedInstanceNorm"},
    {"half_pixel_centers",
     "QuantizedResizeBilinear ResizeBicubic ResizeBilinear ResizeNearestNeighbor"},
    {"hash_key", "RaggedCross SparseCross"},
    {"hashed_output", "RaggedCross SparseCross"},
    {"identical_element_shapes", "TensorArrayV3"},
    {"include_batch_in_index", "MaxPoolWithArgmax"},
    {"incompatible_shape_error", "Equal NotEqual"},
    {"input_encoding", "UnicodeDecode UnicodeDecodeWithOffsets UnicodeTranscode"},
    {"input_order", "RaggedCross"},
    {"input_ragged_rank", "RaggedTensorFromVariant"},
    {"interpolation", "ImageProjectiveTransformV2 ImageProjectiveTransformV3"},
    {"is_max_k", "ApproxTopK"},
    {"is_training", "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"},
    {"k", "ApproxTopK InTopK"},
    {"keep_dims",
     "All Any EuclideanNorm Max Mean Min Prod ReduceJoin SparseReduceMax SparseReduceSum Sum"},
    {"kernel_type", "ScaleAndTranslate"},
    {"key", "StringToHashBucketStrong"},
    {"key_index", "InitializeTableFromTextFile InitializeTableFromTextFileV2"},
    {"ksize",
     "AvgPool AvgPool3D MaxPool MaxPool3D MaxPoolWithArgmax QuantizedAvgPool QuantizedMaxPool"},
    {"ksizes", "ExtractImagePatches"},
    {"left_pad", "StringNGrams"},
    {"little_endian", "DecodePaddedRaw DecodeRaw"},
    {"lower", "BandedTriangularSolve MatrixTriangularSolve"},
    {"lower_frequency_limit", "Mfcc"},
    {"magnitude_squared", "AudioSpectrogram"},
    {"max", "FakeQuantWithMinMaxArgs"},
    {"max_attempts", "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"},
    {"maxlength", "DenseCountSparseOutput RaggedCountSparseOutput SparseCountSparseOutput"},
    {"maxsplit", "StringSplitV2"},
    {"merge_repeated", "CTCBeamSearchDecoder CTCGreedyDecoder"},
    {"method", "CropAndResize"},
    {"min", "FakeQuantWithMinMaxArgs"},
    {"min_object_covered", "SampleDistortedBoundingBox"},
    {"min_separation", "QuantizedInstanceNorm"},
    {"minlength", "DenseCountSparseOutput RaggedCountSparseOutput SparseCountSparseOutput"},
    {"mode", "Dequantize MirrorPad QuantizeV2"},
    {"na_value", "DecodeCSV"},
    {"narrow_range",
     "Dequantize FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel "
     "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeV2"},
    {"new_axis_mask", "StridedSlice"},
    {"ngram_widths", "StringNGrams"},
    {"num", "Unpack"},
    {"num_bits",
     "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel "
     "QuantizeAndDequantizeV2"},
    {"num_buckets",
     "RaggedCross SparseCross StringToHashBucket StringToHashBucketFast StringToHashBucketStrong"},
    {"num_elements", "TensorListStack"},
    {"num_partitions", "DynamicPartition"},
    {"num_sparse", "ParseExampleV2 ParseSingleExample"},
    {"num_split", "SparseSplit Split SplitV"},
    {"offset", "InitializeTableFromTextFile InitializeTableFromTextFileV2"},
    {"optimize_size", "EncodeJpeg"},
    {"output_encoding", "UnicodeEncode UnicodeTranscode"},
    {"output_ragged_rank", "RaggedTensorFromVariant"},
    {"output_range_given", "QuantizedInstanceNorm"},
    {"pad", "EncodeBase64"},
    {"pad_per_class", "CombinedNonMaxSuppression"},
    {"pad_to_max_output_size", "NonMaxSuppressionV4 NonMaxSuppressionV5"},
    {"pad_width", "StringNGrams"},
    {"padding",
     "AvgPool AvgPool3D Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2 "
     "DepthwiseConv2dNative Dilation2D ExtractImagePatches MaxPool MaxPool3D MaxPoolWithArgmax "
     "QuantizedAvgPool QuantizedConv2D QuantizedMaxPool"},
    {"partial_pivoting", "TridiagonalSolve"},
    {"pattern", "StaticRegexFullMatch StaticRegexReplace"},
    {"perturb_singular", "TridiagonalSolve"},
    {"placeholder", "StringFormat"},
    {"precision", "AsString"},
    {"preserve_short_sequences", "StringNGrams"},
    {"progressive", "EncodeJpeg"},
    {"quality", "EncodeJpeg"},
    {"range_given", "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3"},
    {"rates", "Dilation2D ExtractImagePatches"},
    {"ratio", "DecodeAndCropJpeg DecodeJpeg"},
    {"reduction_dimension", "ApproxTopK"},
    {"replace_control_characters", "UnicodeDecode UnicodeDecodeWithOffsets UnicodeTranscode"},
    {"replace_global", "RegexReplace StaticRegexReplace"},
    {"replacement_char", "UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeTranscode"},
    {"resize_if_index_out_of_bounds", "TensorListSetItem"},
    {"reverse", "Cumprod Cumsum CumulativeLogsumexp NthElement"},
    {"rewrite", "StaticRegexReplace"},
    {"right_pad", "StringNGrams"},
    {"round_mode", "QuantizeAndDequantizeV2 QuantizeV2"},
    {"row_partition_types", "RaggedTensorToTensor"},
    {"scale_after_normalization", "QuantizedBatchNormWithGlobalNormalization"},
    {"scientific", "AsString"},
    {"seed",
     "Multinomial RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt "
     "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 TruncatedNormal"},
    {"seed2",
     "Multinomial RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt "
     "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 TruncatedNormal"},
    {"select_cols", "DecodeCSV"},
    {"separator", "ReduceJoin StringJoin StringNGrams UnsortedSegmentJoin"},
    {"seq_dim", "ReverseSequence"},
    {"set_operation",
     "DenseToDenseSetOperation DenseToSparseSetOperation SparseToSparseSetOperation"},
    {"shape", "AccumulateNV2 EnsureShape Placeholder PlaceholderWithDefault"},
    {"shared_name",
     "HashTable HashTableV2 MutableHashTable MutableHashTableOfTensors MutableHashTableOfTensorsV2 "
     "MutableHashTableV2"},
    {"shortest", "AsString"},
    {"shrink_axis_mask", "StridedSlice"},
    {"signed_input", "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3"},
    {"skip_empty", "StringSplit"},
    {"sparse_keys", "ParseSingleExample"},
    {"squeeze_dims", "Squeeze"},
    {"src_format", "DataFormatDimMap DataFormatVecPermute"},
    {"stride", "AudioSpectrogram"},
    {"strides",
     "AvgPool AvgPool3D Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2 "
     "DepthwiseConv2dNative Dilation2D ExtractImagePatches MaxPool MaxPool3D MaxPoolWithArgmax "
     "QuantizedAvgPool QuantizedConv2D QuantizedMaxPool"},
    {"template", "StringFormat"},
    {"tolerance", "ApproximateEqual"},
    {"top_paths", "CTCBeamSearchDecoder"},
    {"transpose_a", "MatMul QuantizedMatMul"},
    {"transpose_b", "MatMul QuantizedMatMul"},
    {"try_recover_truncated", "DecodeAndCropJpeg DecodeJpeg"},
    {"unit", "StringLength Substr"},
    {"upper_frequency_limit", "Mfcc"},
    {"use_image_if_no_bounding_boxes", "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"},
    {"use_peephole", "BlockLSTM BlockLSTMV2 LSTMBlockCell"},
    {"use_quote_delim", "DecodeCSV"},
    {"value", "Const"},
    {"value_index", "InitializeTableFromTextFile InitializeTableFromTextFileV2"},
    {"value_shape", "MutableHashTableOfTensors MutableHashTableOfTensorsV2"},
    {"variance_epsilon", "QuantizedBatchNormWithGlobalNormalization QuantizedInstanceNorm"},
    {"vocab_size", "InitializeTableFromTextFile InitializeTableFromTextFileV2"},
    {"width", "AsString"},
    {"window_size", "AudioSpectrogram"},
    {"x_density", "EncodeJpeg"},
    {"xmp_metadata", "EncodeJpeg"},
    {"y_density", "EncodeJpeg"},
};

using Names = std::unordered_set<std::string_view>;

const Names& Harmless() {
  static const Names names(std::begin(kHarmless), std::end(kHarmless));
  return names;
}

// The ops that read an attribute.
const std::unordered_map<std::string_view, Names>& Readers() {
  static const auto* const readers = [] {
    auto* const made = new std::unordered_map<std::string_view, Names>;
    for (const Reads& reads : kReads) {
      Names& ops = (*made)[reads.attribute];
      std::string_view left = reads.ops;
      while (!left.empty()) {
        const size_t end = left.find(' ');
        ops.insert(left.substr(0, end));
        left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
      }
    }
    return made;
  }();
  return *readers;
}

bool IsOfTypes(const tensorflow::AttrValue& value) {
  return value.has_type() || (value.has_list() && value.list().type_size() != 0) ||
         value.has_func() || (value.has_list() && value.list().func_size() != 0);
}

// No element of a list tells what it is a list of.
bool IsEmpty(const tensorflow::AttrValue& value) {
  return value.value_case() == tensorflow::AttrValue::VALUE_NOT_SET ||
         (value.has_list() && value.list().ByteSizeLong() == 0);
}

std::string ValueText(const tensorflow::AttrValue& value) {
  constexpr size_t kShown = 80;
  if (value.has_tensor()) return "a tensor";
  return value.ShortDebugString().substr(0, kShown);
}

// The first row of the table for this attribute of this op, or that with this value.
const DefaultOnly* FindDefaultOnly(std::string_view op, std::string_view attribute,
                                   std::string_view value) {
  const DefaultOnly* first = nullptr;
  for (const DefaultOnly& one : kDefaultOnly) {
    if ((one.op != nullptr && op != one.op) || attribute != one.attribute) continue;
    if (value == one.value) return &one;
    if (first == nullptr) first = &one;
  }
  return first;
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> AttributesThatOpsRead() {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (const auto& [attribute, ops] : Readers()) {
    for (const std::string_view op : ops) all.emplace_back(op, attribute);
  }
  return all;
}

absl::Status CheckAttributes(const tensorflow::NodeDef& node) {
  const auto refuse = [&node](const std::string& name, const std::string& text,
                              const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("node ", Quoted(node.name()), " (",
                                                   Escaped(node.op()), "): attribute ",
                                                   Quoted(name), " (", Escaped(text), ") ", why));
  };
  for (const auto& [name, value] : node.attr()) {
    if (name.empty() || name[0] == '_' || Harmless().count(name) != 0 || IsOfTypes(value) ||
        IsEmpty(value))
      continue;
    const auto readers = Readers().find(name);
    if (readers != Readers().end() && readers->second.count(node.op()) != 0) continue;
    const std::string text = ValueText(value);
    const DefaultOnly* const only = FindDefaultOnly(node.op(), name, text);
    if (only == nullptr)
      return refuse(name, text,
                    "is none that floe knows of this op; save the graph with a version of "
                    "TensorFlow whose op has no such attribute");
    if (text == only->value) continue;
    return refuse(name, text,
                  absl::StrCat("changes the answer in a way that floe does not know; export the "
                               "graph with ",
                               only->value));
  }
  return absl::OkStatus();
}

}  // namespace floe
