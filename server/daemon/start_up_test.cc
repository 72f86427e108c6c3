#include "server/daemon/start_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Tally = ServedTable::Tally;

// What it reports, in order, and what it logs.
class StartUpTest : public testing::Test {
 protected:
  StartUpTest() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  ~StartUpTest() override { spdlog::set_default_logger(before_); }

  StartUp Make(bool exit_on_error = false, bool polls = true) {
    StartUp::Options options;
    options.exit_on_error = exit_on_error;
    options.polls = polls;
    options.ready = [this](const std::string& status) { reported_.push_back("ready: " + status); };
    options.status = [this](const std::string& status) { reported_.push_back(status); };
    return {std::move(options), now_};
  }
  static Tally Models(size_t available, size_t models, bool settled,
                      std::vector<std::string> failed = {}) {
    return {models, available, settled, std::move(failed)};
  }

  TimePoint now_ = TimePoint(std::chrono::hours(1));
  std::vector<std::string> reported_;
  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> before_;
};

TEST_F(StartUpTest, IsReadyWhenAllHaveSettledAndTellsWhatServesFromThenOn) {
  StartUp start = Make();
  EXPECT_TRUE(start.Step(Models(0, 2, false), now_));
  EXPECT_TRUE(start.Step(Models(1, 2, false), now_));
  EXPECT_TRUE(start.Step(Models(1, 2, false), now_));
  EXPECT_TRUE(start.Step(Models(1, 2, true), now_));
  EXPECT_TRUE(start.Step(Models(2, 2, true), now_));
  EXPECT_THAT(reported_, ElementsAre("Serving 0 of 2 models", "Serving 1 of 2 models",
                                     "ready: Serving 1 of 2 models", "Serving 2 of 2 models"));
  EXPECT_EQ(start.next(), TimePoint::max());
}

TEST_F(StartUpTest, AModelThatHangsHoldsUpReadyForAWhileOnly) {
  StartUp start = Make();
  EXPECT_TRUE(start.Step(Models(1, 2, false), now_));
  EXPECT_EQ(start.next(), now_ + StartUp::kTimeout);
  EXPECT_TRUE(start.Step(Models(1, 2, false), start.next() - Duration(1)));
  EXPECT_THAT(reported_, ElementsAre("Serving 1 of 2 models"));
  EXPECT_TRUE(start.Step(Models(1, 2, false), start.next()));
  EXPECT_TRUE(start.Step(Models(1, 2, true), now_ + std::chrono::hours(1)));
  EXPECT_THAT(reported_, ElementsAre("Serving 1 of 2 models", "ready: Serving 1 of 2 models"));
}

TEST_F(StartUpTest, GoesOnWithoutAModelAndSaysOnceWhatHelps) {
  StartUp start = Make(/*exit_on_error=*/false, /*polls=*/true);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(start.Step(Models(0, 1, true, {"m"}), now_));
  EXPECT_THAT(reported_, ElementsAre("ready: Serving 0 of 1 models"));
  EXPECT_THAT(log_.str(), AllOf(HasSubstr("'m'"), HasSubstr("when their files change")));
  EXPECT_EQ(log_.str().find("'m'"), log_.str().rfind("'m'")) << log_.str();

  StartUp once = Make(/*exit_on_error=*/false, /*polls=*/false);
  log_.str("");
  EXPECT_TRUE(once.Step(Models(0, 1, true, {"m"}), now_));
  EXPECT_THAT(log_.str(), AllOf(HasSubstr("file_system_poll_wait_seconds is 0"),
                                HasSubstr("SIGHUP"), Not(HasSubstr("files change"))));
}

TEST_F(StartUpTest, TheLogSaysReadyWhenHealthDoes) {
  StartUp none = Make();
  EXPECT_TRUE(none.Step(Models(0, 1, true, {"m"}), now_));
  EXPECT_THAT(log_.str(), HasSubstr("not ready: Serving 0 of 1 models\n"));
  log_.str("");
  EXPECT_TRUE(none.Step(Models(1, 1, true), now_));
  EXPECT_THAT(log_.str(), HasSubstr(" ready: Serving 1 of 1 models\n"));
  log_.str("");
  EXPECT_TRUE(none.Step(Models(0, 1, true), now_));
  EXPECT_TRUE(none.Step(Models(1, 1, true), now_));
  EXPECT_EQ(log_.str(), "") << "what comes and goes later is told of the models";

  StartUp strict = Make();
  EXPECT_TRUE(strict.Step(Models(1, 2, true, {"m"}), now_));
  EXPECT_THAT(log_.str(), HasSubstr("not ready: Serving 1 of 2 models\n"));
  log_.str("");
  StartUp::Options options;
  options.strict = false;
  options.ready = options.status = [](const std::string&) {};
  StartUp loose(std::move(options), now_);
  EXPECT_TRUE(loose.Step(Models(1, 2, true), now_));
  EXPECT_THAT(log_.str(),
              AllOf(HasSubstr("ready: Serving 1 of 2 models\n"), Not(HasSubstr("not ready"))));
}

TEST_F(StartUpTest, ExitOnErrorIsForModelsThatFailAtTheStart) {
  StartUp start = Make(/*exit_on_error=*/true);
  EXPECT_TRUE(start.Step(Models(1, 2, true), now_)) << "the other one is tried again";
  EXPECT_FALSE(start.Step(Models(1, 2, true, {"m"}), now_));
  EXPECT_THAT(log_.str(), HasSubstr("'m'; ending"));

  reported_.clear();
  StartUp first = Make(/*exit_on_error=*/true);
  EXPECT_FALSE(first.Step(Models(0, 1, true, {"m"}), now_));
  EXPECT_THAT(reported_, IsEmpty()) << "it has not been ready";

  StartUp later = Make(/*exit_on_error=*/true);
  EXPECT_TRUE(later.Step(Models(2, 2, true), now_));
  EXPECT_TRUE(later.Step(Models(1, 2, true, {"m"}), now_)) << "the start is over";
}

}  // namespace
}  // namespace floe::server
