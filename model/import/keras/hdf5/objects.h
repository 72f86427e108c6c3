// The groups, attributes and arrays of an HDF5 file. The one place that knows libhdf5.
#pragma once

#include <hdf5.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/import/keras/hdf5/remote_file.h"
#include "model/import/keras/hdf5_wire.h"

namespace floe::keras::hdf5 {

// An identifier of libhdf5 and the function that closes it.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  Id(Id&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  Id& operator=(Id&& o) noexcept {
    std::swap(id_, o.id_);
    std::swap(close_, o.close_);
    return *this;
  }
  bool ok() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Trusts nothing but libhdf5: a file that makes it crash, loop or take memory ends the process.
// Threading: libhdf5 is not safe to use from two threads, so a process has one of these at a time.
class Objects {
 public:
  static absl::StatusOr<std::unique_ptr<Objects>> Open(RemoteFile* file);

  // A group's attributes and entries, as hdf5_wire.h says, of at most so many bytes.
  absl::Status List(std::string_view path, size_t most_bytes, Writer* list) const;
  // The elements of a dataset, which has as many bytes.
  absl::Status Fill(std::string_view path, void* to, size_t bytes) const;

 private:
  Objects(Id file, uint64_t file_size) : file_(std::move(file)), file_size_(file_size) {}
  absl::StatusOr<Id> OpenPath(std::string_view path) const;

  const Id file_;
  const uint64_t file_size_;
};

}  // namespace floe::keras::hdf5
