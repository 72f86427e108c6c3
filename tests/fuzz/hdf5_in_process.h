// The parser of HDF5 files as a thread of this process, where a fuzzer sees its code and its
// faults.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "model/import/keras/hdf5_parser.h"

namespace floe::fuzz {

// For Hdf5ParserStarter. Without limits: the fuzzer has its own. Threading: one parser at a time.
absl::StatusOr<std::unique_ptr<keras::Hdf5Parser>> StartHdf5Thread(int64_t file_bytes);

}  // namespace floe::fuzz
