// The parser of HDF5 files: answers the requests of the process that has the file.
#pragma once

namespace floe::keras::hdf5 {

// Answers what comes from `socket`, as hdf5_wire.h says, until the other side closes it. False: it
// broke the rules. Threading: one at a time in a process, as libhdf5 wants it.
bool ServeParser(int socket);

}  // namespace floe::keras::hdf5
