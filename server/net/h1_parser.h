// HTTP/1.0 and 1.1 requests from bytes, and answers as bytes. No sockets, no threads, no time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace floe::server {

using H1Fields = std::vector<std::pair<std::string, std::string>>;

struct H1Limits {
  size_t request_line = 8192;
  size_t head_bytes = 32768;
  size_t fields = 100;
  size_t chunk_line = 256;  // size, extensions
  size_t trailer_bytes = 4096;
  int64_t body_bytes = int64_t{256} << 20;
};

struct H1Head {
  std::string method;  // as sent: "GET"
  std::string path;    // "/v1/models/a%20b", not decoded; "*" of OPTIONS
  std::string query;   // behind '?', not decoded
  std::string host;    // of Host, or of an absolute target; "" in HTTP/1.0 that says none
  int minor = 1;       // HTTP/1.minor
  H1Fields fields;     // in order, names in lower case
  bool keep_alive = true;
  bool expects_continue = false;  // waits for H1Response::Continue before it sends the body
  bool chunked = false;
  std::optional<int64_t> content_length;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  const std::string* Find(std::string_view name) const;  // the first one; null: none
};

// Reads one request after another. Stricter than the standard wherever readers are known to
// disagree, because a proxy in front may be one of them: nothing that two of them could end at
// different bytes is accepted. That is both Content-Length and Transfer-Encoding, more than one of
// either, codings other than "chunked", folded lines, bare CR or LF, control characters, spaces
// before a colon or in chunk sizes, and more than one Host.
// Threading: one thread at a time.
class H1Parser {
 public:
  enum class Event : uint8_t {
    kMore,  // all was taken; give more bytes
    kHead,  // head() is complete; the body follows
    kBody,  // `body` has a part of it, within the given bytes
    kEnd,   // the request is over: answer it, then call Reset for the next one
    kError  // error() says what to answer; nothing more is read of this connection
  };
  struct Step {
    Event event = Event::kMore;
    size_t taken = 0;  // of the given bytes; give the others to the next call
    std::string_view body = {};
  };
  struct Error {
    int status = 400;    // of HTTP
    std::string reason;  // for the answer and the log
  };

  explicit H1Parser(const H1Limits& limits = {}) : limits_(limits) {}

  // The next event. Nothing is read ahead: at most head_bytes are kept, and no body. Requests that
  // a client sends before the answer wait where the bytes are, unless the caller reads on.
  Step Next(std::string_view bytes);
  void Reset();
  // After kHead: a smaller bound of this request's body.
  void LimitBody(int64_t bytes);

  const H1Head& head() const { return head_; }
  const Error& error() const { return error_; }
  // No byte of a request has come since the start or Reset: the connection is idle.
  bool is_idle() const { return state_ == State::kHead && buffer_.empty(); }

 private:
  enum class State : uint8_t {
    kHead,
    kFixed,
    kChunkLine,
    kChunk,
    kChunkEnd,
    kTrailers,
    kEnd,
    kError
  };

  Step Fail(int status, std::string reason);
  std::optional<Step> TakeHead(std::string_view bytes, size_t* taken);
  // Whether the line, which is not the last of the head, may be longer by this byte; what is wrong.
  const char* WrongByte(char c);
  std::optional<Step> ReadHead();
  std::optional<Step> TakeChunkLine(std::string_view bytes, size_t* taken);
  std::optional<Step> BeginChunk();
  std::optional<Step> TakeTrailer(std::string_view bytes, size_t* taken);
  // A line up to CRLF into buffer_. False: it has not ended yet, or *wrong is set.
  bool TakeLine(std::string_view bytes, size_t most, size_t* taken, const char** wrong);

  const H1Limits limits_;
  State state_ = State::kHead;
  H1Head head_;
  Error error_;
  std::string buffer_;  // the head so far, or the line so far
  size_t line_bytes_ = 0, lines_ = 0;
  bool skipped_blank_ = false;
  int64_t body_limit_ = limits_.body_bytes;
  int64_t left_ = 0;        // of the body or chunk
  int64_t body_bytes_ = 0;  // of the chunks so far
  int64_t chunks_ = 0;
  size_t trailer_bytes_ = 0;
};

// Writes the answer to one request.
class H1Response {
 public:
  explicit H1Response(const H1Head& request);

  // "HTTP/1.1 100 Continue", for who expects it.
  static std::string Continue() { return "HTTP/1.1 100 Continue\r\n\r\n"; }
  // The whole answer to what was no request.
  static std::string Refusal(const H1Parser::Error& error);

  // Status line and fields. `length`: bytes of the body; unset: not known, then it is chunked, or
  // ends with the connection in HTTP/1.0. INVALID_ARGUMENT for names that are no tokens, values
  // with control characters, and what this class says itself: Content-Length, Transfer-Encoding and
  // Connection. `date`: seconds since 1970; 0: no Date.
  absl::StatusOr<std::string> Head(int status, const H1Fields& fields,
                                   std::optional<int64_t> length, int64_t date = 0);
  // Before Head: the server ends the connection after this answer.
  void Leave() { keeps_ = false; }
  // After Head: adds a part of the body as it is to be sent. Empty parts, those to HEAD and those
  // with a 204 send nothing.
  void AppendPart(std::string_view bytes, std::string* out) const;
  std::string End() const;
  // After Head: whether the connection goes on.
  bool keeps_connection() const { return keeps_; }

 private:
  const bool is_head_request_;
  const bool old_;  // HTTP/1.0
  bool keeps_;
  bool sends_body_ = false, chunked_ = false;
};

// "Not Found"; "Status" for numbers without a name.
std::string_view HttpReason(int status);

}  // namespace floe::server
