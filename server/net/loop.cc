// epoll, edge-triggered; an eventfd that is written only while the loop sleeps.
#include "server/net/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include "base/status.h"
#include "base/threads.h"

namespace floe::server {

Loop::Loop(const Clock& clock) : clock_(clock), timers_(clock.Now()), now_(clock.Now()) {}

Loop::~Loop() {
  Stop();
  for (const int fd : {epoll_, wake_})
    if (fd >= 0) close(fd);
}

absl::Status Loop::Start() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_ < 0 || wake_ < 0) return absl::ErrnoToStatus(errno, "an event loop");
  epoll_event event = {};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0)
    return absl::ErrnoToStatus(errno, "an event loop");
  FLOE_ASSIGN_OR_RETURN(thread_, TrySpawnThread({"net", 0, {}}, [this] { Run(); }));
  return absl::OkStatus();
}

void Loop::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  thread_.join();
}

bool Loop::Post(std::shared_ptr<Task> task) {
  bool wake;
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    tasks_.push_back(std::move(task));
    wake = std::exchange(sleeping_, false);
  }
  if (!wake) return true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  return true;
}

namespace {

class BodyTask final : public Loop::Task {
 public:
  explicit BodyTask(std::function<void()> body) : body_(std::move(body)) {}
  void Run() override {
    body_();
    ran_.set_value();
  }
  std::future<void> ran() { return ran_.get_future(); }

 private:
  const std::function<void()> body_;
  std::promise<void> ran_;
};

}  // namespace

void Loop::RunNow(std::function<void()> body) {
  const auto task = std::make_shared<BodyTask>(std::move(body));
  std::future<void> ran = task->ran();
  if (Post(task)) ran.wait();
}

TimePoint Loop::last_turn() const {
  MutexLock lock(mutex_);
  return turned_;
}

absl::Status Loop::Watch(int fd, Watcher* watcher) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = watcher;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0)
    return absl::ErrnoToStatus(errno, "a connection");
  return absl::OkStatus();
}

void Loop::Unwatch(int fd) {
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);  // fails for one that Watch refused
}

void Loop::Forget(std::unique_ptr<Watcher> watcher) {
  if (watcher->again_) std::erase(again_, watcher.get());
  if (watcher->turn_end_)
    std::replace(turn_end_.begin(), turn_end_.end(), watcher.get(), static_cast<Watcher*>(nullptr));
  watcher->again_ = watcher->turn_end_ = true;  // which keeps it out of both
  ended_.push_back(std::move(watcher));
}

void Loop::Again(Watcher* watcher) {
  if (!std::exchange(watcher->again_, true)) again_.push_back(watcher);
}

void Loop::WantTurnEnd(Watcher* watcher) {
  if (!std::exchange(watcher->turn_end_, true)) turn_end_.push_back(watcher);
}

int Loop::Wait(epoll_event* events) {
  const TimePoint next = timers_.Next();
  int64_t millis = -1;
  if (next != TimePoint::max()) {
    const Duration left = std::max(Duration::zero(), next - clock_.Now());
    millis = std::min<int64_t>(1000, std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }
  {
    MutexLock lock(mutex_);
    if (stopping_ || !tasks_.empty() || !again_.empty()) millis = 0;
    sleeping_ = millis != 0;
    turned_ = sleeping_ ? TimePoint::max() : now_;
  }
  const int count = epoll_wait(epoll_, events, kEvents, static_cast<int>(millis));
  now_ = clock_.Now();
  MutexLock lock(mutex_);
  sleeping_ = false;
  turned_ = now_;
  return count;
}

bool Loop::TakeTasks(std::vector<std::shared_ptr<Task>>* tasks) {
  MutexLock lock(mutex_);
  tasks->swap(tasks_);
  return !tasks->empty();
}

void Loop::RunTasks() {
  std::vector<std::shared_ptr<Task>> tasks;
  // What the sockets of this turn brought may have been answered already.
  for (int round = 0; round < 2 && TakeTasks(&tasks); ++round) {
    for (auto& task : tasks) std::exchange(task, nullptr)->Run();
    tasks.clear();
  }
}

void Loop::EndTurn() {
  for (size_t i = 0; i < turn_end_.size(); ++i) {  // which may grow
    Watcher* const watcher = turn_end_[i];
    if (watcher == nullptr) continue;
    turn_end_[i] = nullptr;
    watcher->turn_end_ = false;
    watcher->OnTurnEnd();
  }
  turn_end_.clear();
  ended_.clear();
}

void Loop::Run() {
  epoll_event events[kEvents];
  std::vector<Watcher*> again;
  for (;;) {
    const int count = Wait(events);
    again.swap(again_);
    for (Watcher* const watcher : again) watcher->again_ = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr != nullptr) {
        constexpr uint32_t kOver = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
        static_cast<Watcher*>(events[i].data.ptr)->OnReady((events[i].events & kOver) != 0);
      } else {
        uint64_t times;
        [[maybe_unused]] const ssize_t read_bytes = read(wake_, &times, sizeof times);
      }
    }
    for (Watcher* const watcher : again) watcher->OnReady(/*may_be_over=*/true);
    again.clear();
    timers_.Run(now_);
    RunTasks();
    EndTurn();
    MutexLock lock(mutex_);
    if (stopping_ && tasks_.empty()) return;
  }
}

}  // namespace floe::server
