#include "server/listener/reply_count.h"

#include <charconv>

namespace floe::server {

size_t ReplyCount::SlotOf(std::string_view peer) {
  uint16_t port = 0;
  if (peer.substr(0, 3) == "ipv") {
    const char* const end = peer.data() + peer.size();
    std::from_chars(peer.data() + peer.rfind(':') + 1, end, port);
  }
  return SlotOfPort(port);
}

}  // namespace floe::server
