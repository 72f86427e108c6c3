#include "model/import/keras/hdf5_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::keras {
namespace {

// Sets *to to the address of `name`.
template <typename T>
bool Find(void* library, const char* name, T* to) {
  *to = reinterpret_cast<T>(::dlsym(library, name));
  return *to != nullptr;
}

// libhdf5 sets its identifiers when it is opened.
bool FindIdentifier(void* library, const char* name, hid_t* to) {
  const hid_t* at = nullptr;
  if (!Find(library, name, &at)) return false;
  *to = *at;
  return true;
}

}  // namespace

absl::Status LoadHdf5From(const std::string& file, Hdf5Library* library) {
  void* const loaded = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  bool complete = loaded != nullptr;
#define FLOE_FIND(name) complete = complete && Find(loaded, "H5" #name, &library->name);
  FLOE_HDF5_FUNCTIONS(FLOE_FIND)
#undef FLOE_FIND
  complete = complete && library->open() >= 0;
#define FLOE_FIND(name) \
  complete = complete && FindIdentifier(loaded, "H5" #name "_g", &library->name);
  FLOE_HDF5_IDENTIFIERS(FLOE_FIND)
#undef FLOE_FIND
  if (complete) return absl::OkStatus();
  const char* const why = ::dlerror();
  return absl::FailedPreconditionError(absl::StrCat(
      "HDF5 files need the library ", file,
      " (Debian: apt install libhdf5-103-1): ", why != nullptr ? why : "it cannot be used"));
}

absl::StatusOr<const Hdf5Library*> LoadHdf5() {
  static Hdf5Library library;
  static bool loaded = false;
  if (!loaded) FLOE_RETURN_IF_ERROR(LoadHdf5From(FLOE_HDF5_LIBRARY, &library));
  loaded = true;
  return &library;
}

}  // namespace floe::keras
