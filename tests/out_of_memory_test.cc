// Every allocation of a load and of a request fails once: each ends in an error status, never in a
// crash, a leak or a wrong answer. The allocator itself fails, on the thread that asks for it.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/memory_budget.h"
#include "model/import/savedmodel/saved_model.h"
#include "model/import/within_limits.h"
#include "runtime/exec_context.h"
#include "server/api/fakes_for_test.h"
#include "server/api/methods.h"
#include "server/executor/plan_executor.h"
#include "server/executor/test_models_for_test.h"
#include "server/loading/loader.h"
#include "server/scheduling/scheduler.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"
#include "tests/libc_allocator.h"

namespace {

thread_local int64_t fails_in = 0;  // allocations of this thread until one fails; 0: none does
thread_local bool failed = false;
std::atomic<int64_t> outstanding{0};  // allocations that were not freed

bool Fails() {
  if (fails_in == 0 || --fails_in > 0) return false;
  failed = true;
  errno = ENOMEM;
  return true;
}

void* Counted(void* memory) {
  if (memory != nullptr) outstanding.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

}  // namespace

// Everything but glibc's own allocator comes through here.
extern "C" {
void* malloc(size_t size) { return Fails() ? nullptr : Counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) {
  return Fails() ? nullptr : Counted(__libc_calloc(count, size));
}
void* realloc(void* memory, size_t size) {
  if (Fails()) return nullptr;
  return memory == nullptr ? Counted(__libc_malloc(size)) : __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return Fails() ? nullptr : Counted(__libc_memalign(alignment, size));
}
void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = aligned_alloc(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  if (memory != nullptr) outstanding.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}
}

namespace floe::server {
namespace {

// Calls `body` with its first allocation failing, its second one and so on, until it has no more.
// Each time it says whether it ended as it should and, unless it `may_leak`, as protobuf's parsers
// do, leaves nothing behind.
void FailEach(const std::function<std::string()>& body, int64_t step = 1, bool may_leak = false) {
  ASSERT_EQ(body(), "") << "without a failure";
  ASSERT_EQ(body(), "") << "with all that is made once there";
  for (int64_t n = 1;; n += step) {
    const int64_t before = outstanding;
    failed = false;
    fails_in = n;
    std::string wrong = body();
    fails_in = 0;
    if (!wrong.empty()) FAIL() << "allocation " << n << ": " << wrong;
    if (!failed) {
      testing::Test::RecordProperty("allocations", static_cast<int>(n));
      return;
    }
    // What came to be made once in a run that failed is no leak: a second run makes it no more.
    if (may_leak || outstanding <= before) continue;
    const int64_t again = outstanding;
    failed = false;
    fails_in = n;
    wrong = body();
    fails_in = 0;
    ASSERT_EQ(wrong, "") << "allocation " << n;
    ASSERT_LE(outstanding, again) << "allocation " << n << " leaks";
  }
}

// Nothing fails within it: what callers make is theirs.
class Spared {
 public:
  Spared() : later_(std::exchange(fails_in, 0)) {}
  ~Spared() { fails_in = later_; }
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;

 private:
  const int64_t later_;
};

// "" for success and for memory that ran out, as far as anything failed.
std::string Fair(const absl::Status& status) {
  if (status.ok() || (failed && absl::IsResourceExhausted(status))) return "";
  return status.ToString();
}

// A convolution's worth of node kinds: weights to pack, a constant to fold, strings.
constexpr char kGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 2 } dim { size: 3 } } float_val: 1 } } } }
node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 3 } } float_val: [1, 2, 3] } } } }
node { name: "b" op: "Add" input: "a" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "m" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "s" op: "BiasAdd" input: "m" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "s" attr { key: "T" value { type: DT_FLOAT } } }
)";

absl::Status LoadAndRun(const ImportedModel& imported) {
  const auto model = Model::Create({{"m", 1, ""}, imported.graph, imported.signatures}, {});
  if (!model.ok()) return model.status();
  const auto& form = (*model)->Find("")->default_variant();
  ExecContext context;
  const auto plan = form.Bind({Shape({2, 2})});
  if (!plan.ok()) return plan.status();
  absl::Status prepared = context.Prepare(*plan, 2);
  if (!prepared.ok()) return prepared;
  const float x[] = {1, 2, -30, 4};
  context.BindInput(0, x);
  absl::Status status = context.Run();
  if (!status.ok()) return status;
  const float* y = context.Output(0).as<float>();
  const float expected[] = {5, 7, 9, 0, 0, 0};
  for (int i = 0; i < 6; ++i)
    if (y[i] != expected[i]) return absl::InternalError("a wrong answer");
  return absl::OkStatus();
}

TEST(OutOfMemory, CompilingAndRunning) {
  const auto imported = ImportBytes(kGraph, {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  FailEach([&] { return Fair(CatchOutOfMemory([&] { return LoadAndRun(*imported); })); });
}

TEST(OutOfMemory, LoadingAsTheServerDoes) {
  spdlog::set_level(spdlog::level::off);
  const MemoryBudget memory;
  ModelConfig config;
  config.name = "m";
  config.workers = 1;
  LoadOptions options;
  const LoadSource source{1, "", kGraph};
  FailEach(
      [&] {
        auto loaded = LoadModel(config, source, options, memory);
        const Spared spared;
        if (loaded.ok()) (*loaded)->Stop();
        const absl::Status status = loaded.status();
        loaded = absl::UnknownError("gone");
        if (memory.in_use() != 0) return std::string("memory stays in use");
        return Fair(status);
      },
      /*step=*/7, /*may_leak=*/true);
}

// A SavedModel as people read it, and what protobuf holds in maps: signatures, attributes of nodes
// and of functions, a function as an attribute.
constexpr char kSavedModel[] = R"(
saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def {
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
    node { name: "y" op: "PartitionedCall" input: "x"
      attr { key: "Tin" value { list { type: DT_FLOAT } } }
      attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: "inner"
        attr { key: "T" value { type: DT_FLOAT } } } } } }
    library { function {
      signature { name: "inner" input_arg { name: "a" type: DT_FLOAT }
        output_arg { name: "r" type: DT_FLOAT } }
      node_def { name: "n" op: "Neg" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "r" value: "n:y:0" } attr { key: "api" value { b: true } } } }
  }
  signature_def { key: "serving_default" value {
    inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT } }
    outputs { key: "y" value { name: "y:0" dtype: DT_FLOAT } } } }
}
)";

TEST(OutOfMemory, ReadingASavedModel) {
  tensorflow::SavedModel message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kSavedModel, &message));
  const std::string binary = message.SerializeAsString();
  for (const std::string& bytes : {binary, std::string(kSavedModel)})
    FailEach(
        [&] {
          return Fair(WithinLimits(
              {}, [&] { return ImportSavedModelBytes(bytes, "/nowhere", {}).status(); }));
        },
        /*step=*/1, /*may_leak=*/true);
}

class Serving : public testing::Test {
 protected:
  Serving() {
    Scheduler::Options options;
    options.threads = 0;
    options.name = "m";
    options.limits.max_rows = 4;
    scheduler_ = std::make_unique<Scheduler>(
        std::make_unique<PlanExecutor>(1, 1, PlanExecutor::Options{.max_rows = 4}), options);
  }
  void Drain() {
    while (scheduler_->Step()) {
    }
  }

  const ModelHandle model_ = CompileText(kTwiceGraph);
  std::unique_ptr<Scheduler> scheduler_;
};

// Shapes of every size, so that plans are bound; rows that are split among runs, too.
TEST_F(Serving, ThroughTheQueue) {
  for (const int64_t rows : {int64_t{1}, int64_t{3}, int64_t{10}}) {
    FailEach([&] {
      std::optional<Spared> spared(std::in_place);
      const std::vector<float> values(static_cast<size_t>(2 * rows), 1);
      FloatCall first({{Shape({rows, 2}), values}}), second({{Shape({1, 2}), {3, 4}}});
      auto a = first.MakeRequest(model_), b = second.MakeRequest(model_);
      first.result.reserve(values.size());
      second.result.reserve(2);
      spared.reset();
      scheduler_->Submit(std::move(a));
      scheduler_->Submit(std::move(b));
      Drain();
      spared.emplace();
      if (first.answers != 1 || second.answers != 1) return std::string("not answered once");
      if (first.status.ok() && first.result != std::vector<float>(values.size(), 2))
        return std::string("a wrong answer");
      if (second.status.ok() && second.result != std::vector<float>({6, 8}))
        return std::string("a wrong answer");
      const std::string fair = Fair(first.status);
      return fair.empty() ? Fair(second.status) : fair;
    });
  }
}

class Answer : public Responder {
 public:
  void Write(std::string&& message) override { message_ = std::move(message); }
  using Responder::Finish;
  void Finish(const absl::Status& status, const Trailers&) override {
    ++finished_;
    status_ = status;
  }
  std::string message_;
  absl::Status status_ = absl::UnknownError("not finished");
  int finished_ = 0;
};

TEST_F(Serving, FromItsMessageToItsReply) {
  FakeRegistry registry;
  HealthState health;
  registry.models["m"] = std::make_shared<FakeServed>(model_);
  registry.models["m"]->on_submit = [this](Request request) {
    scheduler_->Submit(std::move(request));
  };
  const Method predict = PredictMethod({registry, health});
  for (const bool lists : {false, true}) {
    tensorflow::serving::PredictRequest sent;
    sent.mutable_model_spec()->set_name("m");
    tensorflow::TensorProto& x = (*sent.mutable_inputs())["x"];
    x.set_dtype(tensorflow::DT_FLOAT);
    for (const int64_t dim : {2, 2}) x.mutable_tensor_shape()->add_dim()->set_size(dim);
    const float values[] = {1, 2, 3, 4};
    if (lists) {
      for (const float value : values) x.add_float_val(value);
    } else {
      x.set_tensor_content(std::string(reinterpret_cast<const char*>(values), sizeof values));
    }
    const std::string bytes = sent.SerializeAsString();
    FailEach([&] {
      std::optional<Spared> spared(std::in_place);
      const auto answer = std::make_shared<Answer>();
      CallHead call;
      call.cancel = std::make_shared<CancelToken>();
      spared.reset();
      const absl::Status status = CatchOutOfMemory([&] {
        Invoke(predict, call, Message{bytes, nullptr}, answer);
        return absl::OkStatus();
      });
      if (!status.ok()) return answer->finished_ == 0 ? Fair(status) : std::string("twice");
      Drain();
      spared.emplace();
      if (answer->finished_ != 1) return std::string("not answered once");
      if (!answer->status_.ok()) return Fair(answer->status_);
      tensorflow::serving::PredictResponse reply;
      const bool right = reply.ParseFromString(answer->message_) &&
                         reply.outputs().at("y").float_val_size() == 4 &&
                         reply.outputs().at("y").float_val(3) == 8;
      return std::string(right ? "" : "a wrong answer");
    });
  }
}

}  // namespace
}  // namespace floe::server
