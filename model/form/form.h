// floe's own form of a model: a graph with its signatures in one flat, versioned, checked file that
// is mapped read-only and used as it lies. Nothing is copied at load but names and attributes; the
// weights stay in the mapping.
//
// Layout, version 1. Integers are in the byte order the header names (files are written and read on
// little-endian machines). Sections follow each other in the order of their kinds, each at the next
// multiple of 8 bytes, the last at the next multiple of 4096; bytes between them are zero; the file
// ends with the last. "string" is a u32 length and that many bytes; "list of X" is a u32 count and
// that many X.
//
//   header   u8 magic[8]: 8b 46 4c 4f 45 0d 0a 1a; u32 version; u32 byte order 01020304;
//            u64 bytes of the file; u32 sections (5); u32 CRC-32C of header and section table with
//            this field zero; 32 bytes zero
//   table    for each section: u32 kind; u32 CRC-32C of its bytes; u64 offset; u64 bytes; u64 items
//   1 tensors      u32 dtype (TensorFlow's number); u32 rank; i64 dims; numbers: u64 offset in the
//                  weights, a multiple of 64; strings: a string for each element
//   2 graphs       the whole graph last, subgraphs before what uses them:
//                  list of nodes; list of inputs (u32 node); list of outputs (u32 node, u32 output)
//     node         string op; string name; u32 outputs; list of inputs (u32 node, u32 output); list
//                  of control inputs (u32 node); list of attributes; list of subgraphs (u32 graph)
//     attribute    string name; u32 kind (AttrKind in layout.h); the value, of lists a list. Floats
//                  4 bytes, ints 8, bools and dtypes 4, a shape u32 rank (ffffffff: unknown) and
//                  i64 dims (-1: unknown), a tensor its u32 number (ffffffff: none)
//   3 signatures   string name; string method; list of inputs; list of outputs
//     its tensors  string key; string tensor name; u32 dtype; shape; u32 optional; tensor (default)
//   4 preparation  string name of a node that is run once before the first request
//   5 weights      values, row-major, little-endian, each tensor at a multiple of 64
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/graph.h"

namespace floe {

// What a file holds.
struct FormModel {
  Graph graph;                           // inputs/outputs empty: signatures name tensors
  std::vector<SignatureDef> signatures;  // at least one
  std::vector<std::string> init_nodes;   // run once before the first request
};

enum class FormCheck : uint8_t {
  kStructure,  // no checksum: for fuzzers, whose files have none that fit
  kMetadata,   // all but the weights, which are then not read at all
  kAll,        // the weights too; reads the whole file
};

// True for bytes that begin as a file in this form does, of any version.
bool IsForm(absl::Span<const uint8_t> bytes);

// Numeric tensors point into `bytes`, which `owner` keeps alive (null: the caller does) and nobody
// writes. `bytes` is aligned to 64. Nothing in them is trusted: FAILED_PRECONDITION for another
// version or byte order, DATA_LOSS for a wrong checksum or length, INVALID_ARGUMENT naming the node
// for contents that cannot be, UNIMPLEMENTED listing all ops this build does not know. Memory used
// is bounded by a multiple of the size of `bytes`.
absl::StatusOr<FormModel> ReadForm(absl::Span<const uint8_t> bytes,
                                   std::shared_ptr<const void> owner = nullptr,
                                   FormCheck check = FormCheck::kMetadata);

// The file's bytes. INVALID_ARGUMENT for what cannot be stored (a tensor of handles, a graph or
// signature that model/verify.h refuses), naming the node.
absl::StatusOr<std::string> SerializeForm(const FormModel& model);

// The same into a file; whoever opens `path` meanwhile sees the old file or the whole new one.
absl::Status WriteForm(const FormModel& model, const std::string& path);

}  // namespace floe
