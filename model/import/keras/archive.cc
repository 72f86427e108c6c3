#include "model/import/keras/archive.h"

#include <zip.h>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/deflate_limits.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::keras {
namespace {

constexpr int64_t kMaxEntries = 100'000;

struct FileClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

absl::Status Damaged(const std::string& name, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("entry ", Quoted(name), ": ", why));
}

absl::Status CheckSizes(const zip_stat_t& stat, const std::string& name) {
  constexpr uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((stat.valid & kNeeded) != kNeeded) return Damaged(name, "its sizes are not recorded");
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  const bool plausible =
      stored ? stat.size == stat.comp_size
             : stat.comp_size < UINT64_MAX / (2 * kMaxDeflateRatio) &&
                   stat.size <= stat.comp_size * kMaxDeflateRatio + kDeflateSlackBytes;
  if (plausible) return absl::OkStatus();
  return Damaged(name, absl::StrCat("it claims ", stat.size, " bytes in ", stat.comp_size,
                                    " bytes of archive"));
}

}  // namespace

void Archive::Discard::operator()(struct zip* archive) const { zip_discard(archive); }

absl::StatusOr<Archive> Archive::Open(std::string_view bytes) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* const opened =
      source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
  if (opened != nullptr) {
    Archive archive(opened);
    const int64_t entries = zip_get_num_entries(opened, 0);
    if (entries > kMaxEntries)
      return absl::InvalidArgumentError(
          absl::StrCat("an archive of ", entries, " entries, more than ", kMaxEntries));
    return archive;
  }
  if (source != nullptr) zip_source_free(source);
  const std::string why = absl::StrCat("a damaged zip archive: ", zip_error_strerror(&error));
  zip_error_fini(&error);
  return absl::InvalidArgumentError(why);
}

bool Archive::Has(const std::string& name) const {
  return zip_name_locate(archive_.get(), name.c_str(), 0) >= 0;
}

std::vector<std::string> Archive::Names() const {
  std::vector<std::string> names;
  const int64_t entries = zip_get_num_entries(archive_.get(), 0);
  for (int64_t i = 0; i < entries; ++i) {
    const char* const name = zip_get_name(archive_.get(), i, 0);
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

absl::StatusOr<Tensor> Archive::Read(const std::string& name) const {
  const int64_t index = zip_name_locate(archive_.get(), name.c_str(), 0);
  if (index < 0)
    return absl::NotFoundError(absl::StrCat("the archive has no entry ", Quoted(name)));
  zip_stat_t stat;
  if (zip_stat_index(archive_.get(), index, 0, &stat) != 0)
    return Damaged(name, zip_strerror(archive_.get()));
  FLOE_RETURN_IF_ERROR(CheckSizes(stat, name));
  FLOE_RETURN_IF_ERROR(CheckValueBytes(static_cast<int64_t>(stat.size)));
  const std::unique_ptr<zip_file_t, FileClose> file(zip_fopen_index(archive_.get(), index, 0));
  if (file == nullptr) return Damaged(name, zip_strerror(archive_.get()));
  Tensor bytes = Tensor::Allocate(DType::kUInt8, {static_cast<int64_t>(stat.size)});
  auto* to = static_cast<char*>(bytes.mutable_data());
  for (uint64_t at = 0; at < stat.size;) {
    const zip_int64_t got = zip_fread(file.get(), to + at, stat.size - at);
    if (got < 0) return Damaged(name, zip_error_strerror(zip_file_get_error(file.get())));
    if (got == 0) return Damaged(name, "it has fewer bytes than recorded");
    at += static_cast<uint64_t>(got);
  }
  // libzip compares the checksum when the end is read.
  char beyond = 0;
  const zip_int64_t extra = zip_fread(file.get(), &beyond, 1);
  if (extra < 0) return Damaged(name, zip_error_strerror(zip_file_get_error(file.get())));
  if (extra > 0) return Damaged(name, "it holds more bytes than recorded");
  return bytes;
}

}  // namespace floe::keras
