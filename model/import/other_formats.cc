#include "model/import/other_formats.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace floe {
namespace {

constexpr const char* kFreeze =
    "freeze it into one graph first ('Frozen graphs' in docs/serving.md says how)";

absl::Status OtherFormat(const std::string& what, const std::string& remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat("this is ", what, ", not a frozen graph: ", remedy));
}

bool BeginsWith(std::string_view bytes, std::string_view begin, size_t at = 0) {
  return bytes.size() >= at && bytes.substr(at, begin.size()) == begin;
}

template <typename Message>
bool Parses(std::string_view bytes, Message* message) {
  if (bytes.size() > INT_MAX) return false;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  return message->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

}  // namespace

bool LooksLikeSavedModel(std::string_view bytes) {
  if (BeginsWith(bytes, "saved_model_schema_version") || BeginsWith(bytes, "meta_graphs"))
    return true;
  constexpr uint32_t kVersion = 1 << 3, kMetaGraph = 2 << 3 | 2;
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int>(std::min<size_t>(bytes.size(), 64)));
  uint64_t version = 0, size = 0;
  return stream.ReadTag() == kVersion && stream.ReadVarint64(&version) &&
         stream.ReadTag() == kMetaGraph && stream.ReadVarint64(&size);
}

absl::Status CheckNoOtherFormat(std::string_view bytes) {
  if (BeginsWith(bytes, "version https://git-lfs"))
    return OtherFormat("a Git LFS pointer", "the model itself comes with 'git lfs pull'");
  if (LooksLikeSavedModel(bytes)) return OtherFormat("a SavedModel", kFreeze);
  if (BeginsWith(bytes, "\x89HDF\r\n")) return OtherFormat("an HDF5 file of Keras", kFreeze);
  if (BeginsWith(bytes,
                 "\x8b"
                 "FLOE"))
    return OtherFormat("a model converted by floe 0.1", "serve the frozen graph it was made from");
  if (BeginsWith(bytes, "TFL3", 4))
    return OtherFormat("a TensorFlow Lite model", "freeze the model that it was converted from");
  if (BeginsWith(bytes, "PK\x03\x04"))
    return OtherFormat("a zip archive (a .keras file is one)", "unpack it, or freeze its model");
  if (BeginsWith(bytes, "\x1f\x8b")) return OtherFormat("a gzip archive", "unpack it");
  if (BeginsWith(bytes, "<!DOCTYPE") || BeginsWith(bytes, "<html"))
    return OtherFormat("a web page", "download the file that it shows");
  return absl::OkStatus();
}

absl::Status CheckNoMetaGraph(std::string_view bytes) {
  tensorflow::MetaGraphDef meta;
  const bool text = BeginsWith(bytes, "meta_info_def");
  if (!text && (!Parses(bytes, &meta) || meta.graph_def().node_size() == 0))
    return absl::OkStatus();
  return OtherFormat("a MetaGraphDef (the .meta file of a checkpoint)",
                     "freeze the graph with its checkpoint");
}

}  // namespace floe
