// Real sockets: connections arrive, limits hold, and nothing stops the loop for good.
#include "server/listener/acceptor.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

using testing::StartsWith;

// A file descriptor with an owner.
class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() { Close(); }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

sockaddr_in Loopback(const char* host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}
int PortOf(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

File TcpSocket() { return File(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
void Connect(const File& client, const std::string& to) {
  const sockaddr_in address = Loopback("127.0.0.1", PortOf(to));
  // On loopback the connection is there, in the listener's queue, when connect returns.
  ASSERT_EQ(connect(client.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
      << std::strerror(errno);
}
File Connected(const std::string& to, const char* from = "127.0.0.1") {
  File client = TcpSocket();
  const sockaddr_in address = Loopback(from, 0);
  EXPECT_EQ(bind(client.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  Connect(client, to);
  return client;
}
uint16_t LocalPort(const File& file) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(file.fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}
File ConnectedUnix(const std::string& name, bool abstract) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + (abstract ? 1 : 0), name.size());
  File client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  EXPECT_EQ(connect(client.fd(), reinterpret_cast<const sockaddr*>(&address), size), 0)
      << std::strerror(errno);
  return client;
}

// What the other end says of itself: a byte that was sent, or the end.
enum class Seen { kByte, kEnd };
Seen Read(const File& file) {
  char byte;
  return recv(file.fd(), &byte, 1, 0) == 1 ? Seen::kByte : Seen::kEnd;
}

// Of a socket that no other process has.
std::string AbstractName() { return absl::StrCat("floe_acceptor_test_", getpid()); }

// An acceptor that greets each connection with a byte and keeps it.
class AcceptorTest : public testing::Test {
 protected:
  void Make(const std::string& listener, ConnectionLimits limits = {}) {
    auto socket = ListenSocket::Open(listener);
    ASSERT_TRUE(socket.ok()) << socket.status();
    address_ = socket->address();
    std::vector<ListenSocket> sockets;
    sockets.push_back(*std::move(socket));
    acceptor_.reset();  // it uses the table
    connections_ = std::make_unique<ConnectionTable>(limits);
    const auto take = [this](int, int fd) {
      MutexLock lock(mutex_);
      taken_.emplace_back(fd);
      EXPECT_EQ(send(fd, "!", 1, MSG_NOSIGNAL), 1);
    };
    acceptor_ = std::make_unique<Acceptor>(std::move(sockets), connections_.get(), take);
  }
  void Open(const std::string& listener, ConnectionLimits limits = {}) {
    Make(listener, limits);
    ASSERT_TRUE(acceptor_->Start().ok());
  }
  void CloseTaken(size_t i) {
    MutexLock lock(mutex_);
    connections_->Remove(taken_.at(i).fd());
    taken_.at(i).Close();
  }
  size_t Taken() {
    MutexLock lock(mutex_);
    return taken_.size();
  }

  Mutex mutex_;
  std::vector<File> taken_ ABSL_GUARDED_BY(mutex_);
  std::string address_;
  std::unique_ptr<ConnectionTable> connections_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, ConnectionsOfEveryKindArrive) {
  const std::string file = testing::TempDir() + "acceptor_test.sock";
  Open("127.0.0.1:0");
  EXPECT_THAT(address_, StartsWith("127.0.0.1:"));
  EXPECT_EQ(Read(Connected(address_)), Seen::kByte);
  Open("unix-abstract:" + AbstractName());
  EXPECT_EQ(Read(ConnectedUnix(AbstractName(), true)), Seen::kByte);
  Open("unix:" + file);
  EXPECT_EQ(Read(ConnectedUnix(file, false)), Seen::kByte);
  acceptor_->Stop();
  EXPECT_NE(access(file.c_str(), F_OK), 0) << "the socket file stays";
}

TEST_F(AcceptorTest, WhatWaitsAtAnInheritedListenerIsForTheNextProcess) {
  auto outside = ListenSocket::Open("127.0.0.1:0");  // the service manager's
  ASSERT_TRUE(outside.ok());
  const int given = dup(outside->fd());
  Make(absl::StrCat("fd:", given));
  EXPECT_EQ(address_, outside->address());
  const File client = Connected(address_);
  acceptor_->Stop();
  EXPECT_EQ(Taken(), 0u);
  Open(absl::StrCat("fd:", dup(outside->fd())));
  EXPECT_EQ(Read(client), Seen::kByte);
}

TEST_F(AcceptorTest, WhatWaitsAtItsOwnListenerIsTakenBeforeItCloses) {
  Make("127.0.0.1:0");
  const File client = Connected(address_);
  acceptor_->Stop();
  EXPECT_EQ(Read(client), Seen::kByte);
}

TEST_F(AcceptorTest, BeyondTheLimitOneIsRefusedUntilOneLeaves) {
  Open("127.0.0.1:0", {.max_connections = 2});
  const File first = Connected(address_), second = Connected(address_);
  EXPECT_EQ(Read(first), Seen::kByte);
  EXPECT_EQ(Read(second), Seen::kByte);
  EXPECT_EQ(Read(Connected(address_)), Seen::kEnd);
  EXPECT_EQ(connections_->Counts().refused_total, 1);
  CloseTaken(0);
  EXPECT_EQ(Read(Connected(address_)), Seen::kByte);
  EXPECT_EQ(connections_->Counts().accepted, 3);
}

TEST_F(AcceptorTest, TheLimitOfAnAddressLeavesOthersAlone) {
  Open("127.0.0.1:0", {.max_connections_per_address = 1});
  const File first = Connected(address_);
  EXPECT_EQ(Read(first), Seen::kByte);
  EXPECT_EQ(Read(Connected(address_)), Seen::kEnd);
  EXPECT_EQ(Read(Connected(address_, "127.0.0.2")), Seen::kByte);
  EXPECT_EQ(connections_->Counts().refused_address, 1);
}

TEST_F(AcceptorTest, AtTheLimitTheAddressWithMostMakesRoomForOthers) {
  Open("127.0.0.1:0", {.max_connections = 3});
  std::vector<File> many;
  for (int i = 0; i < 3; ++i) {
    many.push_back(Connected(address_));
    EXPECT_EQ(Read(many.back()), Seen::kByte);
  }
  const File other = Connected(address_, "127.0.0.2");
  EXPECT_EQ(Read(other), Seen::kByte);
  EXPECT_EQ(Read(many.back()), Seen::kEnd) << "the youngest";
  CloseTaken(2);
  EXPECT_EQ(Read(Connected(address_)), Seen::kEnd) << "who has most displaces nobody";
  const ListenerCounts counts = connections_->Counts();
  EXPECT_EQ(counts.displaced, 1);
  EXPECT_EQ(counts.refused_total, 1);
  EXPECT_EQ(counts.open, 3);
}

TEST_F(AcceptorTest, TheLimitOfOpenFilesBoundsTheLimit) {
  Make("127.0.0.1:0");
  const int64_t fit = connections_->limits().max_connections;
  EXPECT_GT(fit, 0);
  Make("127.0.0.1:0", {.max_connections = fit - 1});
  EXPECT_EQ(connections_->limits().max_connections, fit - 1);
  if (fit == INT64_MAX) return;
  Make("127.0.0.1:0", {.max_connections = fit + 1});
  EXPECT_EQ(connections_->limits().max_connections, fit);
}

TEST_F(AcceptorTest, WithoutFileDescriptorsConnectionsAreRefusedAndLaterTakenAgain) {
  Open("127.0.0.1:0");
  const File before = Connected(address_);
  ASSERT_EQ(Read(before), Seen::kByte);
  File unlucky = TcpSocket(), lucky = TcpSocket();
  rlimit files = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit few = {std::min<rlim_t>(files.rlim_cur, 256), files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<File> hogs;
  for (int fd; (fd = dup(before.fd())) >= 0;) hogs.emplace_back(fd);
  ASSERT_EQ(errno, EMFILE);
  Connect(unlucky, address_);
  EXPECT_EQ(Read(unlucky), Seen::kEnd);
  EXPECT_GE(connections_->Counts().refused_files, 1);
  hogs.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  Connect(lucky, address_);
  EXPECT_EQ(Read(lucky), Seen::kByte);
}

TEST_F(AcceptorTest, WaitsForTheEndOfWhatIsOpen) {
  Open("127.0.0.1:0");
  const File client = Connected(address_);
  ASSERT_EQ(Read(client), Seen::kByte);
  acceptor_->Stop();
  connections_->AwaitClosed(Clock::Steady().Now());  // it returns
  std::thread waiting([&] { connections_->AwaitClosed(TimePoint::max()); });
  CloseTaken(0);
  waiting.join();
}

TEST_F(AcceptorTest, AConnectionCanBeCut) {
  ConnectionLimits limits;
  limits.send_timeout = std::chrono::seconds(7);
  Open("127.0.0.1:0", limits);
  const File cut = Connected(address_), other = Connected(address_);
  ASSERT_EQ(Read(cut), Seen::kByte);
  ASSERT_EQ(Read(other), Seen::kByte);
  EXPECT_LE(connections_->BytesAcknowledged("127.0.0.1", LocalPort(cut)), 2);
  EXPECT_EQ(connections_->BytesAcknowledged("127.0.0.2", LocalPort(cut)), 0);
  connections_->Cut("127.0.0.2", LocalPort(cut));  // nobody
  connections_->Cut("127.0.0.1", LocalPort(cut));
  EXPECT_EQ(Read(cut), Seen::kEnd);
  MutexLock lock(mutex_);
  ASSERT_EQ(taken_.size(), 2u);
  EXPECT_EQ(send(taken_[1].fd(), "?", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(Read(other), Seen::kByte);
  unsigned millis = 0;
  socklen_t size = sizeof millis;
  EXPECT_EQ(getsockopt(taken_[1].fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, &size), 0);
  EXPECT_EQ(millis, 7000u);
}

TEST_F(AcceptorTest, ClosingEndsWhatIsOpen) {
  Open("127.0.0.1:0");
  const File client = Connected(address_);
  ASSERT_EQ(Read(client), Seen::kByte);
  acceptor_->Stop();
  std::thread closing([&] { connections_->CloseAll(TimePoint::max()); });
  {
    MutexLock lock(mutex_);
    EXPECT_EQ(Read(taken_.at(0)), Seen::kEnd);
    connections_->Remove(taken_.at(0).fd());
    taken_.clear();
  }
  closing.join();  // for it is closed now
}

}  // namespace
}  // namespace floe::server
