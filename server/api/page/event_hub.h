// EventHub: who reads the state of a page as it changes, by server-sent events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/api/access.h"
#include "server/api/http.h"
#include "server/api/page/html.h"

namespace floe::server {

// A part of a page that changes while it is shown.
struct PageSection {
  std::string id;
  Html html;
};
using PageSections = std::vector<PageSection>;

// What a page shows, and to whom.
struct PageView {
  std::string model = {};  // "": all that the caller may see
  Caller caller = {};

  auto key() const { return std::pair(model, caller.principal().get()); }
};

// An event has the sections that changed since the last one, as JSON: {"models": "<h2>..."}. A
// reader that has not taken the last event gets none until it has, and all that changed then; one
// that takes none for kSlowest is cut.
// Threading: Add, Remove and readers() on any thread, Step on one.
class EventHub {
 public:
  static constexpr size_t kMostReaders = 32;
  static constexpr Duration kSlowest = std::chrono::seconds(30);
  // An event that says nothing: who has gone silently is found.
  static constexpr Duration kQuietest = std::chrono::seconds(15);

  // What a view shows now.
  using Render = std::function<PageSections(const PageView& view)>;

  // Begins the answer. 0, and it is not begun: there are kMostReaders.
  int64_t Add(const PageView& view, std::shared_ptr<HttpResponder> responder, TimePoint now);
  // The reader left. Ids that are gone are ignored.
  void Remove(int64_t id);
  size_t readers() const;

  // Renders each view that somebody reads, and sends what is new.
  void Step(TimePoint now, const Render& render);

 private:
  struct Reader {
    PageView view;
    std::shared_ptr<HttpResponder> responder;
    int64_t sent = 0;       // the step whose state it has
    TimePoint quiet, took;  // since its last event; when it last had taken all
  };
  struct Shown {
    std::string html;
    int64_t changed = 0;  // in which step
  };
  using View = std::map<std::string, Shown>;  // by section
  using Views = std::map<std::pair<std::string, const Principal*>, View>;

  void Update(View* view, const PageSections& sections) const;
  // Outside the lock: a responder may call back. True: that was the last.
  bool Send(const View& view, Reader* reader, TimePoint now) const;

  int64_t step_ = 0;
  Views views_;  // of Step
  mutable Mutex mutex_;
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Reader> readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe::server
