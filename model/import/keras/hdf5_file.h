// What Keras keeps in an HDF5 file: groups, arrays and attributes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/import/keras/hdf5_client.h"
#include "model/tensor.h"

namespace floe::keras {

// Reads a file that lies in memory. Another process parses it (hdf5_parser.h), so that a hostile
// one harms nobody. Numbers that lie in the file as they are used are not copied. Refused by name:
// links out of the file and soft links, external storage, virtual datasets, filters but deflate,
// shuffle and checksums. Declared sizes are held against the bytes that are there before memory is
// asked for, which the thread's budgets pay.
//
// Threading: one thread; any number of files at a time. Tensors may outlive it.
class Hdf5File {
 public:
  // `owner` keeps `bytes` alive; tensors share it. INVALID_ARGUMENT for what is no HDF5 file.
  static absl::StatusOr<std::unique_ptr<Hdf5File>> Open(std::string_view bytes,
                                                        std::shared_ptr<const void> owner);
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // Paths are like "layers/dense/vars/0"; "" is the root.
  bool Has(const std::string& path) const;
  // The names in a group, sorted; none where there is no such group.
  std::vector<std::string> Names(const std::string& path) const;
  // An array of numbers or bools. NOT_FOUND, or INVALID_ARGUMENT which names the path.
  absl::StatusOr<Tensor> Read(const std::string& path) const;
  // The strings of a group's attribute, which is a string or a list; of what Keras cuts into NAME0,
  // NAME1, ... all together. None where there is no such attribute.
  absl::StatusOr<std::vector<std::string>> Strings(const std::string& path,
                                                   const std::string& name) const;
  // Why nothing can be read any more: the file ended the parser. OK else. After that there seem to
  // be no names.
  const absl::Status& status() const { return client_.over(); }

 private:
  Hdf5File(std::string_view bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)), client_(bytes) {}
  // Null: there is none, or it is no group.
  absl::StatusOr<const hdf5::Group*> GroupAt(const std::string& path) const;
  // The description of an entry. Its group is known, too: "" is the root, and has none.
  absl::StatusOr<std::string_view> EntryAt(const std::vector<std::string>& parts) const;
  Tensor InPlace(const hdf5::Dataset& data) const;

  const std::string_view bytes_;
  const std::shared_ptr<const void> owner_;
  mutable hdf5::Client client_;
  mutable std::map<std::string, std::unique_ptr<hdf5::Group>> groups_;  // by their paths
};

}  // namespace floe::keras
