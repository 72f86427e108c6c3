#include "tests/fuzz/hdf5_in_process.h"

#include <sys/socket.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/owned_fd.h"
#include "model/import/keras/hdf5/parser.h"

namespace floe::fuzz {
namespace {

class Parser : public keras::Hdf5Parser {
 public:
  Parser(OwnedFd ours, OwnedFd theirs)
      : ours_(std::move(ours)),
        thread_([socket = std::move(theirs)] { (void)keras::hdf5::ServeParser(socket.get()); }) {}
  ~Parser() override {
    (void)::shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
  }
  int socket() const override { return ours_.get(); }
  int64_t own_bytes() const override { return 0; }
  absl::Status Allow(int64_t, int64_t) override { return absl::OkStatus(); }
  absl::Status WhyItEnded() override { return absl::InvalidArgumentError("the parser has ended"); }

 private:
  const OwnedFd ours_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<keras::Hdf5Parser>> StartHdf5Thread(int64_t) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "socketpair");
  return std::make_unique<Parser>(OwnedFd(ends[0]), OwnedFd(ends[1]));
}

}  // namespace floe::fuzz
