#include "server/listener/socket_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>

namespace floe::server {
namespace {

sockaddr_storage V6(const char* text) {
  sockaddr_storage storage = {};
  auto& address = reinterpret_cast<sockaddr_in6&>(storage);
  address.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text, &address.sin6_addr), 1) << text;
  return storage;
}

sockaddr_storage V4(const char* text) {
  sockaddr_storage storage = {};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1) << text;
  return storage;
}

// LocalAddress of a new socket bound to it; "port" stands for the port that the system chose.
std::string Bound(const sockaddr_storage& address, socklen_t size) {
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
  std::string text = LocalAddress(fd);
  sockaddr_in port = {};  // the same place in both families
  sockaddr_storage bound = {};
  size = sizeof bound;
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size), 0);
  close(fd);
  if (address.ss_family == AF_UNIX) return text;
  port.sin_port = reinterpret_cast<const sockaddr_in&>(bound).sin_port;
  const std::string ending = ":" + std::to_string(ntohs(port.sin_port));
  if (text.size() < ending.size() || text.substr(text.size() - ending.size()) != ending)
    return text;
  return text.substr(0, text.size() - ending.size()) + ":port";
}

std::string BoundUnix(const std::string& path) {
  sockaddr_storage storage = {};
  auto& address = reinterpret_cast<sockaddr_un&>(storage);
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  return Bound(storage, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size()));
}

TEST(HostOf, IsTheAddressWithoutItsPort) {
  EXPECT_EQ(HostOf(V4("192.0.2.7")), "192.0.2.7");
  EXPECT_EQ(HostOf(V6("::1")), "::1");
  EXPECT_EQ(HostOf(V6("2001:db8::ff")), "2001:db8::ff");
  EXPECT_EQ(HostOf(V6("::ffff:192.0.2.7")), "192.0.2.7") << "IPv4 inside IPv6";
  sockaddr_storage local = {};
  local.ss_family = AF_UNIX;
  EXPECT_EQ(HostOf(local), "");
}

TEST(LocalAddress, IsWhatAListenerIsCalled) {
  EXPECT_EQ(Bound(V4("127.0.0.1"), sizeof(sockaddr_in)), "127.0.0.1:port");
  const std::string path = testing::TempDir() + "socket_address_test.sock";
  unlink(path.c_str());
  EXPECT_EQ(BoundUnix(path), "unix:" + path);
  unlink(path.c_str());
  EXPECT_EQ(BoundUnix(std::string(1, '\0') + "socket_address_test"),
            "unix-abstract:socket_address_test");
}

TEST(LocalAddress, OfV6HasBrackets) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) GTEST_SKIP() << "this machine has no IPv6";
  close(fd);
  // Any address: ::1 itself may be missing.
  EXPECT_EQ(Bound(V6("::"), sizeof(sockaddr_in6)), "[::]:port");
}

TEST(LocalAddress, OfWhatHasNoneIsEmpty) {
  EXPECT_EQ(LocalAddress(-1), "");
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(LocalAddress(fd), "") << "not bound";
  close(fd);
}

}  // namespace
}  // namespace floe::server
