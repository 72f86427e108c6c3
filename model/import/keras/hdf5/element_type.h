// Which numbers an HDF5 array holds.
#pragma once

#include <hdf5.h>

#include <string>

#include "absl/status/statusor.h"
#include "model/dtype.h"

namespace floe::keras::hdf5 {

struct ElementType {
  DType dtype = DType::kInvalid;
  hid_t memory = -1;     // what to read it as; lives as long as the file's type
  bool as_here = false;  // its bytes in the file are those in memory
};

// `named` is the array's attribute "dtype", empty where there is none. h5py names in it what HDF5
// has no type for, and keeps that as opaque bytes. INVALID_ARGUMENT names what is not supported.
absl::StatusOr<ElementType> ElementTypeOf(hid_t type, const std::string& named);

}  // namespace floe::keras::hdf5
