#include "model/import/format.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
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

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::StatusOr<FoundFormat> InDirectory(const std::string& path) {
  const fs::path directory = path;
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt"}) {
    if (Exists(directory / name))
      return FoundFormat{Format::kSavedModel, (directory / name).string()};
  }
  if (Exists(directory / "config.json") && Exists(directory / "model.weights.h5"))
    return FoundFormat{Format::kKeras, (directory / "config.json").string()};
  return absl::InvalidArgumentError(
      absl::StrCat(path,
                   " is a directory without a model: it has no saved_model.pb; name the "
                   "directory of a version, or a file"));
}

}  // namespace

absl::StatusOr<FoundFormat> DetectFormat(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return InDirectory(path);
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
