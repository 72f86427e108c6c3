#include "model/import/keras/hdf5/parser.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/message_socket.h"
#include "base/status.h"
#include "model/import/keras/hdf5/objects.h"
#include "model/import/keras/hdf5/remote_file.h"
#include "model/import/keras/hdf5_wire.h"

namespace floe::keras::hdf5 {
namespace {

constexpr uint32_t kMaxPath = 1 << 20;

class Server {
 public:
  explicit Server(int socket) : socket_(socket) {}

  bool Serve() {
    for (;;) {
      Frame request{};
      OwnedFd file;
      if (!ReceiveBytes(socket_, &request, sizeof(request), WaitForSocket, &file).ok()) return true;
      if (request.size > kMaxPath) return false;
      std::string path(request.size, '\0');
      if (!ReceiveBytes(socket_, path.data(), path.size(), WaitForSocket).ok()) return true;
      Writer body;
      const absl::Status outcome = AnswerTo(request, path, file.get(), &body);
      if (absl::IsUnavailable(outcome)) return true;
      if (!SendAnswer(outcome, body)) return true;
    }
  }

 private:
  absl::Status AnswerTo(const Frame& request, const std::string& path, int file, Writer* body) {
    try {
      return Do(request, path, file, body);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("it needs more memory than it may take");
    }
  }

  absl::Status Do(const Frame& request, const std::string& path, int file, Writer* body) {
    if (request.kind == Kind::kOpen) return Open(request);
    if (objects_ == nullptr) return absl::InvalidArgumentError("no file is open");
    if (request.kind == Kind::kList) return objects_->List(path, request.at, body);
    if (request.kind == Kind::kFill) return Fill(path, file);
    return absl::InvalidArgumentError("a request that is not known");
  }

  absl::Status Open(const Frame& request) {
    if (request.at != kProtocol)
      return absl::FailedPreconditionError(
          "the parser of HDF5 files is of another version; start the program again");
    objects_.reset();
    file_.emplace(request.extent, [this](uint64_t at, uint64_t size, void* to) {
      const Frame read{.kind = Kind::kRead, .at = at, .extent = size};
      return SendBytes(socket_, &read, sizeof(read), WaitForSocket).ok() &&
             ReceiveBytes(socket_, to, size, WaitForSocket).ok();
    });
    FLOE_ASSIGN_OR_RETURN(objects_, Objects::Open(&*file_));
    return absl::OkStatus();
  }

  absl::Status Fill(const std::string& path, int file) const {
    struct stat about {};
    if (file < 0 || ::fstat(file, &about) != 0 || about.st_size <= 0)
      return absl::InvalidArgumentError("no memory for the array");
    const auto size = static_cast<size_t>(about.st_size);
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
      return absl::ResourceExhaustedError("the array needs more memory than it may take");
    const absl::Cleanup unmap = [&] { ::munmap(memory, size); };
    return objects_->Fill(path, memory, size);
  }

  bool SendAnswer(const absl::Status& outcome, const Writer& body) const {
    const std::string text = outcome.ok() ? std::string() : std::string(outcome.message());
    const std::string& rest = outcome.ok() ? body.bytes() : text;
    const auto code = static_cast<uint8_t>(outcome.code());
    const Frame answer{.kind = Kind::kAnswer, .size = static_cast<uint32_t>(1 + rest.size())};
    return SendBytes(socket_, &answer, sizeof(answer), WaitForSocket).ok() &&
           SendBytes(socket_, &code, 1, WaitForSocket).ok() &&
           SendBytes(socket_, rest.data(), rest.size(), WaitForSocket).ok();
  }

  const int socket_;
  std::optional<RemoteFile> file_;
  std::unique_ptr<Objects> objects_;  // of file_
};

}  // namespace

bool ServeParser(int socket) { return Server(socket).Serve(); }

}  // namespace floe::keras::hdf5
