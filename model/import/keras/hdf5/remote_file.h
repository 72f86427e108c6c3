// The HDF5 file whose bytes the other process has: libhdf5 reads them through a driver of ours, so
// that the parser needs neither the file nor a copy of it.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace floe::keras::hdf5 {

class RemoteFile {
 public:
  // Puts bytes of the file, which lie within it, at `to`. False: there are no more to be had.
  using ReadBytes = std::function<bool(uint64_t at, uint64_t size, void* to)>;

  RemoteFile(uint64_t size, ReadBytes read) : size_(size), read_(std::move(read)) {}
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;

  uint64_t size() const { return size_; }
  bool Read(uint64_t at, uint64_t size, void* to);

  // Opened for reading; this object outlives it. Negative: it is no HDF5 file.
  hid_t Open();

 private:
  // What lies together, such as a group and its names, is asked for once.
  struct Page {
    uint64_t number = UINT64_MAX;
    std::vector<char> bytes;
  };
  const Page* Find(uint64_t number);

  const uint64_t size_;
  const ReadBytes read_;
  std::vector<Page> pages_ = std::vector<Page>(64);
};

}  // namespace floe::keras::hdf5
