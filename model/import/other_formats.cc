#include "model/import/other_formats.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "model/import/checkpoint/sorted_table.h"
#include "model/import/message_ptr.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace floe {
namespace {

constexpr const char* kExport = "export the model as a SavedModel (docs/models.md says how)";

absl::Status OtherFormat(const std::string& what, const std::string& remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat("this is ", what, ", which floe does not load: ", remedy));
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

// The number that a message begins with as its first field, where a string or message of one of
// those fields comes next; else 0.
uint64_t VersionBefore(std::string_view bytes, const std::set<uint32_t>& fields) {
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int>(std::min<size_t>(bytes.size(), 64)));
  constexpr uint32_t kNumber = 1 << 3, kBytes = 2;
  uint64_t version = 0, size = 0;
  if (stream.ReadTag() != kNumber || !stream.ReadVarint64(&version)) return 0;
  const uint32_t tag = stream.ReadTag();
  return (tag & 7) == kBytes && fields.count(tag >> 3) != 0 && stream.ReadVarint64(&size) ? version
                                                                                          : 0;
}

// By its version, from 2 on, and the producer, graph or set of operators that comes next.
bool IsOnnx(std::string_view bytes) {
  const uint64_t version = VersionBefore(bytes, {2, 3, 4, 7, 8});
  return version > 1 && version < 64;
}

// An archive's names are at its end.
bool IsTorchArchive(std::string_view bytes) {
  constexpr size_t kDirectory = 64 << 10;
  return bytes.substr(bytes.size() - std::min(bytes.size(), kDirectory)).find("data.pkl") !=
         std::string_view::npos;
}

}  // namespace

bool LooksLikeSavedModel(std::string_view bytes) {
  if (BeginsWith(bytes, "saved_model_schema_version") || BeginsWith(bytes, "meta_graphs"))
    return true;
  return VersionBefore(bytes, {2}) == 1;
}

absl::Status CheckNoOtherFormat(std::string_view bytes) {
  if (BeginsWith(bytes, "version https://git-lfs"))
    return OtherFormat("a Git LFS pointer", "the model itself comes with 'git lfs pull'");
  if (LooksLikeSavedModel(bytes)) return OtherFormat("a SavedModel", kExport);
  if (BeginsWith(bytes, "\x89HDF\r\n")) return OtherFormat("an HDF5 file of Keras", kExport);
  if (BeginsWith(bytes,
                 "\x8b"
                 "FLOE"))
    return OtherFormat("a model converted by floe 0.1", "serve the frozen graph it was made from");
  if (BeginsWith(bytes, "TFL3", 4))
    return OtherFormat("a TensorFlow Lite model", "serve the model that it was converted from");
  if (IsOnnx(bytes)) return OtherFormat("an ONNX model", kExport);
  if (BeginsWith(bytes, "PK\x03\x04") && IsTorchArchive(bytes))
    return OtherFormat("an archive of PyTorch (TorchScript or weights)", kExport);
  if (BeginsWith(bytes, "\x80\x02\x8a\x0a")) return OtherFormat("a file of PyTorch", kExport);
  if (BeginsWith(bytes, "PK\x03\x04"))
    return OtherFormat("a zip archive", "unpack it and serve what is in it");
  if (BeginsWith(bytes, "model_checkpoint_path:") || IsSortedTable(bytes))
    return OtherFormat("a part of a checkpoint, which has values and no graph",
                       "serve the SavedModel it belongs to, or make a graph of it and its .meta "
                       "file with 'floectl freeze'");
  if (BeginsWith(bytes, "\x1f\x8b")) return OtherFormat("a gzip archive", "unpack it");
  if (BeginsWith(bytes, "<!DOCTYPE") || BeginsWith(bytes, "<html"))
    return OtherFormat("a web page", "download the file that it shows");
  return absl::OkStatus();
}

absl::Status CheckNoMetaGraph(std::string_view bytes) {
  const auto meta = NewMessage<tensorflow::MetaGraphDef>();
  const bool text = BeginsWith(bytes, "meta_info_def");
  if (!text && (!Parses(bytes, meta.get()) || meta->graph_def().node_size() == 0))
    return absl::OkStatus();
  return OtherFormat(
      "a MetaGraphDef (the .meta file of a checkpoint)",
      "'floectl freeze --meta FILE --checkpoint PREFIX --outputs NAME' makes a graph "
      "of it and its checkpoint");
}

}  // namespace floe
