// Bounds what waits for the thread.
#include "server/transport/grpcpp/reply_sender.h"

namespace floe::server {

bool ReplySender::Post(DeferredReply* reply) {
  if (waiting_.fetch_add(1) >= kMostWaiting) {
    --waiting_;
    return false;
  }
  thread_.Post([this, reply] {  // two pointers: std::function takes no memory for them
    --waiting_;
    reply->Send();
  });
  return true;
}

}  // namespace floe::server
