// Reads and writes zip archives of .npy files with libzip.
#include "cli/npz.h"

#include <zip.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/deflate_limits.h"
#include "base/status.h"
#include "cli/npy.h"

namespace floe::cli {
namespace {

constexpr int64_t kMaxEntries = 100000;

// Discards: what was not closed on purpose is not written.
struct ArchiveDiscard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, ArchiveDiscard>;

struct FileClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using EntryFile = std::unique_ptr<zip_file_t, FileClose>;

absl::StatusOr<Archive> Open(const std::string& path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string why = absl::StrCat(path, ": ", zip_error_strerror(&error));
  zip_error_fini(&error);
  if (code == ZIP_ER_NOENT) return absl::NotFoundError(why);
  return absl::InvalidArgumentError(code == ZIP_ER_NOZIP ? why + " (an .npz file is needed)" : why);
}

absl::Status CheckSizes(const zip_stat_t& stat, int64_t max_bytes) {
  constexpr uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((stat.valid & kNeeded) != kNeeded)
    return absl::InvalidArgumentError("its sizes are not recorded");
  if (stat.size > static_cast<uint64_t>(max_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(stat.size, " bytes are more than the limit of ", max_bytes));
  }
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  const bool plausible = stored
                             ? stat.size == stat.comp_size
                             : stat.size <= stat.comp_size * kMaxDeflateRatio + kDeflateSlackBytes;
  if (!plausible) {
    return absl::InvalidArgumentError(
        absl::StrCat("it claims ", stat.size, " bytes in ", stat.comp_size, " bytes of archive"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReadEntry(zip_t* archive, uint64_t index, const zip_stat_t& stat) {
  const EntryFile file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) return absl::InvalidArgumentError(zip_strerror(archive));
  const auto source = [&](void* to, size_t size) -> absl::StatusOr<size_t> {
    const zip_int64_t got = zip_fread(file.get(), to, size);
    if (got < 0)
      return absl::InvalidArgumentError(zip_error_strerror(zip_file_get_error(file.get())));
    return static_cast<size_t>(got);
  };
  FLOE_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(source, stat.size));
  // libzip compares the checksum when the end is read.
  char beyond = 0;
  FLOE_ASSIGN_OR_RETURN(const size_t extra, source(&beyond, 1));
  if (extra != 0) return absl::InvalidArgumentError("it holds more bytes than recorded");
  return tensor;
}

absl::Status AddEntry(zip_t* archive, const std::string& name, const std::string& bytes,
                      Compression compression) {
  zip_source_t* const source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  if (source == nullptr) return absl::InternalError(zip_strerror(archive));
  const zip_int64_t index =
      zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return absl::InternalError(zip_strerror(archive));
  }
  // A fixed date (zip's first day) makes equal arrays equal files.
  constexpr zip_uint16_t kFirstDay = (1 << 5) | 1;
  zip_file_set_dostime(archive, index, 0, kFirstDay, 0);
  const int method = compression == Compression::kStored ? ZIP_CM_STORE : ZIP_CM_DEFLATE;
  if (zip_set_file_compression(archive, index, method, 0) != 0) {
    return absl::InternalError(zip_strerror(archive));
  }
  return absl::OkStatus();
}

}  // namespace

const Tensor* FindTensor(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

absl::StatusOr<NamedTensors> ReadNpz(const std::string& path, int64_t max_bytes) {
  FLOE_ASSIGN_OR_RETURN(const Archive archive, Open(path, ZIP_RDONLY));
  const int64_t entries = zip_get_num_entries(archive.get(), 0);
  if (entries > kMaxEntries) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", entries, " entries are too many"));
  }
  NamedTensors tensors;
  std::set<std::string> names;
  for (int64_t i = 0; i < entries; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), i, 0, &stat) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", zip_strerror(archive.get())));
    }
    std::string name = stat.name;
    const std::string where = absl::StrCat(path, ": array '", name, "'");
    FLOE_RETURN_IF_ERROR(Annotate(CheckSizes(stat, max_bytes), where));
    if (absl::EndsWith(name, ".npy")) name.resize(name.size() - 4);
    if (!names.insert(name).second)
      return absl::InvalidArgumentError(where + ": the name is there twice");
    auto tensor = ReadEntry(archive.get(), i, stat);
    if (!tensor.ok()) return Annotate(tensor.status(), where);
    tensors.emplace_back(std::move(name), *std::move(tensor));
  }
  return tensors;
}

absl::Status WriteNpz(const std::string& path, const NamedTensors& tensors,
                      Compression compression) {
  // libzip makes no file at all of an archive without entries.
  if (tensors.empty()) return absl::InvalidArgumentError(path + ": there are no arrays to write");
  FLOE_ASSIGN_OR_RETURN(Archive archive, Open(path, ZIP_CREATE | ZIP_TRUNCATE));
  std::vector<std::string> contents(tensors.size());  // read while closing
  std::set<std::string> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": two arrays are called '", name, "'"));
    }
    auto bytes = SerializeNpy(tensor.view());
    if (!bytes.ok()) return Annotate(bytes.status(), absl::StrCat(path, ": array '", name, "'"));
    contents[i] = *std::move(bytes);
    FLOE_RETURN_IF_ERROR(Annotate(AddEntry(archive.get(), name, contents[i], compression), path));
  }
  if (zip_close(archive.get()) != 0) {
    return absl::InternalError(absl::StrCat(path, ": ", zip_strerror(archive.get())));
  }
  static_cast<void>(archive.release());  // zip_close freed it
  return absl::OkStatus();
}

}  // namespace floe::cli
