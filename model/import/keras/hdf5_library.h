// libhdf5, loaded when the first file needs it. It brings thirty more libraries: to load them all
// takes 10 ms, which each start of a program would wait for.
#pragma once

#include <hdf5.h>

#include <string>

#include "absl/status/statusor.h"

// The functions and the identifiers that are used, without the H5 of their names.
// clang-format off
#define FLOE_HDF5_FUNCTIONS(X)                                                                    \
  X(Aclose) X(Aexists) X(Aget_space) X(Aget_type) X(Aopen) X(Aread) X(Dget_create_plist)          \
  X(Dget_offset) X(Dget_space) X(Dget_storage_size) X(Dget_type) X(Dread) X(Dvlen_reclaim)        \
  X(Eset_auto2) X(Fclose) X(Fopen) X(Gget_info) X(Gopen2) X(Iget_type) X(Lexists) X(Lget_info)    \
  X(Lget_name_by_idx) X(Oclose) X(Oopen) X(Pclose) X(Pcreate) X(Pget_external_count)              \
  X(Pget_filter2) X(Pget_layout) X(Pget_nfilters) X(Pset_fapl_core) X(Pset_file_image)            \
  X(Pset_file_image_callbacks) X(Sclose) X(Sget_simple_extent_dims) X(Sget_simple_extent_ndims)   \
  X(Sget_simple_extent_npoints) X(Sget_simple_extent_type) X(Tclose) X(Tcopy) X(Tget_class)       \
  X(Tget_fields) X(Tget_nmembers) X(Tget_order) X(Tget_sign) X(Tget_size) X(Tis_variable_str)     \
  X(open)
#define FLOE_HDF5_IDENTIFIERS(X)                                                                  \
  X(P_CLS_FILE_ACCESS_ID) X(T_NATIVE_DOUBLE) X(T_NATIVE_FLOAT) X(T_NATIVE_INT16)                  \
  X(T_NATIVE_INT32) X(T_NATIVE_INT64) X(T_NATIVE_INT8) X(T_NATIVE_UINT16) X(T_NATIVE_UINT32)      \
  X(T_NATIVE_UINT64) X(T_NATIVE_UINT8)
// clang-format on

namespace floe::keras {

// What has the name H5Fopen is called as Fopen here, with the same types.
struct Hdf5Library {
#define FLOE_MEMBER(name) decltype(&::H5##name) name = nullptr;
  FLOE_HDF5_FUNCTIONS(FLOE_MEMBER)
#undef FLOE_MEMBER
#define FLOE_MEMBER(name) hid_t name = -1;
  FLOE_HDF5_IDENTIFIERS(FLOE_MEMBER)
#undef FLOE_MEMBER
};

// The library, loaded once and for good. FAILED_PRECONDITION, which says what to install, where
// there is none. Threading: one thread at a time, as for all of libhdf5.
absl::StatusOr<const Hdf5Library*> LoadHdf5();

// The same from this file, into `library`.
absl::Status LoadHdf5From(const std::string& file, Hdf5Library* library);

}  // namespace floe::keras
