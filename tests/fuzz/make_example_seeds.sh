#!/usr/bin/env bash
# Writes the seeds of the example fuzzer: make_example_seeds.sh FOLDER. Needs protoc.
set -euo pipefail
protos=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../proto" && pwd)
folder=$1
mkdir -p "$folder"

# message NAME FORM TYPE FILE TEXT: the byte of the form, and the message.
message() {
  { printf "%b" "$2"; protoc -I "$protos" "--encode=tensorflow.serving.$3" "tensorflow_serving/apis/$4.proto" <<<"$5"; } >"$folder/$1"
}
classify() { message "$1" '\0' ClassificationRequest classification "$2"; }
tasks() { message "$1" '\1' MultiInferenceRequest inference "$2"; }
json() { printf '\2%s' "$2" >"$folder/$1"; }

example="features { feature { key: 'x' value { float_list { value: [1, 2.5] } } } feature { key: 'n' value { int64_list { value: [3, -1] } } }
  feature { key: 't' value { bytes_list { value: ['a', ''] } } } feature { key: 'none' value {} } }"
list="input { example_list { examples { $example } examples {} } }"
context="input { example_list_with_context { examples { $example } examples {} context {
  features { feature { key: 'x' value { int64_list { value: 7 } } } feature { key: 'c' value { bytes_list { value: 'c' } } } } } } }"
regress="method_name: 'tensorflow/serving/regress'"
classify list "model_spec { name: 'm' } $list"
classify context "model_spec { name: 'm' version { value: 3 } signature_name: 'serving_default' } $context"
classify none "model_spec { name: 'm' version_label: 'a' } input { example_list {} }"
tasks tasks "tasks { model_spec { name: 'm' } method_name: 'tensorflow/serving/classify' } tasks { model_spec { name: 'm' signature_name: 's' } $regress } $list"
tasks tasks_context "tasks { model_spec { name: 'm' } method_name: 'tensorflow/serving/classify' } $context"
json json '{"signature_name": "serving_default", "examples": [{"x": [1.0, 2.5], "n": 3, "t": ["a", {"b64": "/w=="}], "none": []}, {"b": true}]}'
json json_context '{"context": {"c": "\u00e9", "x": 7}, "examples": [{"x": -1e2}, {}], "other": [null]}'
