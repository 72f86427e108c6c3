#include "server/api/page/event_hub.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/rest/json_text.h"

namespace floe::server {

int64_t EventHub::Add(const PageView& view, std::shared_ptr<HttpResponder> responder,
                      TimePoint now) {
  HttpReply head;
  head.content_type = "text/event-stream";
  head.fields = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  head.body = "retry: 2000\n\n";
  const MutexLock lock(mutex_);
  if (readers_.size() >= kMostReaders) return 0;
  responder->Begin(std::move(head));
  readers_[++last_id_] = {view, std::move(responder), 0, now, now};
  return last_id_;
}

void EventHub::Remove(int64_t id) {
  const MutexLock lock(mutex_);
  readers_.erase(id);
}

size_t EventHub::readers() const {
  const MutexLock lock(mutex_);
  return readers_.size();
}

void EventHub::Update(View* view, const PageSections& sections) const {
  View now;
  for (const PageSection& section : sections) {
    const auto before = view->find(section.id);
    const bool same = before != view->end() && before->second.html == section.html.text();
    now[section.id] = {section.html.text(), same ? before->second.changed : step_};
  }
  *view = std::move(now);
}

bool EventHub::Send(const View& view, Reader* reader, TimePoint now) const {
  // Its token has expired, or was taken away.
  if (!reader->view.caller.CheckRole(Role::kRead).ok() || !reader->view.caller.Holds()) {
    reader->responder->End();
    return true;
  }
  if (reader->responder->Unsent() > 0) {
    if (now - reader->took < kSlowest) return false;
    reader->responder->Cut();
    return true;
  }
  reader->took = now;
  std::string data;
  for (const auto& [id, shown] : view) {
    if (shown.changed <= reader->sent) continue;
    data += data.empty() ? "{" : ",";
    AppendJsonString(id, &data);
    data += ":";
    AppendJsonString(shown.html, &data);
  }
  reader->sent = step_;
  if (data.empty() && now - reader->quiet < kQuietest) return false;
  reader->quiet = now;
  reader->responder->Write(data.empty() ? ":\n\n" : absl::StrCat("data: ", data, "}\n\n"));
  return false;
}

void EventHub::Step(TimePoint now, const Render& render) {
  ++step_;
  std::map<int64_t, Reader> readers;
  {
    const MutexLock lock(mutex_);
    readers = readers_;
  }
  Views views;
  for (const auto& [id, reader] : readers) {
    const auto [view, added] = views.try_emplace(reader.view.key());
    if (!added) continue;
    view->second = std::move(views_[reader.view.key()]);
    Update(&view->second, render(reader.view));
  }
  views_ = std::move(views);
  for (auto& [id, reader] : readers) {
    const bool cut = Send(views_[reader.view.key()], &reader, now);
    const MutexLock lock(mutex_);
    const auto kept = readers_.find(id);
    if (kept == readers_.end()) continue;  // it left meanwhile
    if (cut)
      readers_.erase(kept);
    else
      kept->second = std::move(reader);
  }
}

}  // namespace floe::server
