// A request on a static graph allocates nothing: the allocator itself is counted, in every thread.
// Graphs with values whose size the run settles are measured and reported.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "cli/local_model.h"
#include "runtime/test_loops.h"
#include "server/api/api.h"
#include "server/executor/plan_executor.h"
#include "server/executor/test_models_for_test.h"
#include "server/registry/local_registry.h"
#include "server/scheduling/scheduler.h"
#include "tensorflow_serving/apis/predict.pb.h"
#include "tests/libc_allocator.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> calls{0}, bytes{0};
void* first_stack[32];
int first_depth = 0;

void Count(size_t size) {
  if (!counting.load(std::memory_order_relaxed)) return;
  bytes += static_cast<int64_t>(size);
  if (calls++ != 0) return;
  counting = false;  // backtrace may allocate
  first_depth = backtrace(first_stack, 32);
  counting = true;
}

}  // namespace

// Everything but glibc's own allocator comes through here.
extern "C" {
void* malloc(size_t size) {
  Count(size);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count(count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  Count(size);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  Count(size);
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

namespace floe::cli {
namespace {

namespace fs = std::filesystem;

struct Allocations {
  int64_t calls = 0, bytes = 0;
};

template <typename Body>
Allocations Counted(const Body& body) {
  first_depth = 0;
  calls = 0;
  bytes = 0;
  counting = true;
  body();
  counting = false;
  return {calls, bytes};
}

void ExpectAtMost(int64_t calls_allowed, const Allocations& allocations, const std::string& what) {
  EXPECT_LE(allocations.calls, calls_allowed)
      << what << " allocated " << allocations.bytes << " bytes";
  if (allocations.calls > calls_allowed)
    backtrace_symbols_fd(first_stack, first_depth, STDERR_FILENO);
}

// Memory that is asked for now and then costs nothing that could be measured.
constexpr int64_t kFewPerRun = 4;

TEST(Allocations, AreCounted) {
  volatile size_t size = 100;
  void* volatile seen = nullptr;  // so that no compiler leaves the pair out
  EXPECT_EQ(Counted([&] {
              seen = ::operator new(size);
              ::operator delete(seen);
            }).calls,
            1);
  EXPECT_EQ(Counted([&] {
              seen = std::aligned_alloc(64, size * 64);
              std::free(seen);
            }).bytes,
            6400);
}

class Request : public testing::Test {
 protected:
  void Load(const fs::path& path, const std::vector<std::string>& disabled_passes = {}) {
    LocalOptions options;
    options.compile.disabled_passes = disabled_passes;
    auto model = LoadLocal(path.string(), options);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    for (int64_t rows : {int64_t{2}, int64_t{1}}) {
      auto made = MakeUpCall(*model_.signature, {{rows}, /*unknown_dim=*/32});
      ASSERT_TRUE(made.ok()) << made.status();
      calls_.push_back(std::move(made->call));
    }
  }

  // What a request does once its inputs are there: find the plan, prepare, run.
  void RunAll(ExecContext& context) {
    for (const BoundCall& call : calls_) {
      absl::InlinedVector<Shape, 8> shapes;
      for (const Tensor& input : call.inputs) shapes.push_back(input.shape());
      const auto plan = call.variant->Bind(shapes);
      ok_ = ok_ && plan.ok() && context.Prepare(*plan, call.rows).ok();
      for (size_t i = 0; i < call.inputs.size(); ++i)
        context.BindInput(static_cast<int>(i), call.inputs[i].data());
      ok_ = ok_ && context.Run().ok();
    }
  }

  Allocations Warm(int threads) {
    ExecContext context(threads);
    RunAll(context);
    return Counted([&] { RunAll(context); });
  }

  LocalModel model_;
  std::vector<BoundCall> calls_;
  bool ok_ = true;
};

class StaticRequest : public Request, public testing::WithParamInterface<const char*> {};

TEST_P(StaticRequest, AllocatesAlmostNothing) {
  const fs::path path = fs::path(FLOE_SOURCE_DIR) / GetParam();
  if (!fs::exists(path)) GTEST_SKIP() << "needs ../shared";
  Load(path);
  ASSERT_FALSE(calls_.empty());
  ASSERT_FALSE(calls_[0].plan->has_dynamic_steps());
  for (int threads : {1, 3}) {
    const Allocations allocations = Warm(threads);
    EXPECT_TRUE(ok_);
    ExpectAtMost(kFewPerRun * static_cast<int64_t>(calls_.size()), allocations,
                 std::to_string(threads) + " threads");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, StaticRequest,
                         testing::Values("examples/mnist/models/mnist_beginner/1/frozen.pb",
                                         "examples/mnist/models/mnist_conv/1/frozen.pb",
                                         "../shared/models/mobilenet_v2/graph.pb",
                                         "../shared/models/transformer/graph.pb",
                                         "../shared/models/small_140/graph.pb",
                                         "../shared/models/rnn_small/graph.pb",
                                         "../shared/models/rnn_small_v1/graph.pb"),
                         [](const auto& info) {
                           std::string name = fs::path(info.param).parent_path().string();
                           for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
                           return name;
                         });

class DynamicRequest : public Request, public testing::WithParamInterface<const char*> {};

// Loops look up plans and hand values on; what they need comes from pools that have it, so a run
// asks the system for little, and for no more from run to run.
TEST_P(DynamicRequest, NeedsNoMoreFromRunToRun) {
  const fs::path path = fs::path(FLOE_SOURCE_DIR) / GetParam();
  if (!fs::exists(path)) GTEST_SKIP() << "needs ../shared";
  Load(path, {"fuse_recurrent"});
  ASSERT_FALSE(calls_.empty());
  ExecContext context(1);
  for (int round = 0; round < 2; ++round) RunAll(context);
  const size_t held = context.pool_bytes();
  const Allocations allocations = Counted([&] { RunAll(context); });
  EXPECT_TRUE(ok_);
  EXPECT_EQ(context.pool_bytes(), held);
  std::cout << GetParam() << ": " << allocations.calls << " allocations, " << allocations.bytes
            << " bytes in " << calls_.size() << " runs; pool " << held << " bytes\n";
}

INSTANTIATE_TEST_SUITE_P(Models, DynamicRequest,
                         testing::Values("../shared/models/rnn_small/graph.pb",
                                         "../shared/models/rnn_small_v1/graph.pb"),
                         [](const auto& info) {
                           std::string name = fs::path(info.param).parent_path().filename();
                           return name;
                         });

class CollectingAllocations : public testing::TestWithParam<Container> {};

// What a loop asks of the allocator grows with its steps and not faster, as it would if a step
// copied what others stored.
TEST_P(CollectingAllocations, AreLinearInTheSteps) {
  Allocations by_steps[2];
  for (const int longer : {0, 1}) {
    const auto compiled = CollectingLoop(GetParam(), longer != 0 ? 10000 : 1000, 16).Compile();
    ASSERT_NE(compiled, nullptr);
    const auto plan = compiled->Bind({Shape({16})});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const std::vector<float> x(16, 1.0f);
    ExecContext context;
    const auto run = [&] {
      ASSERT_TRUE(context.Prepare(*plan, 1).ok());
      context.BindInput(0, x.data());
      ASSERT_TRUE(context.Run().ok());
    };
    run();
    by_steps[longer] = Counted(run);
  }
  std::cout << ContainerName(GetParam()) << ": " << by_steps[1].calls << " allocations, "
            << by_steps[1].bytes << " bytes in 10000 steps\n";
  EXPECT_LE(by_steps[1].calls, 10 * by_steps[0].calls + 100);
  // Vectors grow by doubling, which may round the longer run up by two; copies of what is stored
  // would make it a hundred times.
  EXPECT_LE(by_steps[1].bytes, 20 * by_steps[0].bytes);
}

INSTANTIATE_TEST_SUITE_P(Containers, CollectingAllocations,
                         testing::Values(Container::kList, Container::kPushedList,
                                         Container::kArray, Container::kGrowingArray),
                         [](const auto& info) { return ContainerName(info.param); });

// A request's way through a queue and back: batched, with a deadline and a token, on a worker of
// its own. There is one object, which has all that the queue needs of it. What the caller makes is
// the caller's.
TEST(Queue, AllocatesOneObjectForARequest) {
  using server::FloatCall;
  const ModelHandle model = server::CompileText(server::kTwiceGraph);
  ASSERT_NE(model, nullptr);
  server::Scheduler::Options options;
  options.limits.max_rows = 4;
  options.name = "counted";
  server::Scheduler scheduler(
      std::make_unique<server::PlanExecutor>(1, 1, server::PlanExecutor::Options{.max_rows = 4}),
      options);
  constexpr int kRequests = 200;
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  std::atomic<int> answered{0}, right{0};
  std::atomic<bool> go{true};
  std::vector<server::Request> requests;
  const auto make = [&](int count) {
    for (int i = 0; i < count; ++i) {
      requests.push_back(call.MakeRequest(model));
      server::Request& request = requests.back();
      request.deadline = Clock::Steady().Now() + std::chrono::hours(1);
      request.cancel = std::make_shared<CancelToken>();
      request.principal = 3;
      request.complete = [&](const absl::StatusOr<server::Outputs>& outputs,
                             const server::Timings&) {
        while (!go) std::this_thread::yield();
        right += outputs.ok() && (*outputs)[0].as<float>()[1] == 4;
        ++answered;
      };
    }
  };
  const auto submit_all = [&] {
    answered = 0;
    for (auto& request : requests) scheduler.Submit(std::move(request));
    go = true;
    while (answered < static_cast<int>(requests.size())) std::this_thread::yield();
  };
  // First all wait at the same time: in the run that counts so many may, and no more. Some of those
  // answered before may not be gone by then.
  go = false;
  make(2 * kRequests);
  submit_all();
  requests.clear();
  make(kRequests);
  right = 0;
  ExpectAtMost(kRequests, Counted(submit_all), "the queue");
  EXPECT_EQ(right, kRequests);
}

// Counts its answers, and copies none.
class CountingResponder : public server::Responder {
 public:
  void Write(std::string&& message) override { bytes_ = message.size(); }
  using server::Responder::Finish;
  void Finish(const absl::Status& status, const server::Trailers&) override {
    good_ += status.ok() && bytes_ > 0;
    ++answered_;
  }
  void WaitFor(int answers) const {
    while (answered_ < answers) std::this_thread::yield();
  }
  int good() const { return good_; }

 private:
  size_t bytes_ = 0;
  std::atomic<int> good_{0}, answered_{0};
};

void AddInput(tensorflow::serving::PredictRequest* request, const std::string& name,
              const std::vector<int64_t>& dims) {
  tensorflow::TensorProto& tensor = (*request->mutable_inputs())[name];
  tensor.set_dtype(tensorflow::DT_FLOAT);
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    tensor.mutable_tensor_shape()->add_dim()->set_size(dim);
    elements *= dim;
  }
  tensor.set_tensor_content(std::string(static_cast<size_t>(elements) * sizeof(float), '\0'));
}

// From the message as it came to the reply's bytes: registry, reading, queue or the caller's own
// thread, run, writing. There are two objects: the call and its request.
void ExpectFewInPredict(const ModelConfig& config,
                        const tensorflow::serving::PredictRequest& request) {
  server::LocalRegistry::Options options;
  options.lifecycle.file_system_poll_wait_seconds = 0;
  server::HealthState health;
  server::LocalRegistry registry({config}, options, &health);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  ASSERT_EQ(registry.Table()->CountModels().available, 1u);
  server::MethodTable methods;
  server::RegisterApi({registry, health}, &methods);
  const server::Method* const predict =
      methods.Find("/tensorflow.serving.PredictionService/Predict");
  ASSERT_NE(predict, nullptr);
  const auto bytes = std::make_shared<const std::string>(request.SerializeAsString());

  const auto responder = std::make_shared<CountingResponder>();
  server::CallHead call;
  call.path = "/tensorflow.serving.PredictionService/Predict";
  call.peer = "127.0.0.1:40213, longer than a string holds in itself";
  call.metadata.emplace_back("floe-priority", "3");
  call.deadline = Clock::Steady().Now() + std::chrono::hours(1);
  call.cancel = std::make_shared<CancelToken>();  // of all: each call clears it
  std::vector<server::CallHead> calls(4, call);
  for (size_t i = 1; i < calls.size(); ++i) calls[i].cancel = std::make_shared<CancelToken>();
  int sent = 0;
  const auto ask = [&](size_t at_once) {
    for (int i = 0; i < 100; ++i) {
      for (size_t k = 0; k < at_once; ++k)
        server::Invoke(*predict, calls[k], server::Message{*bytes, bytes}, responder);
      responder->WaitFor(sent += static_cast<int>(at_once));
    }
  };
  // A worker may still hold a call that it has answered when the next one comes.
  ask(calls.size());
  ask(1);
  ExpectAtMost(2 * 100, Counted([&] { ask(1); }), config.name);
  EXPECT_EQ(responder->good(), sent);
  registry.Stop();
}

class PredictRequest : public testing::TestWithParam<const char*> {};

TEST_P(PredictRequest, AllocatesTwoObjects) {
  // Longer than a string holds in itself.
  const char kName[] = "a model of handwritten digits", kInput[] = "the pixels of one digit",
             kOutput[] = "the likelihood of each";
  ModelConfig config;
  config.name = kName;
  config.signature.inputs[kInput] = "input";
  config.signature.outputs[kOutput] = "softmax";
  config.base_path = std::string(FLOE_SOURCE_DIR) + "/examples/mnist/models/" + GetParam();
  config.where = "here";
  if (config.base_path.ends_with("mnist_conv"))
    config.placeholder_defaults["keras_learning_phase"] = {false, ""};
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(kName);
  request.add_output_filter(kOutput);
  AddInput(&request, kInput, {1, 784});
  ExpectFewInPredict(config, request);
}

INSTANTIATE_TEST_SUITE_P(Models, PredictRequest, testing::Values("mnist_beginner", "mnist_conv"),
                         [](const auto& info) { return std::string(info.param); });

// As many inputs and outputs as are kept in place; half of the inputs have no rows.
TEST(WidePredictRequest, AllocatesNothing) {
  constexpr size_t kTensors = server::kUsualTensors;
  ModelConfig config;
  config.name = "wide";
  config.base_path = testing::TempDir() + "wide.pbtxt";
  config.where = "here";
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(config.name);
  std::string graph;
  for (size_t i = 0; i < kTensors; ++i) {
    const bool rows = i % 2 == 0;
    graph += absl::StrCat(R"(node { name: "x)", i, R"(" op: "Placeholder"
        attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { )",
                          rows ? "dim { size: -1 } dim { size: 4 }" : "", " } } } }\n");
    AddInput(&request, absl::StrCat("x", i),
             rows ? std::vector<int64_t>{1, 4} : std::vector<int64_t>{});
  }
  for (size_t i = 0; i < kTensors; ++i) {
    graph += absl::StrCat(R"(node { name: "y)", i, R"(" op: "Mul" input: "x)", i / 2 * 2,
                          R"(" input: "x)", (i + 1) % kTensors | 1,
                          R"(" attr { key: "T" value { type: DT_FLOAT } } })", "\n");
    request.add_output_filter(absl::StrCat("y", i));
  }
  std::ofstream(config.base_path) << graph;
  for (const bool inline_runs : {true, false}) {
    if (!inline_runs) config.inline_below_us = 0;
    ExpectFewInPredict(config, request);
  }
}

}  // namespace
}  // namespace floe::cli
