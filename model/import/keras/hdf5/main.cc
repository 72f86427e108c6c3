// floe-hdf5: parses an HDF5 file for floed and floectl, which start it and say what they need over
// the socket that is its file 3. It has the file's bytes from there, too, and opens nothing.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "model/import/keras/hdf5/parser.h"

int main() {
  constexpr int kSocket = 3;
  (void)::signal(SIGINT, SIG_IGN);  // of a terminal: for the process that started it
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int type = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    (void)std::fputs("floe-hdf5 is started by floed and floectl, and does nothing by itself.\n",
                     stderr);
    return 2;
  }
  const bool good = floe::keras::hdf5::ServeParser(kSocket);
  ::_exit(good ? 0 : 1);  // the process that started it does not wait for libhdf5's cleaning up
}
