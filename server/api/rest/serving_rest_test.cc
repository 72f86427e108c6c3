// The routes of TensorFlow Serving's REST API, from a request's head and body to the reply.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <optional>

#include "base/mutex.h"
#include "base/retry_after.h"
#include "server/api/rest/rest.h"
#include "server/api/rest/rest_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

class KeptReply : public HttpResponder {
 public:
  void Send(HttpReply&& reply) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(reply_.has_value()) << "a second answer";
    reply_ = std::move(reply);
    changed_.NotifyAll();
  }
  void Begin(HttpReply&&) override { ADD_FAILURE(); }
  void Write(std::string&&) override { ADD_FAILURE(); }
  void End() override { ADD_FAILURE(); }
  HttpReply Await() {
    MutexLock lock(mutex_);
    while (!reply_.has_value()) changed_.Wait(mutex_);
    return *reply_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<HttpReply> reply_ ABSL_GUARDED_BY(mutex_);
};

std::string Zlib(const std::string& text, int window_bits) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

constexpr int kGzipBits = 16 + MAX_WBITS, kZlibBits = MAX_WBITS;

class ServingRest : public testing::Test {
 protected:
  ServingRest() {
    // Answers x as y.
    served_ = JsonModel(JsonNode("x", "DT_FLOAT", {-1}));
    served_->on_submit = [this](const Request& request) {
      submitted_.push_back(request);
      std::vector<TensorView> outputs = {request.asked->Input(0)};
      AnswerWith(request, answer_, outputs);
    };
    registry_.models["m"] = served_;
    registry_.statuses["m"] = {{1, VersionState::kAvailable, absl::OkStatus()},
                               {2, VersionState::kEnd, absl::NotFoundError("no \"file\"")}};
    registry_.labels["stable"] = 1;
    registry_.labels["next"] = 9;
    options_.max_body_bytes = 50 << 20;
    AddServingRoutes(ApiContext{registry_, health_}, options_, &routes_);
  }

  HttpReply Ask(const std::string& method, const std::string& path, const std::string& body = "",
                const HttpFields& fields = {}) {
    HttpHead head;
    head.method = method;
    head.path = path;
    head.fields = fields;
    head.local = true;
    head.content_length = static_cast<int64_t>(body.size());
    const auto responder = std::make_shared<KeptReply>();
    int64_t most = -1;
    const auto handler = routes_.Open(head, responder, &most);
    if (handler != nullptr) {
      const size_t half = body.size() / 2;
      handler->OnBody(std::string_view(body).substr(0, half));
      handler->OnBody(std::string_view(body).substr(half));
      handler->OnEnd();
      const HttpReply reply = responder->Await();
      handler->OnDone();
      return reply;
    }
    return responder->Await();
  }

  HealthState health_;
  FakeRegistry registry_;
  std::shared_ptr<FakeServed> served_;
  RestOptions options_;
  absl::Status answer_;
  std::vector<Request> submitted_;
  HttpRoutes routes_;
};

TEST_F(ServingRest, Predicts) {
  for (const char* path : {"/v1/models/m:predict", "/v1/models/m/versions/1:predict",
                           "/v1/models/m/labels/stable:predict"}) {
    const HttpReply reply = Ask("POST", path, R"({"instances": [1.0, 2.5]})");
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(reply.body, "{\"predictions\":[1.0,2.5]}\n") << path;
    EXPECT_EQ(reply.content_type, "application/json");
  }
  EXPECT_EQ(Ask("POST", "/v1/models/m:predict", R"({"inputs": [1.0, 2.5]})").body,
            "{\"outputs\":[1.0,2.5]}\n");
}

TEST_F(ServingRest, Regresses) {
  served_ = JsonModel(
      "node { name: 'inputs' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } "
      "attr { key: 'shape' value { shape { dim { size: -1 } } } } } "
      "node { name: 'outputs' op: 'StringToNumber' input: 'inputs' "
      "attr { key: 'out_type' value { type: DT_FLOAT } } }");
  std::vector<Door> doors;
  served_->on_submit = [&](const Request& request) {
    doors.push_back(request.asked->door);
    float values[] = {1.5f, -2};
    std::vector<TensorView> outputs = {{DType::kFloat32, Shape({2, 1}), values}};
    AnswerWith(request, answer_, outputs);
  };
  registry_.models["m"] = served_;
  const std::string body = R"({"examples": [{"x": 1.0}, {"x": [2.5]}]})";
  for (const char* path : {"/v1/models/m:regress", "/v1/models/m/versions/1:regress"})
    EXPECT_EQ(Ask("POST", path, body).body, "{\"results\":[1.5,-2.0]}\n") << path;
  EXPECT_EQ(
      Ask("POST", "/v1/models/m:regress", Zlib(body, kGzipBits), {{"content-encoding", "gzip"}})
          .body,
      "{\"results\":[1.5,-2.0]}\n");
  EXPECT_EQ(doors, std::vector(3, Door::kHttpRegress));
  EXPECT_THAT(Ask("POST", "/v1/models/m:classify", body).body,
              HasSubstr("Expected classification signature outputs"));
}

TEST_F(ServingRest, HeadsSayWhatMetadataSays) {
  Ask("POST", "/v1/models/m:predict", R"({"instances": [1]})", {{"floe-priority", "1"}});
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].priority, 1);
  const TimePoint now = Clock::Steady().Now();
  EXPECT_GT(submitted_[0].deadline, now);
  EXPECT_LE(submitted_[0].deadline, now + options_.timeout);
  const HttpReply reply = Ask("POST", "/v1/models/m:predict", "", {{"x-request-id", "r-7"}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("[request 'r-7']"));
  EXPECT_THAT(reply.fields, Contains(Pair("x-request-id", "r-7")));
}

TEST_F(ServingRest, ErrorsHaveTensorFlowServingsFormAndStatuses) {
  const struct {
    absl::Status answer;
    int status;
  } kCases[] = {{absl::InvalidArgumentError("a \"b\""), 400},
                {absl::FailedPreconditionError("a"), 400},
                {absl::OutOfRangeError("a"), 400},
                {absl::NotFoundError("a"), 404},
                {absl::ResourceExhaustedError("a"), 429},
                {AsTooLarge(absl::ResourceExhaustedError("a")), 413},
                {absl::CancelledError("a"), 499},
                {absl::InternalError("a"), 500},
                {absl::UnimplementedError("a"), 501},
                {absl::UnavailableError("a"), 503},
                {absl::DeadlineExceededError("a"), 504}};
  for (const auto& c : kCases) {
    answer_ = c.answer;
    const HttpReply reply = Ask("POST", "/v1/models/m:predict", R"({"instances": [1]})");
    EXPECT_EQ(reply.status, c.status) << c.answer;
    EXPECT_THAT(reply.body, AllOf(StartsWith(R"({"error":"a)"), HasSubstr("[request '")));
    EXPECT_EQ(reply.content_type, "application/json");
    const bool again = c.status == 429 || c.status == 503;
    EXPECT_EQ(std::count_if(reply.fields.begin(), reply.fields.end(),
                            [](const auto& f) { return f.first == "Retry-After"; }),
              again ? 1 : 0)
        << c.answer;
  }
  answer_ = WithRetryAfter(absl::UnavailableError("full"), std::chrono::milliseconds(2100));
  EXPECT_THAT(Ask("POST", "/v1/models/m:predict", R"({"instances": [1]})").fields,
              Contains(Pair("Retry-After", "3")));
}

TEST_F(ServingRest, WhatIsNotThereIsSaidInJson) {
  const struct {
    const char *method, *path, *body;
    int status;
    const char* says;
  } kCases[] = {
      {"POST", "/v1/models/other:predict", "{}", 404, "no model 'other'"},
      {"POST", "/v1/models/m/versions/9:predict", "{}", 404, "no version 9"},
      {"POST", "/v1/models/m/labels/none:predict", "{}", 400, "no label 'none'"},
      {"POST", "/v1/models/m/versions/x:predict", "{}", 400, "the path's version 'x' is no whole"},
      {"POST", "/v1/models/m/versions/-1:predict", "{}", 400, "is no whole number"},
      {"POST", "/v1/models/m:predict", "", 400, "the body is empty"},
      {"POST", "/v1/models/m:predict", "{}", 400, "neither 'instances'"},
      {"GET", "/v1/models/other", "", 404, "no model 'other'"},
      {"GET", "/v1/models/m/versions/x", "", 400, "is no whole number"},
      {"POST", "/v1/models/m:classify", "{}", 400, "the body has no 'examples'"},
      {"POST", "/v1/models/m/versions/1:regress", R"({"examples": [{}]})", 400,
       "takes float32, and tensorflow/serving/regress gives it serialized tf.Examples"},
      {"POST", "/v1/models/m:regress", "", 400, "the body is empty"},
      {"POST", "/v1/models/other:regress", "{}", 404, "no model 'other'"},
      {"POST", "/v1/models/m", "", 405, "takes GET, HEAD, OPTIONS, not 'POST'"},
      {"PUT", "/v1/models/m:predict", "", 405, "POST"},
      {"GET", "/v1/other", "", 404, "there is nothing at"},
  };
  for (const auto& c : kCases) {
    const HttpReply reply = Ask(c.method, c.path, c.body);
    EXPECT_EQ(reply.status, c.status) << c.path << reply.body;
    EXPECT_THAT(reply.body, AllOf(StartsWith(R"({"error":")"), HasSubstr(c.says))) << c.path;
  }
  EXPECT_TRUE(submitted_.empty());
}

TEST_F(ServingRest, PackedBodies) {
  const std::string body = R"({"instances": [1.0, 2.5]})";
  for (const char* encoding : {"gzip", "GZIP", "x-gzip", "deflate", "identity"}) {
    const std::string sent = *encoding == 'i'   ? body
                             : *encoding == 'd' ? Zlib(body, kZlibBits)
                                                : Zlib(body, kGzipBits);
    const HttpReply reply =
        Ask("POST", "/v1/models/m:predict", sent, {{"content-encoding", encoding}});
    EXPECT_EQ(reply.body, "{\"predictions\":[1.0,2.5]}\n") << encoding;
  }
  const HttpReply other = Ask("POST", "/v1/models/m:predict", body, {{"content-encoding", "br"}});
  EXPECT_EQ(other.status, 501);
  EXPECT_THAT(other.body, HasSubstr("Content-Encoding 'br'"));
}

TEST_F(ServingRest, UnpackingIsBounded) {
  const std::string zeros = Zlib(std::string(100 << 20, ' '), kGzipBits);
  EXPECT_LT(zeros.size(), 120'000u);
  const auto bomb = UnpackBody(zeros, 50 << 20, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(bomb.status()));
  EXPECT_THAT(std::string(bomb.status().message()), HasSubstr("unpacks to more than"));
  const std::string small = Zlib(std::string(3 << 20, '0'), kGzipBits);
  EXPECT_TRUE(UnpackBody(small, 50 << 20, 0).ok()) << "the bound on the ratio is for large ones";
  EXPECT_FALSE(UnpackBody(small, 1 << 20, 0).ok());
  const auto padded = UnpackBody(Zlib("ab", kGzipBits), 100, 3);
  ASSERT_TRUE(padded.ok());
  EXPECT_EQ(*padded, std::string("ab\0\0\0", 5));
  EXPECT_TRUE(absl::IsInvalidArgument(UnpackBody("no gzip", 100, 0).status()));
}

TEST_F(ServingRest, LargeBodiesAreRefusedByTheirHead) {
  HttpHead head;
  head.method = "POST";
  head.path = "/v1/models/m:predict";
  head.local = true;
  head.content_length = options_.max_body_bytes + 1;
  const auto responder = std::make_shared<KeptReply>();
  int64_t most = 0;
  EXPECT_EQ(routes_.Open(head, responder, &most), nullptr);
  EXPECT_EQ(responder->Await().status, 413);
  EXPECT_THAT(responder->Await().body, StartsWith(R"({"error":"the body has 52428801 bytes)"));
}

TEST_F(ServingRest, StatusOfVersions) {
  const std::string all = Ask("GET", "/v1/models/m").body;
  EXPECT_THAT(all, AllOf(HasSubstr(R"("model_version_status": [)"), HasSubstr(R"("version": "1")"),
                         HasSubstr(R"("state": "AVAILABLE")"), HasSubstr(R"("error_code": "OK")"),
                         HasSubstr(R"("state": "END")"), HasSubstr(R"("error_code": "NOT_FOUND")"),
                         HasSubstr(R"("error_message": "no \"file\"")")));
  EXPECT_EQ(Ask("GET", "/v1/models/m/versions/1").body,
            Ask("GET", "/v1/models/m/labels/stable").body);
  EXPECT_THAT(Ask("GET", "/v1/models/m/versions/2").body, testing::Not(HasSubstr("AVAILABLE")));
}

TEST_F(ServingRest, Metadata) {
  const HttpReply reply = Ask("GET", "/v1/models/m/metadata");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body,
              AllOf(HasSubstr(R"("model_spec": {)"), HasSubstr(R"("name": "m")"),
                    HasSubstr(R"("serving_default": {)"), HasSubstr(R"("dtype": "DT_FLOAT")"),
                    HasSubstr(R"("size": "-1")"), HasSubstr("tensorflow/serving/predict")));
}

TEST_F(ServingRest, ListsModels) {
  registry_.config.models.resize(2);
  registry_.config.models[0].name = "a\"b";
  registry_.config.models[1].name = "m";
  const HttpReply reply = Ask("GET", "/v1/models");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, AllOf(HasSubstr(R"({"name": "a\"b","model_version_status": []},)"),
                                HasSubstr("{\"name\": \"m\",\n \"model_version_status\": [")));
}

}  // namespace
}  // namespace floe::server
