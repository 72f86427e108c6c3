#!/usr/bin/env bash
# Writes the seeds of the wire fuzzer: make_wire_seeds.sh FOLDER. Needs protoc.
set -euo pipefail
protos=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../proto" && pwd)
folder=$1
mkdir -p "$folder"

# seed NAME TEXT: a PredictRequest in text form.
seed() {
  protoc -I "$protos" --encode=tensorflow.serving.PredictRequest tensorflow_serving/apis/predict.proto <<<"$2" >"$folder/$1"
}
# tensor NAME BODY: a request with one tensor.
tensor() { seed "$1" "model_spec { name: 'm' } inputs { key: 'x' value { $2 } }"; }

two='tensor_shape { dim { size: 2 } }'
tensor float "dtype: DT_FLOAT $two float_val: [1, -2]"
tensor content "dtype: DT_FLOAT $two tensor_content: 'abcdefgh'"
tensor repeated "dtype: DT_DOUBLE tensor_shape { dim { size: 2 } dim { size: 3 } } double_val: 1.5"
tensor zeros "dtype: DT_INT64 $two"
tensor int "dtype: DT_INT32 $two int_val: [7, -7]"
tensor byte "dtype: DT_UINT8 $two int_val: [7, 255]"
tensor int64 "dtype: DT_INT64 $two int64_val: [9223372036854775807, -1]"
tensor uint32 "dtype: DT_UINT32 $two uint32_val: [1, 4294967295]"
tensor uint64 "dtype: DT_UINT64 $two uint64_val: [1, 18446744073709551615]"
tensor bool "dtype: DT_BOOL $two bool_val: [true, false]"
tensor half "dtype: DT_HALF $two half_val: [15360, 0]"
tensor bfloat16 "dtype: DT_BFLOAT16 $two tensor_content: 'abcd'"
tensor complex "dtype: DT_COMPLEX64 $two scomplex_val: [1, 2, 3, 4]"
tensor complex128 "dtype: DT_COMPLEX128 tensor_shape {} dcomplex_val: [1, 2]"
tensor string "dtype: DT_STRING $two string_val: ['a', '']"
tensor scalar "dtype: DT_FLOAT tensor_shape {} float_val: 1"
tensor empty "dtype: DT_FLOAT tensor_shape { dim { size: 0 } dim { size: 5 } }"
tensor negative "dtype: DT_FLOAT tensor_shape { dim { size: -1 } }"
tensor unknown_rank "dtype: DT_FLOAT tensor_shape { unknown_rank: true }"
tensor huge "dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }"
seed spec "model_spec { name: 'm' version { value: 3 } signature_name: 's' } output_filter: ['y', 'z']"
seed label "model_spec { name: 'm' version_label: 'stable' }"
seed several "model_spec { name: 'm' } inputs { key: 'a' value { dtype: DT_FLOAT $two float_val: [1, 2] } }
  inputs { key: 'b' value { dtype: DT_STRING $two string_val: ['a', 'b'] } } output_filter: 'y'"

# infer NAME TEXT: a ModelInferRequest.
infer() {
  protoc -I "$protos" --encode=inference.ModelInferRequest kserve/grpc_service.proto <<<"$2" >"$folder/infer_$1"
}
# contents DATATYPE BODY and raw DATATYPE BYTES: a request with two elements.
contents() { infer "$1" "model_name: '$1' inputs { name: 'x' datatype: '$1' shape: [2] contents { $2 } }"; }
raw() { infer "raw_$1" "model_name: '$1' inputs { name: 'x' datatype: '$1' shape: [2] } raw_input_contents: '$2'"; }
contents FP32 'fp32_contents: [1, -2]'
contents FP64 'fp64_contents: [1, -2]'
contents INT64 'int64_contents: [9223372036854775807, -1]'
contents INT32 'int_contents: [7, -7]'
contents INT8 'int_contents: [127, -128]'
contents UINT16 'uint_contents: [65535, 0]'
contents UINT8 'uint_contents: [255, 0]'
contents UINT64 'uint64_contents: [1, 18446744073709551615]'
contents BOOL 'bool_contents: [true, false]'
contents BYTES "bytes_contents: ['a', '']"
raw FP32 abcdefgh
raw BOOL '\001\000'
raw FP16 abcd
raw BF16 abcd
raw BYTES '\001\000\000\000a\000\000\000\000'
infer narrow "model_name: 'INT8' inputs { name: 'x' datatype: 'INT8' shape: [1] contents { int_contents: 128 } }"
infer parameters "model_name: 'FP32' model_version: '1' id: 'a' parameters { key: 'priority' value { uint64_param: 2 } }
  parameters { key: 'timeout' value { int64_param: 1000 } } parameters { key: 'signature_name' value { string_param: 'serving_default' } }
  inputs { name: 'x' datatype: 'FP32' shape: [0, 3] parameters { key: 'shared_memory_region' value { string_param: 'r' } } }
  outputs { name: 'x_out' parameters { key: 'binary_data' value { bool_param: true } } }"
infer two "model_name: 'two' inputs { name: 'y' datatype: 'BYTES' shape: [1, 1] contents { bytes_contents: 'b' } }
  inputs { name: 'x' datatype: 'FP32' shape: [] contents { fp32_contents: 3 } } outputs { name: 'y_out' } outputs { name: 'x_out' }"
