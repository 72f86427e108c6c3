#include "server/metrics/http_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "server/api/fakes_for_test.h"

namespace floe::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class WaitingHttpResponder : public HttpResponder {
 public:
  void Send(HttpReply&& reply) override { sent_.set_value(std::move(reply)); }
  void Begin(HttpReply&& /*head*/) override { ADD_FAILURE(); }
  void Write(std::string&& /*part*/) override { ADD_FAILURE(); }
  void End() override { ADD_FAILURE(); }
  HttpReply Take() { return sent_.get_future().get(); }

 private:
  std::promise<HttpReply> sent_;
};

class HttpMetricsTest : public testing::Test {
 protected:
  HttpReply Get(const char* path, const std::string& accept = "",
                OfferedTo read = OfferedTo::kAll) {
    HttpHead head;
    head.method = "GET";
    head.path = path;
    head.roles.read = read;
    if (!accept.empty()) head.fields = {{"accept", accept}};
    const auto responder = std::make_shared<WaitingHttpResponder>();
    int64_t most = -1;
    const auto handler = routes_.Open(head, responder, &most);
    if (handler != nullptr) handler->OnEnd();
    return responder->Take();
  }

  FakeRegistry registry_;
  HealthState health_;
  ApiContext context_{registry_, health_};
  HttpRoutes routes_;
};

TEST_F(HttpMetricsTest, TwoPathsAndTwoFormats) {
  AddMetricsRoutes(context_, {}, "/mine", &routes_);
  const HttpReply text = Get("/metrics");
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(text.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(text.body, HasSubstr("# TYPE floe_config_generation gauge\n"));
  EXPECT_THAT(text.body, Not(HasSubstr(":tensorflow:")));
  const HttpReply open = Get("/metrics", "application/openmetrics-text;version=1.0.0");
  EXPECT_EQ(open.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_THAT(open.body, testing::EndsWith("# EOF\n"));
  EXPECT_THAT(Get("/mine").body,
              HasSubstr(":tensorflow:serving:batching_session:wrapped_run_count 0\n"));
}

TEST_F(HttpMetricsTest, NamesThatAreAskedForAndTheRole) {
  AddMetricsRoutes(context_, MetricNamesOf({"tfserving"}), "", &routes_);
  EXPECT_THAT(Get("/metrics").body, HasSubstr(":tensorflow:"));
  EXPECT_EQ(Get("/metrics", "", OfferedTo::kNobody).status, 403);
}

}  // namespace
}  // namespace floe::server
