// Any bytes as what a client of HTTP/1 sends: the same requests are read in whatever pieces they
// come, and a request that was accepted is, written again in one usual form, the same one.
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/net/h1_parser.h"
#include "tests/fuzz/fuzzer.h"

namespace floe::fuzz {
namespace {

using server::H1Head;
using server::H1Limits;
using server::H1Parser;

constexpr H1Limits kLimits = {.request_line = 256,
                              .head_bytes = 2048,
                              .fields = 6,
                              .chunk_line = 32,
                              .trailer_bytes = 128,
                              .body_bytes = 4096};

struct Request {
  H1Head head;
  std::string body;
  bool complete = false;
};

struct Session {
  std::vector<Request> requests;
  int error = 0;
};

void Take(const H1Parser& parser, const H1Parser::Step& step, Session* session) {
  if (step.event == H1Parser::Event::kHead) session->requests.push_back({parser.head(), "", false});
  if (step.event == H1Parser::Event::kBody) session->requests.back().body += step.body;
  if (step.event == H1Parser::Event::kEnd) session->requests.back().complete = true;
  if (step.event == H1Parser::Event::kError) session->error = parser.error().status;
}

// `piece`: bytes of one call; 0: all there are.
Session ReadSession(std::string_view bytes, size_t piece, const H1Limits& limits = kLimits) {
  H1Parser parser(limits);
  Session session;
  for (size_t at = 0;;) {
    const std::string_view given = bytes.substr(at, piece == 0 ? bytes.size() : piece);
    const H1Parser::Step step = parser.Next(given);
    if (step.taken > given.size()) Fail("more was taken than given");
    at += step.taken;
    Take(parser, step, &session);
    if (step.event == H1Parser::Event::kError) return session;
    if (step.event == H1Parser::Event::kEnd) parser.Reset();
    if (step.event == H1Parser::Event::kMore && step.taken != given.size())
      Fail("bytes were left though more are asked for");
    if (step.event == H1Parser::Event::kMore && at == bytes.size()) return session;
    if (session.requests.size() > bytes.size()) Fail("requests come from nothing");
  }
}

std::string Describe(const Request& request) {
  const H1Head& head = request.head;
  std::string text = absl::StrCat(head.method, " ", head.path, " ", head.query, " ", head.host, " ",
                                  head.minor, head.keep_alive, head.expects_continue,
                                  request.complete, " ", request.body, "\n");
  for (const auto& [name, value] : head.fields)
    if (name != "content-length" && name != "transfer-encoding" && name != "host")
      absl::StrAppend(&text, name, ": ", value, "\n");
  return text;
}

std::string Describe(const Session& session) {
  std::string text = absl::StrCat(session.error, "\n");
  for (const Request& request : session.requests) text += Describe(request);
  return text;
}

std::string Usual(const Request& request) {
  const H1Head& head = request.head;
  std::string text = absl::StrCat(head.method, " ", head.path);
  if (!head.query.empty()) absl::StrAppend(&text, "?", head.query);
  absl::StrAppend(&text, " HTTP/1.", head.minor, "\r\nhost: ", head.host, "\r\n");
  for (const auto& [name, value] : head.fields)
    if (name != "content-length" && name != "transfer-encoding" && name != "host")
      absl::StrAppend(&text, name, ": ", value, "\r\n");
  return absl::StrCat(text, "content-length: ", request.body.size(), "\r\n\r\n", request.body);
}

void CheckRequest(const Request& request) {
  if (request.body.size() > static_cast<size_t>(kLimits.body_bytes)) Fail("a body is too long");
  if (request.head.fields.size() > kLimits.fields) Fail("there are too many fields");
  if (request.head.path != "*" && request.head.path.rfind('/', 0) != 0) Fail("a path is none");
  // With nothing to say whether a body was to come, waiting for it cannot be told.
  if (!request.complete || (request.head.has_body() && request.body.empty())) return;
  const Session again = ReadSession(Usual(request), 0, {});
  if (again.requests.size() != 1) Fail("a request in its usual form is none");
  if (Describe(again.requests[0]) != Describe(request)) Fail("a request is not what it was");
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) {
  const Session session = ReadSession(bytes, 0);
  const std::string whole = Describe(session);
  for (const size_t piece : {1, 3, 17})
    if (Describe(ReadSession(bytes, piece)) != whole) Fail("pieces are read otherwise");
  for (const Request& request : session.requests) CheckRequest(request);
  return session.error == 0 ? absl::OkStatus()
                            : absl::InvalidArgumentError(absl::StrCat(session.error));
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  static constexpr std::string_view kParts[] = {"\r\n",
                                                "\n",
                                                "\r",
                                                "\r\n\r\n",
                                                "0\r\n\r\n",
                                                "Transfer-Encoding: chunked\r\n",
                                                "Content-Length: 5\r\n",
                                                "Content-Length:",
                                                "Connection: close\r\n",
                                                "Expect: 100-continue\r\n",
                                                "Host: a\r\n",
                                                "GET / HTTP/1.1\r\nHost: a\r\n",
                                                " ",
                                                "\t",
                                                ":",
                                                ",",
                                                ";",
                                                "5\r\nhello\r\n",
                                                "http://a"};
  if (random.OneIn(3)) return MutateBytes(bytes, max_size);
  return PutInto(bytes, random.Pick(kParts), random);
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return random.OneIn(2) ? one + other : SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
