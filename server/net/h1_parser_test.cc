#include "server/net/h1_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Event = H1Parser::Event;

// What a reader of `bytes` sees, given in pieces of this size: "GET /a [body] GET /b []", then the
// error's status, or "more" where a request is not complete.
std::string Read(const std::string& bytes, size_t piece = std::string::npos,
                 const H1Limits& limits = {}) {
  H1Parser parser(limits);
  std::string seen;
  size_t at = 0;
  while (true) {
    const std::string_view rest = std::string_view(bytes).substr(at, piece);
    const H1Parser::Step step = parser.Next(rest);
    EXPECT_LE(step.taken, rest.size());
    at += step.taken;
    switch (step.event) {
      case Event::kMore:
        EXPECT_EQ(step.taken, rest.size());
        if (at == bytes.size()) return seen + (parser.is_idle() ? "" : "more");
        break;
      case Event::kHead:
        absl::StrAppend(&seen, parser.head().method, " ", parser.head().path, " [");
        break;
      case Event::kBody:
        EXPECT_FALSE(step.body.empty());
        seen += step.body;
        break;
      case Event::kEnd:
        seen += "] ";
        parser.Reset();
        break;
      case Event::kError:
        EXPECT_FALSE(parser.error().reason.empty());
        return absl::StrCat(seen, parser.error().status);
    }
  }
}

std::string Get(const std::string& lines) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + absl::StrReplaceAll(lines, {{"|", "\r\n"}}) + "\r\n";
}
std::string Post(const std::string& lines, const std::string& body) {
  return "POST /p HTTP/1.1\r\nHost: a\r\n" + absl::StrReplaceAll(lines, {{"|", "\r\n"}}) + "\r\n" +
         body;
}

H1Head HeadOf(const std::string& bytes) {
  H1Parser parser;
  EXPECT_EQ(parser.Next(bytes).event, Event::kHead) << bytes << parser.error().reason;
  return parser.head();
}

TEST(H1Parser, ReadsRequestsInPiecesOfAnySize) {
  const std::string bytes = Get("") + Post("Content-Length: 5|", "hello") + "\r\n" +
                            Post("Transfer-Encoding: chunked|",
                                 "3\r\nabc\r\n00A;x=\"y z\"\r\n0123456789\r\n0\r\nT: x\r\n\r\n") +
                            Get("") + "HEAD /x?a=b HTTP/1.0\r\n\r\n";
  for (const size_t piece : {1, 2, 3, 7, 1000})
    EXPECT_EQ(Read(bytes, piece),
              "GET / [] POST /p [hello] POST /p [abc0123456789] GET / [] HEAD /x [] ")
        << piece;
}

TEST(H1Parser, TheHeadSaysWhatTheRequestIs) {
  const H1Head head = HeadOf(
      "POST /v1/a%20b:predict?x=1&y HTTP/1.1\r\nHost: h:1\r\nX-One:  two \r\nx-one: three\r\n"
      "Content-Length: 3\r\nExpect: 100-continue\r\nConnection: foo, close\r\n\r\n");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/a%20b:predict");
  EXPECT_EQ(head.query, "x=1&y");
  EXPECT_EQ(head.host, "h:1");
  EXPECT_EQ(*head.Find("x-one"), "two");
  EXPECT_EQ(head.fields.size(), 6u);
  EXPECT_EQ(head.content_length, 3);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_FALSE(head.keep_alive);
}

TEST(H1Parser, ConnectionsStayAsTheVersionsSay) {
  const auto stays = [](const char* minor, const std::string& lines) {
    return HeadOf(absl::StrCat("GET / HTTP/1.", minor, "\r\nHost: a\r\n", lines, "\r\n"))
        .keep_alive;
  };
  EXPECT_TRUE(stays("1", ""));
  EXPECT_FALSE(stays("1", "Connection: Close\r\n"));
  EXPECT_TRUE(stays("1", "Connection: closer\r\n"));
  EXPECT_FALSE(stays("0", ""));
  EXPECT_TRUE(stays("0", "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(stays("0", "Connection: keep-alive\r\nConnection: close\r\n"));
  EXPECT_FALSE(HeadOf(Get("Expect: 100-continue|")).expects_continue) << "there is no body";
}

TEST(H1Parser, TargetsArePathsOfTheHostThatIsNamed) {
  EXPECT_EQ(HeadOf("GET http://A/b?c HTTP/1.1\r\nHost: a\r\n\r\n").path, "/b");
  EXPECT_EQ(HeadOf("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n").path, "/");
  EXPECT_EQ(HeadOf("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").path, "*");
  for (const char* line :
       {"GET http://b/ HTTP/1.1", "GET http:///x HTTP/1.1", "GET * HTTP/1.1", "GET a HTTP/1.1",
        "GET a:1 HTTP/1.1", "GET ftp://a/ HTTP/1.1", "GET /#a HTTP/1.1", "GET /\x80 HTTP/1.1",
        "GET  / HTTP/1.1", "GET /", "G(T / HTTP/1.1", "GET /\tHTTP/1.1"})
    EXPECT_THAT(Read(absl::StrCat(line, "\r\nHost: a\r\n\r\n")), StartsWith("40")) << line;
  EXPECT_EQ(Read("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), "501");
  for (const char* version : {"2.0", "1.2", "0.9", "1.1 ", "1.10"})
    EXPECT_EQ(Read(absl::StrCat("GET / HTTP/", version, "\r\nHost: a\r\n\r\n")), "505") << version;
  for (const char* hosts : {"", "Host: a\r\nHost: a\r\n", "Host: a b\r\n", "Host: a/b\r\n"})
    EXPECT_EQ(Read(absl::StrCat("GET / HTTP/1.1\r\n", hosts, "\r\n")), "400") << hosts;
}

// Each is a request that some reader ends elsewhere than another.
TEST(H1Parser, NothingIsAcceptedThatTwoReadersEndDifferently) {
  for (const char* lines : {
           "Content-Length: 5|Transfer-Encoding: chunked|",
           "Transfer-Encoding: chunked|Content-Length: 5|",
           "Content-Length: 5|Content-Length: 5|",
           "Content-Length: 5|Content-Length: 6|",
           "Content-Length: 5, 5|",
           "Content-Length: +5|",
           "Content-Length: -5|",
           "Content-Length: 0x5|",
           "Content-Length: 5 5|",
           "Content-Length: 99999999999999999999|",
           "Content-Length: |",
           "Content-Length : 5|",
           "Content-Length\t: 5|",
           "Transfer-Encoding: chunked|Transfer-Encoding: chunked|",
           "Transfer-Encoding: chunked|Transfer-Encoding: identity|",
           "X: a| folded|",
           "X: a|\tfolded|",
           " X: a|",
           "Transfer-Encoding:| chunked|",
           ": a|",
           "X|",
           "X y: a|",
       })
    EXPECT_EQ(Read(Post(lines, "5\r\nhello\r\n0\r\n\r\n")), "400") << lines;
  for (const char* coding : {"xchunked", "gzip, chunked", "chunked, gzip", "gzip", "identity",
                             "chunked;x", "\"chunked\"", "chunked, chunked", "chunked,"})
    EXPECT_EQ(Read(Post(absl::StrCat("Transfer-Encoding: ", coding, "|"), "")), "501") << coding;
  EXPECT_EQ(Read("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "400");
  for (const std::string& bad :
       {std::string("X: a\nY: b\r\n"), std::string("X: a\rY: b\r\n"), std::string("X: a\0b\r\n", 8),
        std::string("X: a\x01\r\n"), std::string("X: a\x7f\r\n"), std::string("X\0: a\r\n", 7)})
    EXPECT_EQ(Read("GET / HTTP/1.1\r\nHost: a\r\n" + bad + "\r\n"), "400") << bad;
  EXPECT_EQ(Read("GET / HTTP/1.1\n"), "400") << "at once: a bare LF is not waited for";
  EXPECT_EQ(Read("\r\n\r\nGET /"), "400");
  EXPECT_EQ(Read(Post("Expect: 200-ok|Content-Length: 1|", "a")), "417");
}

TEST(H1Parser, ChunksAreOfOneForm) {
  const auto read = [](const std::string& body, size_t piece = 1) {
    return Read(Post("Transfer-Encoding: Chunked|", body), piece);
  };
  EXPECT_EQ(read("0\r\n\r\n"), "POST /p [] ");
  EXPECT_EQ(read("000000005\r\nhello\r\n0;a=b\r\nA: b\r\n\r\n"), "POST /p [hello] ");
  for (const char* body :
       {"0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n", "\r\n", "g\r\n", "5\nhello\r\n", "5;a\nb\r\nhello\r\n",
        "5\rhello", "-1\r\n", "fffffffffffffffff\r\n", "5\r\nhelloo\r\n", "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n", "0\r\nA\r\n\r\n", "0\r\n a: b\r\n\r\n", "0\r\na b: c\r\n\r\n",
        "0\n\n"})
    for (const size_t piece : {size_t{1}, std::string::npos})
      EXPECT_THAT(read(body, piece), EndsWith("400")) << body;
  EXPECT_THAT(read("7fffffff\r\n"), EndsWith("413"));
  EXPECT_THAT(read("fffffffffffffff\r\n"), EndsWith("413"));
}

TEST(H1Parser, EverythingHasABound) {
  EXPECT_EQ(Read("GET /" + std::string(9000, 'a')), "414");
  std::string fields;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&fields, "A: b|");
  EXPECT_EQ(Read(Get(fields)), "431") << "101 fields";
  EXPECT_EQ(Read(Get("A: " + std::string(40000, 'a') + "|")), "431");
  EXPECT_EQ(Read(Post("Content-Length: 11|", ""), 100, {.body_bytes = 10}), "413");
  const std::string chunked = "Transfer-Encoding: chunked|";
  EXPECT_THAT(Read(Post(chunked, "6\r\nabcdef\r\n6\r\nabcdef\r\n"), 100, {.body_bytes = 10}),
              EndsWith("413"));
  EXPECT_THAT(Read(Post(chunked, "5;" + std::string(300, 'a'))), EndsWith("400"));
  EXPECT_THAT(Read(Post(chunked, "0\r\nA: " + std::string(5000, 'a'))), EndsWith("400"));
  std::string trailers;
  for (int i = 0; i < 1000; ++i) trailers += "A: bcdef\r\n";
  EXPECT_THAT(Read(Post(chunked, "0\r\n" + trailers)), EndsWith("431"));
  std::string tiny, small;
  for (int i = 0; i < 5000; ++i) tiny += "1\r\na\r\n";
  for (int i = 0; i < 5000; ++i) small += "40\r\n" + std::string(64, 'a') + "\r\n";
  EXPECT_THAT(Read(Post(chunked, tiny)), EndsWith("400"));
  EXPECT_THAT(Read(Post(chunked, small + "0\r\n\r\n")), EndsWith("] "));
}

TEST(H1Parser, ARouteMayBoundItsBodies) {
  for (const char* lines : {"Content-Length: 5|", "Transfer-Encoding: chunked|"}) {
    H1Parser parser;
    const std::string bytes = Post(lines, "5\r\nhello\r\n0\r\n\r\n");
    const H1Parser::Step head = parser.Next(bytes);
    ASSERT_EQ(head.event, Event::kHead);
    parser.LimitBody(4);
    EXPECT_EQ(parser.Next(std::string_view(bytes).substr(head.taken)).event, Event::kError);
    EXPECT_EQ(parser.error().status, 413);
    parser.Reset();
    EXPECT_EQ(parser.Next(Get("")).event, Event::kError)
        << "where the next one begins is not known";
  }
}

TEST(H1Parser, TheNextRequestIsNotReadBeforeReset) {
  H1Parser parser;
  EXPECT_TRUE(parser.is_idle());
  const std::string two = Get("") + Get("");
  const H1Parser::Step head = parser.Next(two);
  EXPECT_FALSE(parser.is_idle());
  EXPECT_EQ(head.taken, Get("").size());
  for (int i = 0; i < 2; ++i) {
    const H1Parser::Step end = parser.Next(std::string_view(two).substr(head.taken));
    EXPECT_EQ(end.event, Event::kEnd);
    EXPECT_EQ(end.taken, 0u);
  }
  parser.Reset();
  EXPECT_TRUE(parser.is_idle());
}

std::string Answer(const std::string& request, std::optional<int64_t> length, bool* keeps,
                   int status = 200) {
  H1Response response(HeadOf(request));
  auto head = response.Head(status, {{"Content-Type", "text/plain"}}, length);
  EXPECT_TRUE(head.ok()) << head.status();
  *keeps = response.keeps_connection();
  for (const std::string& part : {std::string("ab"), std::string(), std::string(20, 'c')})
    response.AppendPart(part, &*head);
  return *head + response.End();
}

TEST(H1Response, BodiesAreFramedAsTheRequestAllows) {
  bool keeps = false;
  const std::string c(20, 'c');
  EXPECT_EQ(Answer(Get(""), 22, &keeps),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 22\r\n\r\nab" + c);
  EXPECT_TRUE(keeps);
  EXPECT_EQ(Answer(Get(""), std::nullopt, &keeps),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
            "2\r\nab\r\n14\r\n" +
                c + "\r\n0\r\n\r\n");
  EXPECT_TRUE(keeps);
  const std::string old = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_THAT(Answer(old, std::nullopt, &keeps),
              AllOf(HasSubstr("Connection: close\r\n\r\nab" + c), Not(HasSubstr("chunked"))));
  EXPECT_FALSE(keeps);
  EXPECT_THAT(Answer(old, 22, &keeps), HasSubstr("Connection: keep-alive\r\n"));
  EXPECT_TRUE(keeps);
  EXPECT_THAT(Answer(Get("Connection: close|"), 22, &keeps), HasSubstr("Connection: close\r\n"));
  EXPECT_FALSE(keeps);
  const std::string head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_THAT(Answer(head, 22, &keeps), EndsWith("Content-Length: 22\r\n\r\n"));
  EXPECT_THAT(Answer(head, std::nullopt, &keeps), EndsWith("Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_TRUE(keeps);
  EXPECT_THAT(Answer(Get(""), 0, &keeps, 204), EndsWith("text/plain\r\n\r\n"));
}

TEST(H1Response, NoFieldCanAddAnother) {
  H1Response response(HeadOf(Get("")));
  for (const auto& [name, value] : H1Fields{{"X", "a\r\nY: b"},
                                            {"X", "a\nb"},
                                            {"X", std::string("a\0b", 3)},
                                            {"X: y", "a"},
                                            {"X\r\nY", "a"},
                                            {"", "a"},
                                            {"content-Length", "3"},
                                            {"Transfer-Encoding", "chunked"},
                                            {"Connection", "close"}})
    EXPECT_FALSE(response.Head(200, {{name, value}}, 0).ok()) << name << value;
  EXPECT_THAT(*response.Head(418, {}, 0, 784111777),
              AllOf(StartsWith("HTTP/1.1 418 Status\r\n"),
                    HasSubstr("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n")));
  EXPECT_EQ(H1Response::Refusal({431, "too much"}),
            "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; "
            "charset=utf-8\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo much\n");
}

}  // namespace
}  // namespace floe::server
