// A parser that lies: nothing that it says harms this process.
#include "model/import/keras/hdf5_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/budget.h"
#include "base/message_socket.h"
#include "base/owned_fd.h"
#include "model/import/keras/hdf5_file.h"

namespace floe::keras {
namespace {

using hdf5::EntryKind;
using hdf5::Frame;
using hdf5::Kind;
using hdf5::Layout;
using ::testing::HasSubstr;

constexpr size_t kFileBytes = 4096;

// What answers: nothing of it is checked. False: no answer.
using Script = std::function<bool(int socket, const Frame& request, int file)>;
Script g_script;

class Liar : public Hdf5Parser {
 public:
  Liar(OwnedFd ours, OwnedFd theirs)
      : ours_(std::move(ours)), thread_([socket = std::move(theirs)] { Serve(socket.get()); }) {}
  ~Liar() override {
    (void)::shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
  }
  int socket() const override { return ours_.get(); }
  int64_t own_bytes() const override { return 0; }
  absl::Status Allow(int64_t, int64_t) override { return absl::OkStatus(); }
  absl::Status WhyItEnded() override { return absl::InvalidArgumentError("it has ended"); }

 private:
  static void Serve(int socket) {
    for (;;) {
      Frame request{};
      OwnedFd file;
      if (!ReceiveBytes(socket, &request, sizeof(request), WaitForSocket, &file).ok()) return;
      std::string path(request.size, '\0');
      if (!ReceiveBytes(socket, path.data(), path.size(), WaitForSocket).ok()) return;
      if (!g_script(socket, request, file.get())) break;
    }
    (void)::shutdown(socket, SHUT_RDWR);
  }

  const OwnedFd ours_;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<Hdf5Parser>> StartLiar(int64_t) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::InternalError("socketpair");
  return std::make_unique<Liar>(OwnedFd(ends[0]), OwnedFd(ends[1]));
}

bool Send(int socket, const Frame& frame, const std::string& body) {
  return SendBytes(socket, &frame, sizeof(frame), WaitForSocket).ok() &&
         SendBytes(socket, body.data(), body.size(), WaitForSocket).ok();
}
bool Answer(int socket, const std::string& body) {
  return Send(socket, {.kind = Kind::kAnswer, .size = static_cast<uint32_t>(1 + body.size())},
              std::string(1, '\0') + body);
}

// A list of one dataset "x" of floats.
std::string OneDataset(Layout layout, uint64_t dim, uint64_t at, uint64_t stored,
                       uint64_t chunks = 0, DType dtype = DType::kFloat32, uint32_t rank = 1) {
  hdf5::Writer list;
  list.Add(uint32_t{0});
  list.Add(uint32_t{1});
  list.AddText("x");
  list.Add(EntryKind::kDataset);
  list.Add(dtype);
  list.Add(rank);
  list.Add(dim);
  list.Add(layout);
  list.Add(at);
  list.Add(stored);
  list.Add(chunks);
  return list.bytes();
}

class Hdf5Client : public ::testing::Test {
 protected:
  ~Hdf5Client() override { Hdf5ParserStarter() = before_; }

  // What reading "x" comes to where the list and the request to fill are answered so.
  static absl::Status Read(const std::function<bool(int socket)>& list, const Script& fill) {
    g_script = [list, fill](int socket, const Frame& request, int file) {
      if (request.kind == Kind::kOpen) return Answer(socket, "");
      return request.kind == Kind::kList ? list(socket) : fill(socket, request, file);
    };
    Hdf5ParserStarter() = StartLiar;
    const auto bytes = std::make_shared<std::string>(kFileBytes, '\1');
    Budget budget(ResourceLimits{.max_value_bytes = 1 << 20, .max_bytes = 1 << 22});
    const BudgetScope scope(&budget);
    const auto file = Hdf5File::Open(*bytes, bytes);
    if (!file.ok()) return file.status();
    const auto tensor = (*file)->Read("x");
    return tensor.ok() ? absl::OkStatus() : tensor.status();
  }
  static absl::Status ReadAfter(const std::string& list) {
    return Read([list](int socket) { return Answer(socket, list); },
                [](int, const Frame&, int) { return false; });
  }
  static std::string ErrorAfter(const std::string& list) {
    const absl::Status status = ReadAfter(list);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

 private:
  const StartHdf5Parser before_ = Hdf5ParserStarter();
};

TEST_F(Hdf5Client, PlacesOutsideTheFileAreRefused) {
  EXPECT_TRUE(ReadAfter(OneDataset(Layout::kPlain, 8, kFileBytes - 32, 32)).ok());
  EXPECT_THAT(ErrorAfter(OneDataset(Layout::kPlain, 8, kFileBytes - 31, 32)), HasSubstr("cut off"));
  EXPECT_THAT(ErrorAfter(OneDataset(Layout::kPlain, 8, UINT64_MAX - 8, 32)), HasSubstr("cut off"));
}

TEST_F(Hdf5Client, SizesThatTheFileHasNoBytesForAreRefused) {
  for (const Layout layout : {Layout::kPlain, Layout::kWhole, Layout::kChunked}) {
    EXPECT_THAT(ErrorAfter(OneDataset(layout, uint64_t{1} << 36, 0, UINT64_MAX)),
                HasSubstr("declares"));
    EXPECT_THAT(ErrorAfter(OneDataset(layout, uint64_t{1} << 40, 0, UINT64_MAX)),
                HasSubstr("needs more than"));
    EXPECT_THAT(ErrorAfter(OneDataset(layout, UINT64_MAX, 0, 32)), HasSubstr("past every limit"));
  }
  EXPECT_THAT(ErrorAfter(OneDataset(Layout::kChunked, 8, 0, 32, UINT64_MAX)),
              HasSubstr("its chunks have"));
}

TEST_F(Hdf5Client, DescriptionsOfNothingAreRefused) {
  EXPECT_THAT(ErrorAfter(OneDataset(Layout::kPlain, 8, 0, 32, 0, DType::kString)),
              HasSubstr("against the rules"));
  EXPECT_THAT(ErrorAfter(OneDataset(Layout::kPlain, 8, 0, 32, 0, static_cast<DType>(250))),
              HasSubstr("against the rules"));
  EXPECT_THAT(ErrorAfter(OneDataset(Layout::kPlain, 8, 0, 32, 0, DType::kFloat32, UINT32_MAX)),
              HasSubstr("against the rules"));
}

TEST_F(Hdf5Client, ListsThatAreCutOffOrEndlessAreRefused) {
  const std::string whole = OneDataset(Layout::kPlain, 8, 0, 32);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(ReadAfter(whole.substr(0, size)).ok()) << size;
  hdf5::Writer endless;
  endless.Add(UINT32_MAX);
  EXPECT_THAT(ErrorAfter(endless.bytes()), HasSubstr("a count without end"));
  endless.Add(uint32_t{0});
  EXPECT_THAT(ErrorAfter(endless.bytes().substr(4) + endless.bytes()), HasSubstr("without end"));
}

TEST_F(Hdf5Client, MessagesAgainstTheRulesAreRefused) {
  const auto after = [](const Frame& frame, const std::string& body) {
    const absl::Status status = Read([&](int socket) { return Send(socket, frame, body) && false; },
                                     [](int, const Frame&, int) { return false; });
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(after({.kind = static_cast<Kind>(77)}, ""), HasSubstr("not known"));
  EXPECT_THAT(after({.kind = Kind::kAnswer, .size = UINT32_MAX}, ""), HasSubstr("without end"));
  EXPECT_THAT(after({.kind = Kind::kAnswer, .size = 0}, ""), HasSubstr("without end"));
  EXPECT_THAT(after({.kind = Kind::kAnswer, .size = 9}, "short"), HasSubstr("ended"));
  EXPECT_THAT(after({.kind = Kind::kRead, .at = kFileBytes - 8, .extent = 9}, ""),
              HasSubstr("outside the file"));
  EXPECT_THAT(after({.kind = Kind::kRead, .at = UINT64_MAX, .extent = 2}, ""),
              HasSubstr("outside the file"));
  EXPECT_THAT(after({.kind = Kind::kRead, .extent = UINT64_MAX}, ""),
              HasSubstr("outside the file"));
}

TEST_F(Hdf5Client, NumbersThatItCanStillWriteAreRefused) {
  const auto list = [](int socket) {
    return Answer(socket, OneDataset(Layout::kWhole, 256, 0, 1024));
  };
  EXPECT_TRUE(Read(list, [](int socket, const Frame&, int) { return Answer(socket, ""); }).ok());
  void* kept = MAP_FAILED;
  const absl::Status status = Read(list, [&kept](int socket, const Frame&, int file) {
    kept = ::mmap(nullptr, 1024, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return Answer(socket, "");
  });
  ASSERT_NE(kept, MAP_FAILED);
  EXPECT_THAT(std::string(status.message()), HasSubstr("keeps the numbers"));
  ::munmap(kept, 1024);
}

TEST_F(Hdf5Client, OneThatEndsTellsWhy) {
  const absl::Status status =
      Read([](int) { return false; }, [](int, const Frame&, int) { return false; });
  EXPECT_THAT(std::string(status.message()), HasSubstr("it has ended"));
}

}  // namespace
}  // namespace floe::keras
