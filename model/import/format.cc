#include "model/import/format.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/import/other_formats.h"

namespace floe {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kProbe = 64;
constexpr int64_t kDirectory = 64 << 10;  // the end of a zip archive, where its names are

// The first bytes and the last ones; nothing where the file cannot be read.
struct Ends {
  std::string head, tail;
};

Ends ReadEnds(const std::string& path) {
  Ends ends;
  std::error_code error;
  // A pipe or a device would keep its opener waiting.
  if (!fs::is_regular_file(path, error)) return ends;
  const auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return ends;
  std::ifstream in(path, std::ios::binary);
  ends.head.resize(std::min(size, kProbe));
  in.read(ends.head.data(), static_cast<std::streamsize>(ends.head.size()));
  ends.tail.resize(std::min(size, kDirectory));
  in.seekg(size - static_cast<int64_t>(ends.tail.size()));
  in.read(ends.tail.data(), static_cast<std::streamsize>(ends.tail.size()));
  return in ? ends : Ends();
}

constexpr const char* kCheckpointNeeds =
    "which has values and no graph: serve the SavedModel it belongs to, or make a graph of it and "
    "its .meta file with 'floectl freeze'";

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// What to name instead of a directory without a model.
std::string WhatIsThere(const fs::path& directory) {
  constexpr int kMostEntries = 1000;
  std::string version;
  bool checkpoint = false;
  std::error_code error;
  int entries = 0;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (++entries > kMostEntries) break;
    if (Exists(at->path() / "saved_model.pb") && (version.empty() || at->path() < version))
      version = at->path().string();
    checkpoint = checkpoint || at->path().extension() == ".index";
  }
  if (!version.empty()) return "it holds versions: name one, such as " + version;
  if (checkpoint) return "it holds a checkpoint, " + std::string(kCheckpointNeeds);
  return "name the directory of a version, or a file";
}

absl::StatusOr<FoundFormat> InDirectory(const std::string& path) {
  const fs::path directory = path;
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt"}) {
    if (Exists(directory / name))
      return FoundFormat{Format::kSavedModel, (directory / name).string()};
  }
  if (Exists(directory / "config.json") && Exists(directory / "model.weights.h5"))
    return FoundFormat{Format::kKeras, (directory / "config.json").string()};
  return absl::InvalidArgumentError(absl::StrCat(
      path, " is a directory without a model: it has no saved_model.pb; ", WhatIsThere(directory)));
}

// The values of a checkpoint have no mark of their own: PREFIX.data-00000-of-00001.
bool IsShardName(const std::string& name) {
  const size_t data = name.rfind(".data-");
  return data != std::string::npos && name.size() == data + 20 &&
         name.substr(data + 11, 4) == "-of-";
}

}  // namespace

absl::StatusOr<FoundFormat> DetectFormat(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return InDirectory(path);
  if (!Exists(path) && Exists(path + ".index"))
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is the prefix of a checkpoint, ", kCheckpointNeeds));
  if (IsShardName(path)) return Annotate(PartOfCheckpoint(), path);
  const Ends ends = ReadEnds(path);
  const std::string_view head = ends.head;
  FoundFormat found{Format::kGraphDef, path};
  if (LooksLikeSavedModel(head)) {
    found.format = Format::kSavedModel;
  } else if (head.substr(0, 6) == "\x89HDF\r\n") {
    found.format = Format::kHdf5;
  } else if (head.substr(0, 4) == "PK\x03\x04" &&
             ends.tail.find("config.json") != std::string::npos) {
    found.format = Format::kKeras;
  }
  return found;
}

}  // namespace floe
