// The counts of calls and their bytes, and the checks against the limits at three levels: one
// connection, one address, and all callers.
#include "server/listener/call_book.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::server {

namespace {

// Connections and addresses without calls are kept up to this many: most of them call again.
constexpr size_t kKept = 4096;

absl::Status Beyond(const char* whose, const char* what, int64_t have, int64_t limit,
                    const char* key) {
  return absl::ResourceExhaustedError(
      absl::StrCat("refused: ", whose, " ", what, ": ", have, " in progress, and the limit is ",
                   limit, " (server.", key, "); finish, or read, some of them first"));
}

}  // namespace

bool Peer::local() const { return port == 0 || host == "::1" || host.substr(0, 4) == "127."; }

Peer PeerOf(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {"unix", 0};
  Peer peer;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), peer.port);
  peer.host = text.substr(0, colon);
  if (peer.host.starts_with('[')) peer.host.remove_prefix(1);
  peer.host = peer.host.substr(0, peer.host.find_first_of("]%"));  // the bracket, or a scope
  return peer;
}

absl::Status CallSeat::Pay() {
  const CallLimits& limits = book_->limits_;
  const int64_t bytes = request_bytes_ + reply_bytes_;
  if (limits.memory == nullptr || bytes < CallLimits::kSmall) return absl::OkStatus();
  absl::Status status;
  if (paid_.bytes() > 0) {
    status = paid_.Resize(bytes);
  } else {
    absl::StatusOr<MemoryShare> taken = limits.memory->Take(bytes);
    status = taken.status();
    if (taken.ok()) paid_ = *std::move(taken);
  }
  if (!status.ok()) {
    MutexLock lock(book_->mutex_);
    ++book_->refusals_.memory;
  }
  return status;
}

absl::Status CallSeat::AddRequest(int64_t bytes) {
  if (book_ == nullptr) return absl::OkStatus();
  {
    MutexLock lock(book_->mutex_);
    FLOE_RETURN_IF_ERROR(book_->Check(*connection_, 0, bytes, /*reply=*/false));
    request_bytes_ += bytes;
    book_->Add(connection_, 0, bytes, 0);
  }
  return Pay();
}

absl::Status CallSeat::AddReply(int64_t bytes) {
  if (book_ == nullptr || bytes == 0) return absl::OkStatus();
  {
    MutexLock lock(book_->mutex_);
    FLOE_RETURN_IF_ERROR(book_->Check(*connection_, 0, bytes, /*reply=*/true));
    reply_bytes_ = bytes;
    reply_since_ = book_->clock_.Now();
    connection_->unsent.insert(reply_since_);
    book_->Add(connection_, 0, 0, bytes);
  }
  return Pay();
}

void CallSeat::Leave() {
  if (book_ == nullptr) return;
  CallBook* const book = std::exchange(book_, nullptr);
  paid_ = MemoryShare();
  MutexLock lock(book->mutex_);
  if (reply_bytes_ > 0) connection_->unsent.erase(connection_->unsent.find(reply_since_));
  book->Add(connection_, -1, -request_bytes_, -reply_bytes_);
}

void CallBook::ForgetIdle() {
  std::erase_if(connections_, [](const auto& one) { return one.second.load.calls == 0; });
  std::erase_if(addresses_, [](const auto& one) { return one.second.calls == 0; });
}

CallSeat::Connection* CallBook::Find(std::string_view peer) {
  const auto found = connections_.find(peer);
  if (found != connections_.end()) return &found->second;
  if (connections_.size() >= kKept && connections_.size() >= 2 * static_cast<size_t>(all_.calls))
    ForgetIdle();
  const Peer who = PeerOf(peer);
  CallSeat::Connection* const made = &connections_[std::string(peer)];
  made->host = std::string(who.host);
  made->port = who.port;
  made->address = &addresses_[made->host];
  return made;
}

absl::Status CallBook::Check(const CallSeat::Connection& connection, int64_t calls, int64_t bytes,
                             bool reply) {
  const struct {
    const char* whose;
    const CallLoad& load;
    const CallLimit& limit;
    const char *calls_key, *bytes_key;
    int64_t& refused;
  } levels[] = {
      {"this connection's", connection.load, limits_.connection, "max_calls_per_connection",
       "max_call_bytes_per_connection", refusals_.connection},
      {"this address's", *connection.address, limits_.address, "max_calls_per_address",
       "max_call_bytes_per_address", refusals_.address},
      {"all callers'", all_, limits_.all, "max_calls", "max_call_bytes", refusals_.all},
  };
  for (const auto& level : levels) {
    if (&level == levels && connection.port == 0) continue;
    if (level.limit.calls > 0 && level.load.calls + calls > level.limit.calls) {
      ++level.refused;
      return Beyond(level.whose, "calls", level.load.calls, level.limit.calls, level.calls_key);
    }
    const int64_t held = level.load.request_bytes + level.load.reply_bytes;
    if (reply && level.load.reply_bytes == 0) continue;  // one reply is there for everybody
    if (level.limit.bytes <= 0 || held + bytes <= level.limit.bytes) continue;
    pressed_ |= &level.load == &all_;
    ++level.refused;
    return Beyond(level.whose, "bytes of requests and unsent replies", held, level.limit.bytes,
                  level.bytes_key);
  }
  return absl::OkStatus();
}

void CallBook::Add(CallSeat::Connection* connection, int64_t calls, int64_t request,
                   int64_t reply) {
  for (CallLoad* const load : {&connection->load, connection->address, &all_}) {
    load->calls += calls;
    load->request_bytes += request;
    load->reply_bytes += reply;
  }
}

absl::Status CallBook::Take(std::string_view peer, int64_t request_bytes, CallSeat* seat) {
  {
    MutexLock lock(mutex_);
    CallSeat::Connection* const connection = Find(peer);
    FLOE_RETURN_IF_ERROR(Check(*connection, 1, request_bytes, /*reply=*/false));
    Add(connection, 1, request_bytes, 0);
    seat->book_ = this;
    seat->connection_ = connection;
    seat->request_bytes_ = request_bytes;
  }
  return seat->Pay();
}

bool CallBook::IsOverdue(CallSeat::Connection* connection, TimePoint now,
                         const Acknowledged& acknowledged) {
  const Duration timeout = limits_.send_timeout;
  if (timeout <= Duration::zero()) return false;
  const int64_t bytes = acknowledged(connection->host, connection->port);
  const int64_t least =
      CallLimits::kLeastRate * std::chrono::duration_cast<std::chrono::seconds>(timeout).count();
  if (connection->acknowledged < 0 || bytes - connection->acknowledged >= least) {
    connection->acknowledged = bytes;
    connection->marked = now;
  }
  return now - std::max(connection->marked, *connection->unsent.begin()) > timeout;
}

std::vector<CallBook::Cut> CallBook::Overdue(const Acknowledged& acknowledged) {
  const TimePoint now = clock_.Now();
  std::vector<Cut> cuts;
  MutexLock lock(mutex_);
  const CallSeat::Connection* worst = nullptr;
  for (auto& [name, connection] : connections_) {
    if (connection.unsent.empty() || connection.port == 0) {
      connection.acknowledged = -1;
      continue;
    }
    if (IsOverdue(&connection, now, acknowledged))
      cuts.push_back({connection.host, connection.port, connection.load.reply_bytes});
    if (now - *connection.unsent.begin() > kPressed &&
        (worst == nullptr || worst->load.reply_bytes < connection.load.reply_bytes))
      worst = &connection;
  }
  if (std::exchange(pressed_, false) && cuts.empty() && worst != nullptr)
    cuts.push_back({worst->host, worst->port, worst->load.reply_bytes});
  return cuts;
}

CallLoad CallBook::all() const {
  MutexLock lock(mutex_);
  return all_;
}

CallRefusals CallBook::refusals() const {
  MutexLock lock(mutex_);
  return refusals_;
}

}  // namespace floe::server
