// What holds for every connection of a server, and the parts that they share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/task_thread_pool.h"
#include "server/api/access.h"
#include "server/api/http.h"
#include "server/api/rpc.h"
#include "server/listener/call_book.h"
#include "server/listener/call_gate.h"
#include "server/listener/connection_table.h"
#include "server/net/ends.h"
#include "server/transport/transport.h"

namespace floe::server {

// Of HTTP/2 and gRPC, from the options and the channel arguments.
struct NetLimits {
  int64_t max_message_bytes = 0;
  bool compression = false;
  ConnectionTimes times;
  uint32_t max_streams = 1024;         // of a connection
  uint32_t max_frame_bytes = 1 << 20;  // that are received
  int64_t max_metadata_bytes = 16 << 10;
  Duration keepalive_timeout = std::chrono::seconds(20);
  // Of clients' PINGs; more of them within this time are strikes.
  Duration min_ping_interval = std::chrono::minutes(5);
  int max_ping_strikes = 2;  // 0: no limit
  bool pings_without_calls = false;
};

// Outlives the connections.
struct NetShared {
  NetShared(const MethodTable& m, const CallLimits& calls, ConnectionLimits open)
      : methods(m), book(calls), connections(open) {}
  const MethodTable& methods;
  const HttpRoutes* routes = nullptr;  // null: HTTP/1.1 is not spoken
  NetLimits limits;
  CallBook book;
  ConnectionTable connections;
  CallGate gate;
  EndCounts ends;
  const Access* access = nullptr;        // null: nobody asks who callers are
  std::atomic<bool> streams_end{false};  // the server stops: streams get no more messages
  // For what would keep a loop too long: unpacking messages.
  TaskThreadPool helpers{2, {"unpack", 0, {}}};
};

// Who is at the other end, and by which listener.
struct PeerIdentity {
  std::string peer;  // CallHead::peer
  bool local = false;
  uint64_t principal = 0;
  ListenerRoles roles;
  Caller caller = {};  // who that is, if a call does not say more
  bool for_operators = false;
};

// Writes into the head of a call, or of a request, who makes it and when. `authorization`: that
// field of its head; "": none.
template <typename Head>
void SetCaller(const NetShared& shared, const PeerIdentity& who, std::string_view authorization,
               Head* head) {
  head->peer = who.peer;
  head->local = who.local;
  head->roles = who.roles;
  if (shared.access != nullptr) head->caller = shared.access->OfCall(who.caller, authorization);
  head->principal = who.principal;
  head->arrived = Clock::Steady().Now();
}

}  // namespace floe::server
