// Loop: a thread that waits for sockets, timers and tasks of other threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/net/timer_wheel.h"

struct epoll_event;

namespace floe::server {

// One class: a thread and what it waits for. Threading: Start and Stop once, Post and last_turn
// from any thread, the rest on the loop's own.
class Loop {
 public:
  // What a descriptor belongs to.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // Something can be read or written, or the other end is gone. Called again only when that
    // changes, so it reads and writes as much as there is, or asks for Again. Unless `may_be_over`,
    // the other end had not said yet that it sends no more.
    virtual void OnReady(bool may_be_over) = 0;
    // After the tasks and sockets of a turn, if WantTurnEnd was called in it.
    virtual void OnTurnEnd() = 0;

   private:
    friend class Loop;
    bool again_ = false, turn_end_ = false;
  };
  class Task {
   public:
    virtual ~Task() = default;
    virtual void Run() = 0;
  };

  // `clock` outlives it. The loop sees that it was advanced when it turns, at least once a second.
  explicit Loop(const Clock& clock = Clock::Steady());
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // RESOURCE_EXHAUSTED when the system gives no descriptor or no thread.
  absl::Status Start();
  // Runs what was posted before, and ends the thread. Watchers that are left are not told.
  void Stop();

  // False, and the task is dropped, after Stop. Wakes the loop only if it sleeps.
  bool Post(std::shared_ptr<Task> task);
  // Posts it and returns when it has run. Not on the loop's thread.
  void RunNow(std::function<void()> body);
  // When the loop last turned; max(): it sleeps.
  TimePoint last_turn() const;

  absl::Status Watch(int fd, Watcher* watcher);
  // Before the descriptor is closed: close() alone leaves it watched while another thread is in a
  // call on it, or a child of fork has it (epoll(7), questions and answers, 6).
  void Unwatch(int fd);
  // Its descriptor is unwatched: it gets no more calls, and ends after this turn.
  void Forget(std::unique_ptr<Watcher> watcher);
  void Again(Watcher* watcher);
  void WantTurnEnd(Watcher* watcher);
  TimerWheel* timers() { return &timers_; }
  TimePoint now() const { return now_; }  // of this turn

 private:
  static constexpr int kEvents = 256;

  void Run();
  // Waits for events; how many came.
  int Wait(epoll_event* events);
  void RunTasks();
  bool TakeTasks(std::vector<std::shared_ptr<Task>>* tasks);
  void EndTurn();

  const Clock& clock_;
  int epoll_ = -1, wake_ = -1;
  std::thread thread_;
  TimerWheel timers_;
  TimePoint now_;
  std::vector<Watcher*> again_, turn_end_;
  std::vector<std::unique_ptr<Watcher>> ended_;

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Task>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool sleeping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint turned_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();
};

}  // namespace floe::server
