#include "server/api/page/event_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const TimePoint kHubStart = TimePoint() + std::chrono::hours(1);

// A client that reads what was written when the test says so.
class EventReader : public HttpResponder {
 public:
  void Send(HttpReply&&) override { ADD_FAILURE() << "a stream is begun"; }
  void Begin(HttpReply&& head) override { begun.push_back(std::move(head)); }
  void Write(std::string&& part) override { events.push_back(std::move(part)); }
  void End() override { ended = true; }
  size_t Unsent() const override { return unsent; }
  void Cut() override { cut = true; }

  std::vector<HttpReply> begun;
  std::vector<std::string> events;
  size_t unsent = 0;
  bool cut = false, ended = false;
};

class EventHubTest : public testing::Test {
 protected:
  // What the views show; "" and "m".
  std::vector<std::pair<std::string, std::string>> shown_ = {{"a", "one"}, {"b", "two"}};
  int rendered_ = 0;

  void Step(Duration later = Duration::zero()) {
    hub_.Step(kHubStart + later, [this](const PageView& view) {
      ++rendered_;
      PageSections sections;
      for (const auto& [id, text] : shown_) {
        Html html;
        html.Text(view.model).Text(text);
        sections.push_back({id, html});
      }
      return sections;
    });
  }
  std::shared_ptr<EventReader> Join(const std::string& view, int64_t* id = nullptr) {
    auto reader = std::make_shared<EventReader>();
    const int64_t given = hub_.Add({view, {}}, reader, kHubStart);
    if (id != nullptr) *id = given;
    return reader;
  }

  EventHub hub_;
};

TEST_F(EventHubTest, SendsAllAndThenWhatChanges) {
  const auto reader = Join("");
  EXPECT_EQ(reader->begun.at(0).content_type, "text/event-stream");
  Step();
  EXPECT_THAT(reader->events, ElementsAre("data: {\"a\":\"one\",\"b\":\"two\"}\n\n"));
  Step();
  EXPECT_EQ(reader->events.size(), 1u) << "nothing has changed";
  // What would end a line of an event is escaped.
  shown_[1].second = "a\nb\"";
  Step();
  EXPECT_EQ(reader->events.at(1), "data: {\"b\":\"a\\nb&quot;\"}\n\n");
}

TEST_F(EventHubTest, RendersAViewOnceForAllItsReaders) {
  const auto one = Join("m"), same = Join("m"), other = Join("");
  Step();
  EXPECT_EQ(rendered_, 2);
  EXPECT_EQ(one->events, same->events);
  EXPECT_EQ(one->events.at(0), "data: {\"a\":\"mone\",\"b\":\"mtwo\"}\n\n");
  EXPECT_NE(one->events, other->events);
}

TEST_F(EventHubTest, QuietReadersGetAnEmptyEventNowAndThen) {
  const auto reader = Join("");
  Step();
  Step(EventHub::kQuietest - std::chrono::seconds(1));
  EXPECT_EQ(reader->events.size(), 1u);
  Step(EventHub::kQuietest);
  EXPECT_EQ(reader->events.at(1), ":\n\n");
}

TEST_F(EventHubTest, WhoReadsSlowlyGetsTheChangesTogetherAndIsCutAtLast) {
  const auto slow = Join(""), neighbour = Join("");
  Step();
  slow->unsent = 10;
  for (int i = 1; i <= 5; ++i) {
    shown_[0].second = "change " + std::to_string(i);
    if (i == 5) shown_[1].second = "last";
    Step(std::chrono::seconds(i));
  }
  EXPECT_EQ(slow->events.size(), 1u) << "no more is written than one event";
  EXPECT_EQ(neighbour->events.size(), 6u);
  slow->unsent = 0;
  Step(std::chrono::seconds(6));
  EXPECT_EQ(slow->events.at(1), "data: {\"a\":\"change 5\",\"b\":\"last\"}\n\n");
  slow->unsent = 10;
  Step(std::chrono::seconds(6) + EventHub::kSlowest - std::chrono::seconds(1));
  EXPECT_FALSE(slow->cut);
  EXPECT_EQ(hub_.readers(), 2u);
  Step(std::chrono::seconds(6) + EventHub::kSlowest);
  EXPECT_TRUE(slow->cut);
  EXPECT_FALSE(neighbour->cut);
  EXPECT_EQ(hub_.readers(), 1u);
}

TEST_F(EventHubTest, ReadersAreBoundedAndLeave) {
  std::vector<int64_t> ids(EventHub::kMostReaders);
  for (int64_t& id : ids) {
    Join("", &id);
    EXPECT_GT(id, 0);
  }
  int64_t refused = -1;
  const auto late = Join("", &refused);
  EXPECT_EQ(refused, 0);
  EXPECT_THAT(late->begun, IsEmpty());
  hub_.Remove(ids[3]);
  hub_.Remove(ids[3]);
  const auto next = Join("", &refused);
  EXPECT_GT(refused, 0);
  Step();
  EXPECT_EQ(next->events.size(), 1u);
  for (const int64_t id : ids) hub_.Remove(id);
  EXPECT_EQ(hub_.readers(), 1u);
}

TEST_F(EventHubTest, EndsForThoseWhoseTokenIsTakenAway) {
  AuthConfig auth;
  auth.tokens_file = testing::TempDir() + "floe_hub_" + std::to_string(getpid());
  TokenLine line;
  line.name = "t";
  line.roles.Add(Role::kRead);
  const std::string token = MakeToken(&line).value();
  std::ofstream(auth.tokens_file) << TokenLineText(line) << "\n";
  const std::shared_ptr<Access> access = *Access::Make(auth);
  const Caller nobody = access->OfConnection({});
  const Caller browser = access->OfLogin(nobody, access->LogIn(token, "unix").value());
  const auto reader = std::make_shared<EventReader>();
  EXPECT_GT(hub_.Add({"", browser}, reader, kHubStart), 0);
  Step();
  EXPECT_FALSE(reader->ended);
  std::ofstream(auth.tokens_file) << "# none\n";
  ASSERT_TRUE(access->Reload().ok());
  unlink(auth.tokens_file.c_str());
  Step();
  EXPECT_TRUE(reader->ended);
  EXPECT_EQ(hub_.readers(), 0u);
}

}  // namespace
}  // namespace floe::server
