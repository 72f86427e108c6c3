// The routes of the pages, and the thread that writes them.
#include "server/api/page/page.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/task_thread_pool.h"
#include "config/files.h"
#include "server/api/page/assets.h"
#include "server/api/page/event_hub.h"
#include "server/api/page/shell.h"
#include "server/api/page/views.h"

namespace floe::server {
namespace {

constexpr Duration kEventsEvery = std::chrono::seconds(1);

// Where the browser found the server. What is no host's name is not shown.
PageAddress AddressOf(const HttpHead& head, bool tls) {
  constexpr size_t kMostHostBytes = 255;
  constexpr std::string_view kMarks = ".-:[]";
  const std::string* const host = head.Field("host");
  const bool plain = host != nullptr && !host->empty() && host->size() <= kMostHostBytes &&
                     std::all_of(host->begin(), host->end(), [&](unsigned char c) {
                       return absl::ascii_isalnum(c) ||
                              kMarks.find(static_cast<char>(c)) != std::string_view::npos;
                     });
  return {tls ? "https" : "http", plain ? *host : "127.0.0.1:8500"};
}

// What the pages share. Its thread writes them, takes the samples, and sends the events.
class PageSource {
 public:
  explicit PageSource(const ApiContext& api)
      : context(api), thread_(1, {"page", 0, {}}, [this] { return Advance(); }) {
    started_ = thread_.Start();
  }

  // On the page's thread.
  HttpReply Overview(const HttpHead& head) const;
  HttpReply OfModel(const HttpHead& head) const;
  HttpReply Config() const;

  // Sends what `write` makes on the thread.
  void Answer(std::function<HttpReply()> write, const std::shared_ptr<HttpResponder>& responder);
  // Has the thread send the first event.
  void Wake() {
    (void)thread_.Post([] {});
  }

  const ApiContext context;
  EventHub hub;

 private:
  TimePoint Advance();
  PageState State() const {
    auto stats = context.registry.Stats("");
    return {context, samples_, stats.ok() ? *std::move(stats) : std::vector<ModelStats>(),
            Clock::Steady().Now()};
  }
  static PageSections Sections(const PageState& state, const PageView& view);

  Samples samples_;
  absl::Status started_;
  TaskThreadPool thread_;  // ends before what it uses
};

TimePoint PageSource::Advance() {
  const TimePoint now = Clock::Steady().Now();
  const bool samples = now >= samples_.due();
  if (samples || hub.readers() > 0)
    (void)CatchOutOfMemory([&] {
      const PageState state = State();
      if (samples) samples_.Take(state.models, now);
      hub.Step(now, [&](const PageView& view) { return Sections(state, view); });
      return absl::OkStatus();
    });
  if (samples_.due() <= now) return now + kEventsEvery;  // there was no memory
  return hub.readers() > 0 ? std::min(samples_.due(), now + kEventsEvery) : samples_.due();
}

void PageSource::Answer(std::function<HttpReply()> write,
                        const std::shared_ptr<HttpResponder>& responder) {
  if (!started_.ok()) return responder->Send(ErrorReply(started_));
  const auto task = [write = std::move(write), responder] {
    HttpReply reply;
    const absl::Status status = CatchOutOfMemory([&] {
      reply = write();
      return absl::OkStatus();
    });
    responder->Send(status.ok() ? std::move(reply) : ErrorReply(status));
  };
  if (!thread_.Post(task)) responder->Send(ErrorReply(absl::UnavailableError("the server stops")));
}

PageSections PageSource::Sections(const PageState& state, const PageView& view) {
  if (view.model.empty()) return OverviewSections(state, view.caller);
  absl::StatusOr<PageSections> sections = ModelSections(state, view.model);
  return sections.ok() ? *std::move(sections) : PageSections();
}

void AddSections(const PageSections& sections, Html* html) {
  for (const PageSection& section : sections) {
    html->Add("<section data-live id=\"").Text(section.id).Add("\">");
    html->Part(section.html).Add("</section>");
  }
}

HttpReply PageSource::Overview(const HttpHead& head) const {
  Html content;
  content.Add("<h1>floe at ").Text(AddressOf(head, false).host).Add("</h1>");
  content.Part(WhoIsLoggedIn(head.caller));
  AddSections(OverviewSections(State(), head.caller), &content);
  return PageReply(200, WholePage("floe", "/page/events", {}, content));
}

HttpReply PageSource::OfModel(const HttpHead& head) const {
  const std::string model(head.Name("model"));
  const PageState state = State();
  const absl::StatusOr<PageSections> sections = ModelSections(state, model);
  if (!sections.ok()) return ErrorPage(sections.status());
  Html content, script;
  content.Add("<h1>").Text(model).Add("</h1>");
  AddSections(*sections, &content);
  content.Part(ModelUse(state, model, AddressOf(head, context.server.tls != nullptr)));
  script.Add("<script src=\"/page/model.js\" defer></script>");
  return PageReply(
      200, WholePage(model + " - floe", absl::StrCat("/page/events/", UrlSegment(model)), script,
                     content));
}

HttpReply PageSource::Config() const {
  ConfigState state = context.registry.CurrentConfig();
  ServerConfig merged = context.config == nullptr ? ServerConfig() : *context.config;
  Html content;
  content.Add("<h1>Configuration</h1>");
  content.Part(ConfigChanges(state, /*details=*/true, Clock::Steady().Now()));
  merged.models = std::move(state.models);
  content.Add("<h2>With every default</h2><pre tabindex=\"0\">").Text(ConfigToYaml(merged));
  content.Add("</pre>");
  return PageReply(200, WholePage("Configuration - floe", "", {}, content));
}

// A page, written when the request is whole.
class PageHandler : public HttpHandler {
 public:
  PageHandler(std::shared_ptr<PageSource> source, std::function<HttpReply()> write,
              std::shared_ptr<HttpResponder> responder)
      : source_(std::move(source)), write_(std::move(write)), responder_(std::move(responder)) {}
  void OnEnd() override { source_->Answer(std::move(write_), responder_); }

 private:
  const std::shared_ptr<PageSource> source_;
  std::function<HttpReply()> write_;
  const std::shared_ptr<HttpResponder> responder_;
};

class EventsHandler : public HttpHandler {
 public:
  EventsHandler(std::shared_ptr<PageSource> source, PageView view,
                std::shared_ptr<HttpResponder> responder)
      : source_(std::move(source)), view_(std::move(view)), responder_(std::move(responder)) {}
  void OnEnd() override {
    id_ = source_->hub.Add(view_, responder_, Clock::Steady().Now());
    if (id_ > 0) return source_->Wake();
    responder_->Send(ErrorReply(
        absl::UnavailableError(absl::StrCat(EventHub::kMostReaders,
                                            " pages are open already, which is the most; this one "
                                            "shows the state when it was loaded"))));
  }
  void OnDone() override { source_->hub.Remove(id_); }

 private:
  const std::shared_ptr<PageSource> source_;
  const PageView view_;
  const std::shared_ptr<HttpResponder> responder_;
  int64_t id_ = 0;
};

// FNV-1a: the same in every process.
std::string TagOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return absl::StrCat("\"", absl::Hex(hash, absl::kZeroPad16), "\"");
}

void AddFile(const std::string& path, const char* name, const char* content_type, MethodRole role,
             HttpRoutes* routes) {
  const std::string_view bytes = PageFile(name);
  routes->Add(
      SimpleRoute(path, role, [bytes, content_type, tag = TagOf(bytes)](const HttpHead& head) {
        HttpReply reply;
        reply.fields = {
            {"ETag", tag}, {"Cache-Control", "no-cache"}, {"X-Content-Type-Options", "nosniff"}};
        reply.content_type = content_type;
        const std::string* const known = head.Field("if-none-match");
        if (known != nullptr && absl::StrContains(*known, tag))
          reply.status = 304;
        else
          reply.body = bytes;
        return reply;
      }));
}

using WriteWith = HttpReply (*)(const PageSource& source, const HttpHead& head);

void AddWritten(const std::shared_ptr<PageSource>& source, const char* path, MethodRole role,
                WriteWith write, HttpRoutes* routes) {
  HttpRoute route;
  route.method = "GET";
  route.pattern = path;
  route.role = role;
  route.refusal = LoginPage;
  route.open = [source, write](const HttpHead& head, std::shared_ptr<HttpResponder> responder) {
    // The source outlives its thread's tasks, as a task must not be the last to hold it.
    return std::make_shared<PageHandler>(
        source, [raw = source.get(), write, head] { return write(*raw, head); },
        std::move(responder));
  };
  routes->Add(std::move(route));
}

void AddEvents(const std::shared_ptr<PageSource>& source, const char* path, HttpRoutes* routes) {
  HttpRoute route;
  route.method = "GET";
  route.pattern = path;
  route.role = MethodRole::kModels;
  route.open = [source](const HttpHead& head,
                        std::shared_ptr<HttpResponder> responder) -> std::shared_ptr<HttpHandler> {
    if (head.method == "HEAD") {
      responder->Send(HttpReply{.status = 200, .body = "", .content_type = "text/event-stream"});
      return nullptr;
    }
    return std::make_shared<EventsHandler>(
        source, PageView{std::string(head.Name("model")), head.caller}, std::move(responder));
  };
  routes->Add(std::move(route));
}

}  // namespace

void AddPageRoutes(const ApiContext& context, HttpRoutes* routes) {
  const auto source = std::make_shared<PageSource>(context);
  AddWritten(
      source, "/", MethodRole::kModels,
      [](const PageSource& from, const HttpHead& head) { return from.Overview(head); }, routes);
  AddWritten(
      source, "/models/{model}", MethodRole::kModels,
      [](const PageSource& from, const HttpHead& head) { return from.OfModel(head); }, routes);
  AddWritten(
      source, "/page/config", MethodRole::kOperators,
      [](const PageSource& from, const HttpHead&) { return from.Config(); }, routes);
  AddEvents(source, "/page/events", routes);
  AddEvents(source, "/page/events/{model}", routes);
  // The form of a login needs them.
  AddFile("/page/page.css", "page.css", "text/css; charset=utf-8", MethodRole::kOpen, routes);
  AddFile("/page/page.js", "page.js", "text/javascript; charset=utf-8", MethodRole::kOpen, routes);
  AddFile("/page/icon.svg", "icon.svg", "image/svg+xml", MethodRole::kOpen, routes);
  AddFile("/page/model.js", "model.js", "text/javascript; charset=utf-8", MethodRole::kModels,
          routes);
  AddFile("/openapi.json", "openapi.json", "application/json", MethodRole::kModels, routes);
  AddLoginRoutes(routes);
}

}  // namespace floe::server
