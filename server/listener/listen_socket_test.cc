#include "server/listener/listen_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string Refusal(const std::string& listener) {
  return ListenSocket::Open(listener).status().ToString();
}

// "unix:" and a path where there is no file.
std::string UnixListener(std::string* path) {
  *path = testing::TempDir() + "listen_socket_test.sock";
  unlink(path->c_str());
  return "unix:" + *path;
}

// No other process has it.
std::string AbstractListener() {
  return absl::StrCat("unix-abstract:floe_listen_socket_test_", getpid());
}

TEST(ListenSocket, ListensWithoutBlockingWhereItSays) {
  std::string path;
  for (const std::string& listener : {std::string("127.0.0.1:0"), std::string("localhost:0"),
                                      UnixListener(&path), AbstractListener()}) {
    auto socket = ListenSocket::Open(listener);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_THAT(socket->address(), AllOf(HasSubstr(":"), testing::Not(testing::EndsWith(":0"))));
    EXPECT_EQ(accept(socket->fd(), nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN) << listener << ": it listens, and nobody has come";
    EXPECT_EQ(fcntl(socket->fd(), F_GETFD), FD_CLOEXEC);
    EXPECT_FALSE(socket->inherited());
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "the file goes with its socket";
}

TEST(ListenSocket, WhatIsNoListenerIsNamed) {
  for (const char* listener : {"", "nothing", ":80", "fd:", "fd:x", "fd:1x", "fd:-1"})
    EXPECT_THAT(Refusal(listener),
                AllOf(StartsWith("INVALID_ARGUMENT"), HasSubstr(absl::StrCat("'", listener, "'")),
                      HasSubstr("expected host:port")));
  for (const std::string& listener :
       {std::string("unix:"), "unix:/" + std::string(107, 'x'), std::string("unix-abstract:")})
    EXPECT_THAT(Refusal(listener),
                AllOf(StartsWith("INVALID_ARGUMENT"), HasSubstr("expected 1 to 107")));
}

TEST(ListenSocket, AnAddressInUseIsNamed) {
  for (const std::string& listener : {std::string("127.0.0.1:0"), AbstractListener()}) {
    const auto first = ListenSocket::Open(listener);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(Refusal(first->address()), absl::StrCat("UNAVAILABLE: cannot listen on ",
                                                      first->address(), ": the address is in use"));
  }
}

TEST(ListenSocket, AnAddressOfAnotherMachineIsNamed) {
  EXPECT_EQ(Refusal("192.0.2.7:0"),  // for documentation: nobody has it
            "UNAVAILABLE: cannot listen on 192.0.2.7:0: the address is not this machine's");
}

TEST(ListenSocket, ASocketFileIsTakenOverOnlyFromTheDead) {
  std::string path;
  const std::string listener = UnixListener(&path);
  auto first = ListenSocket::Open(listener);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(Refusal(listener), AllOf(HasSubstr(path), HasSubstr("in use")));
  close(first->fd());  // as a killed process leaves it
  const auto second = ListenSocket::Open(listener);
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST(ListenSocket, AFileThatIsNoSocketStays) {
  std::string path;
  const std::string listener = UnixListener(&path);
  std::ofstream(path) << "text";
  EXPECT_THAT(Refusal(listener), AllOf(HasSubstr(path), HasSubstr("in use")));
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  unlink(path.c_str());
}

TEST(ListenSocket, WhatTheServiceManagerGaveIsTaken) {
  const auto outside = ListenSocket::Open("127.0.0.1:0");
  ASSERT_TRUE(outside.ok());
  const auto given = ListenSocket::Open(absl::StrCat("fd:", dup(outside->fd())));
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_TRUE(given->inherited());
  EXPECT_EQ(given->address(), outside->address());
  EXPECT_EQ(fcntl(given->fd(), F_GETFD), FD_CLOEXEC);

  const int no_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_THAT(Refusal(absl::StrCat("fd:", no_listener)),
              AllOf(StartsWith("UNAVAILABLE"), HasSubstr("not a listening stream socket")));
  close(no_listener);
}

}  // namespace
}  // namespace floe::server
