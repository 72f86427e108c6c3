// What the heads of requests say, and the heads of answers.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/retry_after.h"
#include "server/api/call_watch.h"
#include "server/net/h2_session.h"
#include "server/transport/call_text.h"

namespace floe::server {
namespace {

// Unpacked fields of one head, before the connection ends.
constexpr size_t kMostHeadBytes = size_t{128} << 10;

nghttp2_nv Field(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}
constexpr uint8_t kNoCopy = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
nghttp2_nv FixedField(std::string_view name, std::string_view value) {
  nghttp2_nv field = Field(name, value);
  field.flags = kNoCopy;
  return field;
}

// The end of a call as fields. They point into this object and the trailers.
class EndFields {
 public:
  EndFields(const absl::Status& status, const Trailers& trailers)
      : code_(absl::StrCat(static_cast<int>(status.code()))) {
    fields_.push_back(Field("grpc-status", code_));
    if (!status.ok()) {
      const absl::string_view said = status.message();
      text_ = PercentEncoded(Printable({said.data(), said.size()}, kMostStatusBytes));
      if (!text_.empty()) fields_.push_back(Field("grpc-message", text_));
    }
    if (const auto wait = RetryAfter(status)) {
      wait_ = absl::StrCat(wait->count());
      fields_.push_back(Field("grpc-retry-pushback-ms", wait_));
    }
    encoded_.reserve(trailers.size());
    for (const auto& [name, value] : trailers) {
      encoded_.push_back(name.ends_with("-bin") ? Base64(value) : value);
      fields_.push_back(Field(name, encoded_.back()));
    }
  }
  EndFields(const EndFields&) = delete;
  EndFields& operator=(const EndFields&) = delete;
  const std::vector<nghttp2_nv>& fields() const { return fields_; }

 private:
  const std::string code_;
  std::string text_, wait_;
  std::vector<std::string> encoded_;
  std::vector<nghttp2_nv> fields_;
};

// How much of the reply comes next; nghttp2 asks SendData to copy it.
ssize_t Offer(nghttp2_session* session, int32_t stream, uint8_t*, size_t most, uint32_t* flags,
              nghttp2_data_source* source, void*) {
  const auto& call = *static_cast<const GrpcCall*>(source->ptr);
  const size_t left = call.Available();
  if (left == 0 && !call.IsEnding()) return NGHTTP2_ERR_DEFERRED;
  const size_t part = std::min(left, most);
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (part < left || !call.IsEnding()) return static_cast<ssize_t>(part);
  *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  const EndFields end(call.end(), call.trailers());
  if (nghttp2_submit_trailer(session, stream, end.fields().data(), end.fields().size()) != 0)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  return static_cast<ssize_t>(part);
}

// Copies, unlike a call's reply.
ssize_t OfferPlain(nghttp2_session*, int32_t, uint8_t* to, size_t most, uint32_t* flags,
                   nghttp2_data_source* source, void*) {
  auto& exchange = *static_cast<HttpExchange*>(source->ptr);
  const std::string_view part = exchange.Body().substr(0, most);
  if (part.empty() && !exchange.IsEnding()) return NGHTTP2_ERR_DEFERRED;
  std::copy(part.begin(), part.end(), to);
  exchange.OnSent(part.size());
  if (exchange.Body().empty() && exchange.IsEnding()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(part.size());
}

}  // namespace

bool H2Session::OnField(std::string_view name, std::string_view value) {
  if (head_.stream == 0) return guard_.OnHeader(name.size() + value.size(), loop()->now());
  constexpr size_t kFieldOverhead = 32;  // RFC 7541 4.1
  head_.bytes += name.size() + value.size() + kFieldOverhead;
  if (head_.bytes > kMostHeadBytes) {
    connection_.NoteReason(EndReason::kHeaders);
    return EndFor(EndReason::kHeaders, NGHTTP2_ENHANCE_YOUR_CALM, "too_much_metadata");
  }
  head_.too_large |= head_.bytes > static_cast<size_t>(shared().limits.max_metadata_bytes);
  if (head_.too_large) return true;
  if (name == ":path") {
    head_.path = value;
  } else if (name == ":method") {
    head_.method = value;
  } else if (name == ":authority") {
    head_.authority = value;
  } else if (!name.starts_with(':')) {
    OnRegularField(name, value);
  }
  return true;
}

void H2Session::OnRegularField(std::string_view name, std::string_view value) {
  if (!std::exchange(head_.has_fields, true))
    head_.is_plain = shared().routes != nullptr && shared().methods.Find(head_.path) == nullptr;
  if (name == "authorization") {
    // Several are joined, which no token is.
    absl::StrAppend(&head_.authorization, head_.authorization.empty() ? "" : ", ",
                    value.empty() ? "(empty)" : std::string(value));
    return;
  }
  if (head_.is_plain) head_.fields.emplace_back(name, value);
  if (name == "content-type") {
    constexpr std::string_view kGrpc = "application/grpc";
    head_.is_grpc =
        value.starts_with(kGrpc) &&
        (value.size() == kGrpc.size() || value[kGrpc.size()] == '+' || value[kGrpc.size()] == ';');
  } else if (name == "grpc-timeout") {
    const std::optional<Duration> timeout = ParseTimeout(value);
    head_.bad_timeout = !timeout.has_value();
    if (timeout.has_value() && *timeout != Duration::max())
      head_.deadline = Clock::Steady().Now() + *timeout;
  } else if (name == "grpc-encoding") {
    head_.encoding = value;
  } else if (name == "grpc-accept-encoding") {
    head_.accepts = value;
  } else if (name.ends_with("-bin")) {
    if (const std::optional<std::string> bytes = FromBase64(value))
      AddMetadata(name, *bytes, &head_.call);
  } else {
    AddMetadata(name, value, &head_.call);
  }
}

void H2Session::OnHead(bool ends) {
  const int32_t stream = std::exchange(head_.stream, 0);
  if (!guard_.OnHeader(head_.bytes, loop()->now())) {
    EndFor(EndReason::kHeaders, NGHTTP2_ENHANCE_YOUR_CALM, "too_much_metadata");
    return;
  }
  const std::string id = head_.call.request_id;
  if (head_.too_large)
    return RefuseCall(stream, id,
                      NoteRefused(CallRefusal::kHead,
                                  absl::ResourceExhaustedError(absl::StrCat(
                                      "the call has more than ", shared().limits.max_metadata_bytes,
                                      " bytes of metadata"))));
  if (!head_.is_grpc && shared().routes != nullptr && shared().methods.Find(head_.path) == nullptr)
    return OpenPlain(stream, ends);
  if (head_.method != "POST") return AnswerPlainly(stream, "405");
  if (!head_.is_grpc) return AnswerPlainly(stream, "415");
  std::shared_ptr<GrpcCall> call;
  if (const absl::Status status = OpenCall(stream, &call); !status.ok())
    return RefuseCall(stream, id, status);
  guard_.OnWork();
  if (ends) call->OnHalfClose();
}

// For the log and counts, of what does not come as far as to a method.
absl::Status H2Session::NoteRefused(CallRefusal cause, absl::Status status) {
  CallWatch* const watch = shared().methods.watch();
  if (watch != nullptr)
    watch->Refused(
        cause,
        {connection_.who().peer, head_.path, {}, head_.call.request_id, head_.call.traceparent},
        status);
  return status;
}

absl::Status H2Session::OpenCall(int32_t stream, std::shared_ptr<GrpcCall>* opened) {
  GrpcHead asked;
  asked.method = shared().methods.Find(head_.path);
  if (asked.method == nullptr)
    return NoteRefused(CallRefusal::kUnknown, UnknownMethodError(shared().methods, head_.path));
  if (head_.bad_timeout)
    return NoteRefused(CallRefusal::kHead, absl::InvalidArgumentError("grpc-timeout is malformed"));
  asked.packing = PackingOf(head_.encoding);
  if (asked.packing == Packing::kUnknown)
    return NoteRefused(CallRefusal::kHead, absl::UnimplementedError(absl::StrCat(
                                               "grpc-encoding ", Quoted(head_.encoding),
                                               " is not known here; use identity, gzip or "
                                               "deflate")));
  // Who packs requests wants packed replies.
  if (shared().limits.compression && Accepts(head_.accepts, asked.packing))
    asked.reply = asked.packing;
  CallHead& head = head_.call;
  head.path = head_.path;
  SetCaller(shared(), connection_.who(), head_.authorization, &head);
  head.deadline = head_.deadline;
  auto call = std::make_shared<GrpcCall>(this, stream, asked);
  calls_[stream] = call;
  absl::Status status = call->Open(std::move(head));
  if (!status.ok()) {
    calls_.erase(stream);
    call->OnClosed(/*whole=*/false);
    return status;
  }
  *opened = std::move(call);
  return absl::OkStatus();
}

void H2Session::OpenPlain(int32_t stream, bool ends) {
  guard_.OnWork();
  HttpHead asked;
  asked.method = std::move(head_.method);
  const size_t mark = head_.path.find('?');
  asked.path = head_.path.substr(0, mark);
  if (mark != std::string::npos) asked.query = head_.path.substr(mark + 1);
  asked.fields = std::move(head_.fields);
  asked.fields.emplace_back("host", std::move(head_.authority));
  SetCaller(shared(), connection_.who(), head_.authorization, &asked);
  int64_t length = 0;
  if (const std::string* const said = asked.Field("content-length");
      said != nullptr && absl::SimpleAtoi(*said, &length))
    asked.content_length = length;
  else if (ends)
    asked.content_length = 0;
  const auto exchange = std::make_shared<HttpExchange>(this, &shared(), loop(), stream);
  exchanges_[stream] = exchange;
  exchange->Open(std::move(asked));
  if (ends) exchange->OnEnd();
}

void H2Session::Send(HttpExchange* exchange) {
  connection_.WantFlush();
  if (std::exchange(exchange->began_reply, true)) {
    nghttp2_session_resume_data(session_, exchange->stream());
    return;
  }
  const HttpReply& reply = exchange->reply();
  std::vector<std::pair<std::string, std::string>> fields = {
      {":status", absl::StrCat(reply.status)}};
  if (!reply.content_type.empty()) fields.emplace_back("content-type", reply.content_type);
  if (exchange->has_length() && HasBody(reply.status))
    fields.emplace_back("content-length", absl::StrCat(exchange->length()));
  for (const auto& [name, value] : reply.fields)
    fields.emplace_back(absl::AsciiStrToLower(name), value);
  std::vector<nghttp2_nv> list;
  list.reserve(fields.size());
  for (const auto& [name, value] : fields) list.push_back(Field(name, value));
  nghttp2_data_provider body;
  body.source.ptr = exchange;
  body.read_callback = OfferPlain;
  const bool none = exchange->IsEnding() && exchange->Body().empty();
  nghttp2_submit_response(session_, exchange->stream(), list.data(), list.size(),
                          none ? nullptr : &body);
}

void H2Session::RefuseCall(int32_t stream, const std::string& id, const absl::Status& status) {
  Trailers trailers;
  if (!id.empty()) trailers.emplace_back(kRequestIdKey, id);
  const EndFields end(status, trailers);
  std::vector<nghttp2_nv> fields = {FixedField(":status", "200"),
                                    FixedField("content-type", "application/grpc")};
  if (absl::IsUnimplemented(status))
    fields.push_back(FixedField("grpc-accept-encoding", "identity, deflate, gzip"));
  fields.insert(fields.end(), end.fields().begin(), end.fields().end());
  nghttp2_submit_response(session_, stream, fields.data(), fields.size(), nullptr);
}

void H2Session::AnswerPlainly(int32_t stream, const char* code) {
  const nghttp2_nv field = FixedField(":status", code);
  nghttp2_submit_response(session_, stream, &field, 1, nullptr);
}

void H2Session::Send(GrpcCall* call) {
  connection_.WantFlush();
  if (call->began_reply) {
    nghttp2_session_resume_data(session_, call->stream());
    return;
  }
  if (call->Available() == 0) {
    if (!call->IsEnding()) return;
    call->began_reply = true;
    const EndFields end(call->end(), call->trailers());
    std::vector<nghttp2_nv> fields = {FixedField(":status", "200"),
                                      FixedField("content-type", "application/grpc")};
    fields.insert(fields.end(), end.fields().begin(), end.fields().end());
    nghttp2_submit_response(session_, call->stream(), fields.data(), fields.size(), nullptr);
    return;
  }
  call->began_reply = true;
  nghttp2_nv fields[] = {FixedField(":status", "200"),
                         FixedField("content-type", "application/grpc"),
                         FixedField("grpc-accept-encoding", "identity, deflate, gzip"),
                         FixedField("grpc-encoding", NameOf(call->reply_packing()))};
  size_t count = std::size(fields);
  if (call->reply_packing() == Packing::kNone) --count;
  if (!shared().limits.compression) count = 2;
  nghttp2_data_provider reply;
  reply.source.ptr = call;
  reply.read_callback = Offer;
  nghttp2_submit_response(session_, call->stream(), fields, count, &reply);
}

}  // namespace floe::server
