// nghttp2's callbacks, and what they mean for calls. nghttp2 keeps the rules of the protocol; the
// limits that it does not have are here and in flood_guard.h.
#include "server/net/h2_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <utility>

namespace floe::server {
namespace {

// In flight on a connection; what has arrived is in messages that are paid for.
constexpr int32_t kConnectionWindow = 16 << 20;
// Between the two steps of GOAWAY: calls that were under way have arrived by then.
constexpr Duration kLastCalls = std::chrono::seconds(1);
// To read the last words.
constexpr Duration kFarewell = std::chrono::seconds(5);

std::string_view Text(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// The C functions that nghttp2 calls.
struct H2Callbacks {
  static H2Session& Of(void* user) { return *static_cast<H2Session*>(user); }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    H2Session& self = Of(user);
    self.head_ = {};
    self.head_.stream = frame->hd.stream_id;
    self.head_.since = self.loop()->now();
    return 0;
  }
  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
    const bool plain = frame->type == NGHTTP2_DATA && (frame->flags & NGHTTP2_FLAG_PADDED) == 0;
    Of(user).data_stream_ = frame->stream_id;
    Of(user).data_left_ = plain ? frame->length : 0;
    return 0;
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user) {
    return Of(user).OnField(Text(name, name_size), Text(value, value_size))
               ? 0
               : NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  static int OnFrameReceived(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int OnData(nghttp2_session* session, uint8_t, int32_t stream, const uint8_t* bytes,
                    size_t size, void* user);
  static int OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int OnStreamClosed(nghttp2_session*, int32_t stream, uint32_t code, void* user) {
    Of(user).OnStreamClosed(stream, code == NGHTTP2_NO_ERROR);
    return 0;
  }
  static int SendData(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t size,
                      nghttp2_data_source* source, void* user);
  static nghttp2_session_callbacks* All();
  static nghttp2_option* Options();
};

int H2Callbacks::OnFrameReceived(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  H2Session& self = Of(user);
  const TimePoint now = self.loop()->now();
  const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  const auto end = [&](EndReason reason, std::string_view why) {
    self.EndFor(reason, NGHTTP2_ENHANCE_YOUR_CALM, why);
    return 0;
  };
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
      if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        self.OnHead(ends);
        return 0;
      }
      if (ends) self.OnRequestEnd(frame->hd.stream_id);
      return 0;
    case NGHTTP2_DATA:
      if (!ends && !self.guard_.OnData(frame->hd.length, now))
        return end(EndReason::kFrames, "too_many_small_frames");
      if (ends) self.OnRequestEnd(frame->hd.stream_id);
      return 0;
    case NGHTTP2_PING:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0 && !self.OnPing()) return 0;
      break;
    case NGHTTP2_SETTINGS:
      self.settled_ = true;
      break;
    case NGHTTP2_RST_STREAM:
      return self.guard_.OnReset(now) ? 0 : end(EndReason::kResets, "too_many_resets");
    default:
      break;
  }
  return self.guard_.OnIdleFrame(now) ? 0 : end(EndReason::kFrames, "too_many_frames");
}

int H2Callbacks::OnData(nghttp2_session* session, uint8_t, int32_t stream, const uint8_t* bytes,
                        size_t size, void* user) {
  nghttp2_session_consume_connection(session, size);
  Of(user).data_left_ -= std::min(size, Of(user).data_left_);
  GrpcCall* call = Of(user).Find(stream);
#ifdef FLOE_FUZZ_PLANTED_BUG  // for scripts/fuzz --self-test
  if (call == nullptr) call = Of(user).calls_.begin()->second.get();
#endif
  if (call != nullptr) {
    const std::shared_ptr<GrpcCall> held = call->shared_from_this();
    call->OnData(Text(bytes, size));
  } else {
    if (const auto exchange = Of(user).FindPlain(stream)) exchange->OnBody(Text(bytes, size));
    nghttp2_session_consume_stream(session, stream, size);
  }
  return 0;
}

int H2Callbacks::OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
  H2Session& self = Of(user);
  const int32_t stream = frame->hd.stream_id;
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      self.ping_strikes_ = 0;
      self.last_ping_ = TimePoint::min();
      self.guard_.OnWork();
      // Here, because a reset that is queued with the answer overtakes it.
      if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
          nghttp2_session_get_stream_remote_close(session, stream) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_NO_ERROR);
      return 0;
    case NGHTTP2_RST_STREAM:
      // The client made the server reset it, as it makes calls cost nothing to itself.
      if (frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
          frame->rst_stream.error_code != NGHTTP2_CANCEL && !self.broken_ &&
          !self.guard_.OnReset(self.loop()->now()))
        self.EndFor(EndReason::kResets, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_resets");
      return 0;
    case NGHTTP2_GOAWAY:
      if (frame->goaway.error_code == NGHTTP2_NO_ERROR) return 0;
      self.connection_.NoteReason(EndReason::kProtocol);
      self.broken_ = true;
      return 0;
    default:
      return 0;
  }
}

int H2Callbacks::SendData(nghttp2_session*, nghttp2_frame*, const uint8_t* head, size_t size,
                          nghttp2_data_source* source, void* user) {
  H2Session& self = Of(user);
  if (self.out_ == nullptr || self.out_->size() >= self.out_most_) return NGHTTP2_ERR_WOULDBLOCK;
  constexpr size_t kFrameHead = 9;
  self.out_->append(reinterpret_cast<const char*>(head), kFrameHead);
  static_cast<GrpcCall*>(source->ptr)->CopyOut(size, self.out_);
  return 0;
}

nghttp2_session_callbacks* H2Callbacks::All() {
  static nghttp2_session_callbacks* const callbacks = [] {
    nghttp2_session_callbacks* made = nullptr;
    nghttp2_session_callbacks_new(&made);
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_begin_frame_callback(made, OnBeginFrame);
    nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrameReceived);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
    nghttp2_session_callbacks_set_on_frame_send_callback(made, OnFrameSent);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, OnStreamClosed);
    nghttp2_session_callbacks_set_send_data_callback(made, SendData);
    return made;
  }();
  return callbacks;
}

nghttp2_option* H2Callbacks::Options() {
  static nghttp2_option* const options = [] {
    nghttp2_option* made = nullptr;
    nghttp2_option_new(&made);
    nghttp2_option_set_no_auto_window_update(made, 1);
    nghttp2_option_set_no_closed_streams(made, 1);
    // FloodGuard counts them, with a reason to log; its own limit cuts honest clients.
    nghttp2_option_set_stream_reset_rate_limit(made, 1'000'000, 1'000'000);
    return made;
  }();
  return options;
}

H2Session::H2Session(Connection* connection)
    : connection_(*connection),
      guard_(loop()->now()),
      timer_([this] { OnTimer(); }),
      began_(loop()->now()),
      idle_since_(began_) {
  nghttp2_session_server_new2(&session_, H2Callbacks::All(), this, H2Callbacks::Options());
  Start();
}

H2Session::~H2Session() { nghttp2_session_del(session_); }

void H2Session::Start() {
  const NetLimits& limits = shared().limits;
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kCallWindow},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits.max_frame_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(limits.max_metadata_bytes)},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  if (limits.times.age > Duration::zero()) {
    // A tenth more or less, so that clients that came together do not leave together.
    const auto spread = static_cast<int64_t>(connection_.who().principal % 200) - 100;
    ask_at_ = began_ + limits.times.age + limits.times.age * spread / 1000;
  }
  SetTimer();
}

bool H2Session::Receive(std::string_view bytes) {
  const ssize_t read = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (read < 0) {
    connection_.NoteReason(EndReason::kProtocol);
    broken_ = true;
  }
  if (pinged_ != TimePoint::max()) {
    pinged_ = TimePoint::max();
    SetTimer();
  }
  if (head_.stream != 0) SetTimer();
  connection_.WantFlush();
  return !broken_;
}

// The rest of a DATA frame is the message's and nothing else.
std::span<char> H2Session::Room() {
  constexpr size_t kLeast = size_t{32} << 10;  // less takes more calls of recv than it saves
  GrpcCall* const call = data_left_ >= kLeast ? Find(data_stream_) : nullptr;
  if (call == nullptr) return {};
  const std::span<char> room = call->Room();
  return room.size() < kLeast ? std::span<char>() : room.first(std::min(room.size(), data_left_));
}

void H2Session::ResetStream(int32_t stream) {
  connection_.WantFlush();
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
}

void H2Session::ConsumeStream(int32_t stream, size_t bytes) {
  nghttp2_session_consume_stream(session_, stream, bytes);
}

void H2Session::SetWindow(int32_t stream, size_t bytes) {
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, stream,
                                        static_cast<int32_t>(bytes));
}

GrpcCall* H2Session::Find(int32_t stream) {
  const auto found = calls_.find(stream);
  return found == calls_.end() ? nullptr : found->second.get();
}

std::shared_ptr<HttpExchange> H2Session::FindPlain(int32_t stream) const {
  const auto found = exchanges_.find(stream);
  return found == exchanges_.end() ? nullptr : found->second;
}

void H2Session::OnRequestEnd(int32_t stream) {
  if (GrpcCall* const call = Find(stream))
    call->OnHalfClose();
  else if (const auto exchange = FindPlain(stream))
    exchange->OnEnd();
}

void H2Session::OnStreamClosed(int32_t stream, bool whole) {
  if (head_.stream == stream) head_.stream = 0;
  if (const auto found = calls_.find(stream); found != calls_.end()) {
    const std::shared_ptr<GrpcCall> call = std::move(found->second);
    calls_.erase(found);
    call->OnClosed(whole && call->IsEnding());
  } else if (const auto exchange = FindPlain(stream)) {
    exchanges_.erase(stream);
    exchange->OnClosed();
  } else {
    return;
  }
  if (HasCalls()) return;
  idle_since_ = loop()->now();
  if (!timer_.is_set()) SetTimer();
}

void H2Session::Fill(std::string* out, size_t most) {
  if (gone_) return;
  out_ = out;
  out_most_ = most;
  while (out->size() < most) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) broken_ = true;
    if (size <= 0) break;
    out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  out_ = nullptr;
}

bool H2Session::IsOver() const {
  if (gone_) return true;
  if (nghttp2_session_want_write(session_) != 0) return false;
  return broken_ || (final_ && !HasCalls()) || nghttp2_session_want_read(session_) == 0;
}

void H2Session::OnGone() {
  if (std::exchange(gone_, true)) return;
  timer_.Clear();
  for (auto& [stream, call] : std::exchange(calls_, {})) call->OnClosed(/*whole=*/false);
  for (auto& [stream, exchange] : std::exchange(exchanges_, {})) exchange->OnClosed();
}

bool H2Session::OnPing() {
  const NetLimits& limits = shared().limits;
  const TimePoint now = loop()->now();
  constexpr Duration kWithoutCalls = std::chrono::hours(2);
  const Duration interval = !HasCalls() && !limits.pings_without_calls
                                ? std::max(kWithoutCalls, limits.min_ping_interval)
                                : limits.min_ping_interval;
  const bool early = last_ping_ != TimePoint::min() && now - last_ping_ < interval;
  last_ping_ = now;
  if (!early || ++ping_strikes_ <= limits.max_ping_strikes || limits.max_ping_strikes == 0)
    return true;
  return EndFor(EndReason::kPings, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
}

bool H2Session::EndFor(EndReason reason, uint32_t code, std::string_view why) {
  connection_.NoteReason(reason);
  if (std::exchange(broken_, true)) return false;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), code,
                        reinterpret_cast<const uint8_t*>(why.data()), why.size());
  connection_.WantFlush();
  return false;
}

void H2Session::AskToLeave() {
  if (std::exchange(asked_, true)) return;
  nghttp2_submit_shutdown_notice(session_);
  connection_.WantFlush();
}

void H2Session::TakeNoMore() {
  asked_ = true;
  if (std::exchange(final_, true)) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  end_at_ = loop()->now() + std::max(kFarewell, shared().limits.times.grace);
  SetTimer();
  connection_.WantFlush();
}

void H2Session::EndStreams() {
  std::vector<std::shared_ptr<GrpcCall>> streams;
  for (const auto& [stream, call] : calls_)
    if (call->is_stream()) streams.push_back(call);
  for (const auto& call : streams) call->Drain();
  for (const auto& [stream, exchange] : exchanges_) exchange->EndStream();
}

// The next thing that time brings.
void H2Session::SetTimer() {
  const ConnectionTimes& times = shared().limits.times;
  TimePoint next = std::min(ask_at_, end_at_);
  if (!settled_) next = std::min(next, began_ + times.handshake);
  if (head_.stream != 0) next = std::min(next, head_.since + times.handshake);
  if (times.idle > Duration::zero() && !HasCalls() && !asked_)
    next = std::min(next, idle_since_ + times.idle);
  if (pinged_ != TimePoint::max())
    next = std::min(next, pinged_ + shared().limits.keepalive_timeout);
  else if (times.keepalive > Duration::zero())
    next = std::min(next, connection_.last_received() + times.keepalive);
  timer_.Set(loop()->timers(), next);
}

void H2Session::OnTimer() {
  const ConnectionTimes& times = shared().limits.times;
  const TimePoint now = loop()->now();
  if ((!settled_ && now >= began_ + times.handshake) ||
      (head_.stream != 0 && now >= head_.since + times.handshake))
    return connection_.Close(EndReason::kHandshake);
  if (now >= end_at_) {
    connection_.NoteReason(EndReason::kAge);
    if (final_) return connection_.Close(EndReason::kAge);
    TakeNoMore();  // the second step
  }
  if (pinged_ != TimePoint::max() && now >= pinged_ + shared().limits.keepalive_timeout)
    return connection_.Close(EndReason::kKeepalive);
  const bool idle =
      times.idle > Duration::zero() && !HasCalls() && !asked_ && now >= idle_since_ + times.idle;
  if (idle || now >= ask_at_) {
    connection_.NoteReason(idle ? EndReason::kIdle : EndReason::kAge);
    ask_at_ = TimePoint::max();
    AskToLeave();
    end_at_ = now + kLastCalls;
  }
  if (pinged_ == TimePoint::max() && times.keepalive > Duration::zero() &&
      now >= connection_.last_received() + times.keepalive) {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    pinged_ = now;
    connection_.WantFlush();
  }
  SetTimer();
}

}  // namespace floe::server
