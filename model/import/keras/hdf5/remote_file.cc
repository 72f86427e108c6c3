#include "model/import/keras/hdf5/remote_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/cleanup/cleanup.h"

namespace floe::keras::hdf5 {
namespace {

constexpr uint64_t kPageBytes = uint64_t{1} << 16;

// What libhdf5 knows of the file.
struct Opened {
  H5FD_t common;  // its own, first
  RemoteFile* file;
  haddr_t allocated;
};
const Opened* Of(const H5FD_t* file) { return reinterpret_cast<const Opened*>(file); }

// The name is the file's address as text: a driver gets nothing else that is not copied.
H5FD_t* OpenDriver(const char* name, unsigned, hid_t, haddr_t) {
  auto* const opened = static_cast<Opened*>(std::calloc(1, sizeof(Opened)));
  void* file = nullptr;
  if (opened == nullptr || std::sscanf(name, "%p", &file) != 1) {
    std::free(opened);
    return nullptr;
  }
  opened->file = static_cast<RemoteFile*>(file);
  return &opened->common;
}
herr_t CloseDriver(H5FD_t* file) {
  std::free(file);
  return 0;
}
int CompareDrivers(const H5FD_t* one, const H5FD_t* other) {
  return one == other ? 0 : (one < other ? -1 : 1);
}
herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = 0;
  return 0;
}
haddr_t AllocatedEnd(const H5FD_t* file, H5FD_mem_t) { return Of(file)->allocated; }
herr_t SetAllocatedEnd(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  reinterpret_cast<Opened*>(file)->allocated = end;
  return 0;
}
haddr_t FileEnd(const H5FD_t* file, H5FD_mem_t) { return Of(file)->file->size(); }
herr_t ReadDriver(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, void* to) {
  return Of(file)->file->Read(at, size, to) ? 0 : -1;
}
herr_t RefuseWrite(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

hid_t Driver() {
  static const hid_t registered = [] {
    static H5FD_class_t driver{};
    driver.name = "remote";
    driver.maxaddr = (haddr_t{1} << 62) - 1;
    driver.fc_degree = H5F_CLOSE_WEAK;
    driver.open = OpenDriver;
    driver.close = CloseDriver;
    driver.cmp = CompareDrivers;
    driver.query = Query;
    driver.get_eoa = AllocatedEnd;
    driver.set_eoa = SetAllocatedEnd;
    driver.get_eof = FileEnd;
    driver.read = ReadDriver;
    driver.write = RefuseWrite;
    const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(map), std::end(map), driver.fl_map);
    return H5FDregister(&driver);
  }();
  return registered;
}

}  // namespace

bool RemoteFile::Read(uint64_t at, uint64_t size, void* to) {
  if (at > size_ || size > size_ - at) return false;
  if (size >= kPageBytes) return read_(at, size, to);
  for (char* into = static_cast<char*>(to); size > 0;) {
    const Page* const page = Find(at / kPageBytes);
    if (page == nullptr) return false;
    const uint64_t begin = at % kPageBytes;
    const uint64_t part = std::min<uint64_t>(size, page->bytes.size() - begin);
    std::memcpy(into, page->bytes.data() + begin, part);
    into += part;
    at += part;
    size -= part;
  }
  return true;
}

const RemoteFile::Page* RemoteFile::Find(uint64_t number) {
  Page& page = pages_[number % pages_.size()];
  if (page.number == number) return &page;
  page.number = UINT64_MAX;
  page.bytes.resize(std::min(kPageBytes, size_ - number * kPageBytes));
  if (!read_(number * kPageBytes, page.bytes.size(), page.bytes.data())) return nullptr;
  page.number = number;
  return &page;
}

hid_t RemoteFile::Open() {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (access < 0) return -1;
  const absl::Cleanup close = [access] { H5Pclose(access); };
  char name[32];
  (void)std::snprintf(name, sizeof(name), "%p", static_cast<void*>(this));
  if (H5Pset_driver(access, Driver(), nullptr) < 0) return -1;
  return H5Fopen(name, H5F_ACC_RDONLY, access);
}

}  // namespace floe::keras::hdf5
