// What Keras keeps in an HDF5 file: groups, arrays and attributes. The one place that knows
// libhdf5.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe::keras {

// Reads a file that lies in memory. Refused by name: links out of the file and soft links, external
// storage, virtual datasets, filters but deflate, shuffle and checksums. Declared sizes are held
// against the bytes that are there before memory is asked for, which the thread's budgets pay.
//
// Threading: libhdf5 is not safe to use from two threads, so a process has one of these at a time
// and Open waits for it. Opened and destroyed on one thread; tensors may outlive it.
class Hdf5File {
 public:
  // `owner` keeps `bytes` alive; tensors share it. INVALID_ARGUMENT for what is no HDF5 file.
  static absl::StatusOr<std::unique_ptr<Hdf5File>> Open(std::string_view bytes,
                                                        std::shared_ptr<const void> owner);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // Paths are like "layers/dense/vars/0"; "" is the root.
  bool Has(const std::string& path) const;
  // The names in a group, sorted; none where there is no such group.
  std::vector<std::string> Names(const std::string& path) const;
  // An array of numbers or bools. NOT_FOUND, or INVALID_ARGUMENT which names the path.
  absl::StatusOr<Tensor> Read(const std::string& path) const;
  // The strings of an attribute, which is a string or a list; of what Keras cuts into NAME0,
  // NAME1, ... all together. None where there is no such attribute.
  absl::StatusOr<std::vector<std::string>> Strings(const std::string& path,
                                                   const std::string& name) const;

 private:
  class Impl;
  explicit Hdf5File(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace floe::keras
