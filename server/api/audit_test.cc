#include "server/api/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "server/api/fakes_for_test.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The log of the calls in its life.
class Audit : public testing::Test {
 protected:
  Audit() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "audit", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  ~Audit() override { spdlog::set_default_logger(before_); }

  std::shared_ptr<FakeResponder> Call(const absl::Status& result, bool local) {
    const Method method =
        Audited(UnaryMethod(MethodRole::kOperators, [result](const CallHead&, const Message&,
                                                             const std::shared_ptr<Responder>& to) {
          to->Finish(result);
        }));
    CallHead head;
    head.path = "/a/B";
    head.peer = "10.0.0.1:7";
    head.local = local;
    auto responder = std::make_shared<FakeResponder>();
    Invoke(method, head, Message{}, responder);
    return responder;
  }

  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream log_;
};

TEST_F(Audit, SaysWhoCalledWhatFromWhereAndHowItEnded) {
  EXPECT_TRUE(Call(absl::OkStatus(), true)->status.ok());
  EXPECT_THAT(log_.str(), HasSubstr("audit: /a/B by this process from 10.0.0.1:7: OK"));
  EXPECT_TRUE(absl::IsNotFound(Call(absl::NotFoundError("no \n 'm'"), true)->status));
  EXPECT_THAT(log_.str(), HasSubstr("NOT_FOUND: no"));
}

TEST_F(Audit, HasSomeLinesOfRefusalsEachSecond) {
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(absl::IsPermissionDenied(Call(absl::OkStatus(), false)->status));
  EXPECT_THAT(log_.str(), HasSubstr("from 10.0.0.1:7 was refused: PERMISSION_DENIED"));
  EXPECT_THAT(log_.str(), Not(HasSubstr(": OK")));
  const std::string text = log_.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
}

}  // namespace
}  // namespace floe::server
