#include "model/import/other_formats.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/import/checkpoint/sorted_table.h"
#include "model/import/message_ptr.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace floe {
namespace {

constexpr const char* kOriginal =
    "where it was made from a model of TensorFlow or Keras, serve that (docs/models.md)";
constexpr const char* kValues =
    "which has values and no graph: serve the model that they belong to, a SavedModel, a frozen "
    "graph or a Keras file (docs/models.md)";
constexpr const char* kConvert =
    "make a SavedModel or a Keras file of it (docs/models.md#models-of-other-frameworks)";
constexpr const char* kNoModel = "it is no model of TensorFlow or Keras (docs/models.md)";

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
bool ArchiveHas(std::string_view bytes, std::string_view name) {
  constexpr size_t kDirectory = 64 << 10;
  return bytes.substr(bytes.size() - std::min(bytes.size(), kDirectory)).find(name) !=
         std::string_view::npos;
}

// By the header, the value of the table's first key; version 1 has the shapes of slices there.
bool IsCheckpointIndex(std::string_view table) {
  tensorflow::BundleHeaderProto header;
  const absl::Status read =
      ReadSortedTable(table, [&header](std::string_view key, std::string_view value) {
        if (key.empty()) (void)Parses(value, &header);
        return absl::CancelledError("one is enough");
      });
  return header.num_shards() > 0 || !absl::IsCancelled(read);
}

absl::Status CheckNoCheckpoint(std::string_view bytes) {
  if (IsSortedTable(bytes) && !IsCheckpointIndex(bytes))
    return OtherFormat("a checkpoint of version 1",
                       "restore it in TensorFlow and save it again, as a SavedModel");
  if (BeginsWith(bytes, "model_checkpoint_path:") || IsSortedTable(bytes))
    return PartOfCheckpoint();
  return absl::OkStatus();
}

// The length of a header in JSON, then that.
bool IsSafetensors(std::string_view bytes) {
  return BeginsWith(bytes, std::string_view("\0\0\0", 3), 5) && BeginsWith(bytes, "{\"", 8);
}

absl::Status CheckNoJson(std::string_view bytes) {
  const size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || bytes[begin] != '{') return absl::OkStatus();
  if (bytes.find("\"modelTopology\"") != std::string_view::npos)
    return OtherFormat("a model of TensorFlow.js", kOriginal);
  if (bytes.find("\"class_name\"") != std::string_view::npos)
    return OtherFormat("the configuration of a Keras model, without its weights",
                       "serve the .keras file, or the weights file that lies beside it "
                       "(docs/keras.md)");
  return OtherFormat("a file of JSON", kNoModel);
}

// Models and data of other programs.
absl::Status CheckNoStranger(std::string_view bytes) {
  if (BeginsWith(bytes, "\x80\x02\x8a\x0a")) return OtherFormat("a file of PyTorch", kConvert);
  if (BeginsWith(bytes, "\x80") && bytes.size() > 1 && bytes[1] >= 2 && bytes[1] <= 5)
    return OtherFormat("a pickle of Python, such as scikit-learn's", kConvert);
  if (IsSafetensors(bytes)) return OtherFormat("a file of safetensors", kValues);
  if (BeginsWith(bytes, "GGUF")) return OtherFormat("a GGUF model", kNoModel);
  if (BeginsWith(bytes, "ptrt")) return OtherFormat("an engine of TensorRT", kOriginal);
  if (BeginsWith(bytes, "\x93NUMPY")) return OtherFormat("an array of NumPy", kValues);
  if (BeginsWith(bytes, "<?xml"))
    return OtherFormat("an XML file, such as OpenVINO's or PMML's", kOriginal);
  return CheckNoJson(bytes);
}

}  // namespace

absl::Status PartOfCheckpoint() {
  return OtherFormat("a part of a checkpoint, which has values and no graph",
                     "serve the SavedModel it belongs to, or make a graph of it and its .meta "
                     "file with 'floectl freeze'");
}

bool LooksLikeSavedModel(std::string_view bytes) {
  if (BeginsWith(bytes, "saved_model_schema_version") || BeginsWith(bytes, "meta_graphs"))
    return true;
  return VersionBefore(bytes, {2}) == 1;
}

absl::Status CheckNoOtherFormat(std::string_view bytes) {
  if (BeginsWith(bytes, "version https://git-lfs"))
    return OtherFormat("a Git LFS pointer", "the model itself comes with 'git lfs pull'");
  if (LooksLikeSavedModel(bytes))
    return absl::InvalidArgumentError(
        "this is a SavedModel, which floe does not load as a frozen graph: name its directory");
  if (BeginsWith(bytes, "\x89HDF\r\n"))
    return absl::InvalidArgumentError(
        "this is an HDF5 file, which floe does not load as a frozen graph: serve it as it is");
  if (BeginsWith(bytes,
                 "\x8b"
                 "FLOE"))
    return OtherFormat("a model converted by floe 0.1", "serve the frozen graph it was made from");
  if (BeginsWith(bytes, "TFL3", 4)) return OtherFormat("a TensorFlow Lite model", kOriginal);
  if (IsOnnx(bytes)) return OtherFormat("an ONNX model", kConvert);
  if (BeginsWith(bytes, "PK\x03\x04") && ArchiveHas(bytes, "data.pkl"))
    return OtherFormat("an archive of PyTorch (TorchScript or weights)", kConvert);
  if (BeginsWith(bytes, "PK\x03\x04") && ArchiveHas(bytes, ".npy"))
    return OtherFormat("an archive of NumPy arrays", kValues);
  if (BeginsWith(bytes, "PK\x03\x04"))
    return OtherFormat("a zip archive", "unpack it and serve what is in it");
  FLOE_RETURN_IF_ERROR(CheckNoCheckpoint(bytes));
  if (BeginsWith(bytes, "\x1f\x8b")) return OtherFormat("a gzip archive", "unpack it");
  constexpr size_t kTarMark = 257;
  if (BeginsWith(bytes, "ustar", kTarMark)) return OtherFormat("a tar archive", "unpack it");
  if (BeginsWith(bytes, "<!DOCTYPE") || BeginsWith(bytes, "<html"))
    return OtherFormat("a web page", "download the file that it shows");
  return CheckNoStranger(bytes);
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
