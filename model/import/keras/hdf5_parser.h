// The process that parses an HDF5 file: libhdf5 trusts what a file says, so it gets a process of
// its own, limits, and no file.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace floe::keras {

// Talks over its socket, as hdf5_wire.h says. Ends with this object. Threading: one thread.
class Hdf5Parser {
 public:
  virtual ~Hdf5Parser() = default;
  virtual int socket() const = 0;
  // Bytes that its limits let it take for itself, for a file's names and attributes.
  virtual int64_t own_bytes() const = 0;
  // It is to fill `filled` bytes in all, and takes `scratch` for itself meanwhile.
  virtual absl::Status Allow(int64_t filled, int64_t scratch) = 0;
  // Ends it where it has not ended. INVALID_ARGUMENT, which names the signal or the limit that
  // ended it; UNAVAILABLE for SIGKILL, which the system sends where memory is short.
  virtual absl::Status WhyItEnded() = 0;
};

// The program floe-hdf5, for a file of so many bytes. It lies beside this program, or in
// ../libexec/floe. FAILED_PRECONDITION: there is none. UNAVAILABLE: there can be no process.
absl::StatusOr<std::unique_ptr<Hdf5Parser>> StartHdf5Process(int64_t file_bytes);

// What Hdf5File starts: StartHdf5Process. Fuzzers and tests put something else here before the
// first file is opened.
using StartHdf5Parser = absl::StatusOr<std::unique_ptr<Hdf5Parser>> (*)(int64_t file_bytes);
StartHdf5Parser& Hdf5ParserStarter();

}  // namespace floe::keras
