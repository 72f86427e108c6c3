// A registry, a served model and a responder that tests script.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/import/import.h"
#include "server/api/rpc.h"
#include "server/registry/registry.h"

namespace floe::server {

// x float32 [?,2] and ids int64 [?] must be fed, training bool need not; outputs y, label and
// switch.
inline constexpr char kTestGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "ids" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "off" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
  attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: false } } } }
node { name: "training" op: "PlaceholderWithDefault" input: "off"
  attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } } }
node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "label" op: "Identity" input: "ids" attr { key: "T" value { type: DT_INT64 } } }
node { name: "switch" op: "Identity" input: "training" attr { key: "T" value { type: DT_BOOL } } }
)";

inline ModelHandle MakeTestModel(const std::string& name, int64_t version) {
  auto imported = ImportBytes(kTestGraph, {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return nullptr;
  auto model = Model::Create(
      {{name, version, ""}, std::move(imported->graph), std::move(imported->signatures)}, {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

// Ends the request as a model's queue does.
inline void AnswerWith(const Request& request, const absl::Status& status, Outputs outputs = {}) {
  if (status.ok()) {
    request.complete(outputs, {});
  } else {
    request.complete(status, {});
  }
}

// Hands each request to the test.
class FakeServed : public ServedModel {
 public:
  explicit FakeServed(ModelHandle handle) : handle_(std::move(handle)) {}
  const ModelHandle& model() const override { return handle_; }
  ReplyFormat reply_format() const override { return reply; }
  void Submit(Request request) override { on_submit(std::move(request)); }

  void CountRefused(const Inference& /*asked*/, absl::StatusCode code) override {
    refused.push_back(code);
  }

  ReplyFormat reply = ReplyFormat::kTyped;
  std::vector<absl::StatusCode> refused;
  std::function<void(Request)> on_submit = [](const Request&) {
    ADD_FAILURE() << "nothing was to be submitted";
  };

 private:
  const ModelHandle handle_;
};

class FakeRegistry : public ModelRegistry {
 public:
  absl::StatusOr<ServedHandle> Acquire(std::string_view name,
                                       const VersionChoice& choice) const override {
    const auto it = models.find(std::string(name));
    if (it == models.end()) return absl::NotFoundError("no model '" + std::string(name) + "'");
    const int64_t has = it->second->model()->info().version;
    const absl::StatusOr<std::optional<int64_t>> wanted = Version(choice);
    if (!wanted.ok()) return wanted.status();
    if (wanted->value_or(has) != has)
      return absl::NotFoundError(absl::StrCat("no version ", **wanted));
    return ServedHandle(it->second);
  }
  absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                    const VersionChoice& choice) const override {
    const auto it = statuses.find(std::string(name));
    if (it == statuses.end()) return absl::NotFoundError("no model '" + std::string(name) + "'");
    const absl::StatusOr<std::optional<int64_t>> wanted = Version(choice);
    if (!wanted.ok()) return wanted.status();
    std::vector<VersionStatus> found;
    for (const VersionStatus& status : it->second) {
      if (wanted->value_or(status.version) == status.version) found.push_back(status);
    }
    return found;
  }
  void StartReload(ReloadRequest request, ReloadDone done) override {
    replaced = request.replaces;
    reload_cancel = request.cancel;
    reload_by = request.who;
    if (holds_reloads) return held_reloads.push_back(std::move(done));
    done(on_reload(std::move(request.models), request.deadline));
  }
  ConfigState CurrentConfig() const override {
    ConfigState state = config;
    if (state.models.empty())
      for (const auto& [name, model] : models) state.models.emplace_back().name = name;
    return state;
  }
  absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view name) const override {
    if (!name.empty() && models.count(std::string(name)) == 0)
      return absl::NotFoundError("no model '" + std::string(name) + "'");
    return stats;
  }
  BackendStatus Backend() const override { return backend; }

  std::map<std::string, std::shared_ptr<FakeServed>> models;
  std::map<std::string, std::vector<VersionStatus>> statuses;
  std::map<std::string, int64_t, std::less<>> labels;  // of every model
  ConfigState config;
  std::vector<ModelStats> stats;
  BackendStatus backend;
  std::optional<int64_t> replaced;  // the generation that the last Reload named
  std::shared_ptr<CancelToken> reload_cancel;
  bool holds_reloads = false;  // until the test ends them
  std::vector<ReloadDone> held_reloads;
  std::string reload_by;
  std::function<absl::Status(std::vector<ModelConfig>, TimePoint)> on_reload =
      [](const std::vector<ModelConfig>&, TimePoint) {
        ADD_FAILURE() << "nothing was to be reloaded";
        return absl::OkStatus();
      };

 private:
  absl::StatusOr<std::optional<int64_t>> Version(const VersionChoice& choice) const {
    if (choice.label.empty()) return choice.version;
    const auto it = labels.find(choice.label);
    if (it == labels.end())
      return absl::InvalidArgumentError("no label '" + std::string(choice.label) + "'");
    return std::optional<int64_t>(it->second);
  }
};

// What was answered.
class FakeResponder : public Responder {
 public:
  void Write(std::string&& message) override {
    EXPECT_EQ(finishes, 0) << "nothing may follow Finish";
    messages.push_back(std::move(message));
  }
  using Responder::Finish;
  void Finish(const absl::Status& s, const Trailers& t) override {
    ++finishes;
    trailers = t;
    status = s;
  }
  void Defer() override {
    EXPECT_EQ(finishes, 0);
    deferred = true;
  }

  std::vector<std::string> messages;
  absl::Status status;
  Trailers trailers;
  int finishes = 0;
  bool deferred = false;
};

// Calls a unary method and returns what it answered so far.
inline std::shared_ptr<FakeResponder> CallUnary(
    const MethodTable& table, const std::string& path, const std::string& request,
    const std::vector<std::pair<std::string, std::string>>& metadata = {}, bool local = true) {
  const Method* const method = table.Find(path);
  auto responder = std::make_shared<FakeResponder>();
  EXPECT_NE(method, nullptr) << path;
  if (method == nullptr) return responder;
  CallHead info;
  info.path = path;
  for (const auto& [key, value] : metadata) info.metadata.emplace_back(key, value);
  info.cancel = std::make_shared<CancelToken>();
  info.principal = 12;
  info.local = local;
  const auto bytes = std::make_shared<const std::string>(request);
  Invoke(*method, info, Message{*bytes, bytes}, responder);
  return responder;
}

}  // namespace floe::server
