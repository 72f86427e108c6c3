// A scrape of many models takes milliseconds, which no connection's thread has.
#include "server/metrics/http_metrics.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/budget.h"
#include "base/task_thread_pool.h"

namespace floe::server {
namespace {

struct MetricsSource {
  explicit MetricsSource(const ApiContext& api)
      : context(api), thread(1, ThreadTraits{"metrics", 0, {}}), started(thread.Start()) {}

  const ApiContext context;
  TaskThreadPool thread;
  const absl::Status started;
};

HttpReply Unavailable(const std::string& why) {
  HttpReply reply;
  reply.status = 503;
  reply.body = why + "\n";
  return reply;
}

HttpReply MetricsReply(const ApiContext& context, MetricFormat format, const MetricNames& names) {
  HttpReply reply;
  const absl::Status status = CatchOutOfMemory([&] {
    reply.body = ServerMetrics(context, format, names);
    reply.content_type = std::string(ContentTypeOf(format));
    return absl::OkStatus();
  });
  return status.ok() ? reply : Unavailable(std::string(status.message()));
}

class MetricsHandler : public HttpHandler {
 public:
  MetricsHandler(std::shared_ptr<MetricsSource> source, MetricFormat format, MetricNames names,
                 std::shared_ptr<HttpResponder> responder)
      : source_(std::move(source)),
        format_(format),
        names_(names),
        responder_(std::move(responder)) {}

  void OnEnd() override {
    if (!source_->started.ok())
      return responder_->Send(Unavailable(std::string(source_->started.message())));
    // The source outlives its thread's tasks, as a task must not be the last to hold it.
    const auto write = [source = source_.get(), format = format_, names = names_,
                        responder = responder_] {
      responder->Send(MetricsReply(source->context, format, names));
    };
    if (!source_->thread.Post(write)) responder_->Send(Unavailable("the server stops"));
  }

 private:
  const std::shared_ptr<MetricsSource> source_;
  const MetricFormat format_;
  const MetricNames names_;
  const std::shared_ptr<HttpResponder> responder_;
};

}  // namespace

void AddMetricsRoutes(const ApiContext& context, const MetricNames& names, const std::string& path,
                      HttpRoutes* routes) {
  const auto source = std::make_shared<MetricsSource>(context);
  const auto add = [&](const std::string& at, const MetricNames& shown) {
    HttpRoute route;
    route.method = "GET";
    route.pattern = at;
    route.role = MethodRole::kModels;
    route.open = [source, shown](const HttpHead& head, std::shared_ptr<HttpResponder> responder) {
      const std::string* const accept = head.Field("accept");
      const MetricFormat format = MetricFormatOf(accept == nullptr ? "" : *accept);
      return std::make_shared<MetricsHandler>(source, format, shown, std::move(responder));
    };
    routes->Add(std::move(route));
  };
  constexpr char kOwnPath[] = "/metrics";
  MetricNames as_tfserving = names;
  as_tfserving.tfserving = true;
  add(kOwnPath, path == kOwnPath ? as_tfserving : names);
  if (!path.empty() && path != kOwnPath) add(path, as_tfserving);
}

}  // namespace floe::server
