// Batch sizes chosen by measurement against sizes set by hand: a model behind its queue in this
// process, many callers that each wait for their answer, no RPC.
//
//     batch_bench MODEL [--clients 64] [--rows 1] [--workers 1] [--seconds 0.5] [--rounds 5]
//                       [--sizes 1,2,4] [--check]
//
// Sizes are measured in turns; figures are medians over the rounds. --check fails below 0.9 of the
// best size set by hand.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "server/loading/loader.h"
#include "server/registry/version_scan.h"

namespace floe::server {
namespace {

struct Settings {
  std::string model;
  int clients = 64;
  int64_t rows = 1;
  int64_t workers = 1;
  double seconds = 0.5;
  int rounds = 5;
  std::vector<int64_t> sizes = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  bool check = false;
};

double Median(std::vector<double> values, double quantile = 0.5) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(quantile * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

double Micros(Duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// The inputs of one request: unknown non-batch dims are 1, values a pattern.
std::vector<Tensor> Inputs(const Signature& signature, int64_t rows) {
  std::vector<Tensor> inputs;
  const CompiledSignature& variant = signature.default_variant();
  for (size_t i = 0; i < variant.signature().inputs.size(); ++i) {
    const TensorType& type = variant.signature().inputs[i].type;
    Shape shape;
    for (int axis = 0; axis < type.shape.rank(); ++axis) {
      const bool is_rows = axis == 0 && variant.InputHasRows(static_cast<int>(i));
      const Dim dim = type.shape.dim(axis);
      shape.push_back(is_rows ? rows : dim.concrete() ? dim.size() : 1);
    }
    inputs.push_back(Tensor::Allocate(type.dtype, shape));
    Tensor& tensor = inputs.back();
    if (type.dtype == DType::kString) continue;
    if (tensor.bytes() > 0) std::memset(tensor.mutable_data(), 0, tensor.bytes());
    if (type.dtype != DType::kFloat32) continue;
    auto* values = static_cast<float*>(tensor.mutable_data());
    for (int64_t k = 0; k < tensor.elements(); ++k) values[k] = static_cast<float>(k % 17) / 17;
  }
  return inputs;
}

// A served model at one batch size, and what was measured of it.
struct Contender {
  int64_t size;  // 0: auto
  std::shared_ptr<LocalServed> served;
  std::vector<double> rates, p50s, p99s, rows_a_run;
};

class Caller {
 public:
  Caller(LocalServed& served, const std::vector<Tensor>& inputs)
      : served_(served), inputs_(inputs) {}

  // One request; false when it failed.
  bool Call() {
    const Signature* signature = served_.model()->Find("");
    const auto asked = std::make_shared<Inference>();
    asked->model = served_.model();
    asked->signature = signature;
    asked->inputs.resize(signature->def().inputs.size());
    size_t next = 0;
    for (size_t i = 0; i < signature->def().inputs.size(); ++i)
      if (!signature->def().inputs[i].optional) asked->inputs[i] = inputs_[next++].view();
    Request request{.asked = asked};
    request.complete = [this](const absl::StatusOr<Outputs>& outputs, const Timings&) {
      ok_ = outputs.ok();
      answered_.release();
    };
    served_.Submit(std::move(request));
    answered_.acquire();
    return ok_;
  }

 private:
  LocalServed& served_;
  const std::vector<Tensor>& inputs_;
  std::binary_semaphore answered_{0};
  bool ok_ = true;
};

void Load(const Settings& settings, const std::vector<Tensor>& inputs, Contender* contender) {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> failed{0};
  std::vector<std::vector<double>> latencies(static_cast<size_t>(settings.clients));
  const SchedulerStats before = contender->served->scheduler().Stats();
  std::vector<std::thread> threads;
  threads.reserve(latencies.size());
  const TimePoint start = Clock::Steady().Now();
  for (auto& mine : latencies)
    threads.emplace_back([&] {
      Caller caller(*contender->served, inputs);
      while (!stop) {
        const TimePoint sent = Clock::Steady().Now();
        failed += !caller.Call();
        mine.push_back(Micros(Clock::Steady().Now() - sent));
      }
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double seconds = Micros(Clock::Steady().Now() - start) / 1e6;
  if (failed > 0) std::fprintf(stderr, "%ld requests failed\n", static_cast<long>(failed));
  std::vector<double> all;
  for (const auto& mine : latencies) all.insert(all.end(), mine.begin(), mine.end());
  const SchedulerStats after = contender->served->scheduler().Stats();
  const auto runs = static_cast<double>(after.batches.batches - before.batches.batches);
  contender->rates.push_back(static_cast<double>(all.size()) / seconds);
  contender->p50s.push_back(Median(all));
  contender->p99s.push_back(Median(all, 0.99));
  contender->rows_a_run.push_back(static_cast<double>(after.batches.rows - before.batches.rows) /
                                  std::max(1.0, runs));
}

// The median of one caller alone.
double IdleMicros(const std::vector<Tensor>& inputs, LocalServed& served) {
  Caller caller(served, inputs);
  std::vector<double> latencies;
  for (int i = 0; i < 500; ++i) {
    const TimePoint sent = Clock::Steady().Now();
    caller.Call();
    latencies.push_back(Micros(Clock::Steady().Now() - sent));
  }
  return Median(latencies);
}

int Report(const Settings& settings, const std::vector<Tensor>& inputs,
           const std::vector<Contender>& contenders) {
  std::printf("%8s %12s %10s %10s %10s\n", "size", "requests/s", "p50 us", "p99 us", "rows/run");
  const Contender* best = nullptr;
  for (const Contender& one : contenders) {
    const std::string name = one.size == 0 ? "auto" : std::to_string(one.size);
    std::printf("%8s %12.0f %10.0f %10.0f %10.1f\n", name.c_str(), Median(one.rates),
                Median(one.p50s), Median(one.p99s), Median(one.rows_a_run));
    if (one.size != 0 && (best == nullptr || Median(one.rates) > Median(best->rates))) best = &one;
  }
  const double of_best = Median(contenders[0].rates) / Median(best->rates);
  std::printf("auto: %.2f of the best size set by hand (%ld); idle: %.1f us, with size 1 %.1f us\n",
              of_best, static_cast<long>(best->size), IdleMicros(inputs, *contenders[0].served),
              IdleMicros(inputs, *contenders[1].served));
  return settings.check && of_best < 0.9 ? 1 : 0;
}

int Main(const Settings& settings) {
  const auto found = ScanVersions(settings.model);
  const absl::Status error = found.ok() ? found->front().error : found.status();
  if (!error.ok()) {
    std::fprintf(stderr, "%s\n", std::string(error.message()).c_str());
    return 2;
  }
  std::vector<Contender> contenders = {{0, nullptr, {}, {}, {}, {}}};
  for (const int64_t size : settings.sizes) contenders.push_back({size, nullptr, {}, {}, {}, {}});
  for (Contender& contender : contenders) {
    ModelConfig config;
    config.name = "bench";
    config.workers = settings.workers;
    config.batching.max_batch_size = contender.size;
    // The same queue for all: what is compared is the size of runs.
    config.batching.max_enqueued_batches =
        contender.size == 0 ? 4096 : std::max<int64_t>(64, 4096 / contender.size);
    auto served = LoadModel(config, {1, found->front().file, ""}, {}, MemoryBudget());
    if (!served.ok()) {
      std::fprintf(stderr, "%s\n", std::string(served.status().message()).c_str());
      return 2;
    }
    contender.served = *std::move(served);
  }
  const std::vector<Tensor> inputs =
      Inputs(*contenders[0].served->model()->Find(""), settings.rows);
  for (int round = 0; round < settings.rounds; ++round)
    for (Contender& contender : contenders) Load(settings, inputs, &contender);
  const int exit_code = Report(settings, inputs, contenders);
  for (Contender& contender : contenders) contender.served->scheduler().Stop();
  return exit_code;
}

bool Parse(int argc, char** argv, Settings* settings) {
  if (argc < 2 || argv[1][0] == '-') return false;
  settings->model = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--check") {
      settings->check = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* value = argv[++i];
    if (flag == "--clients") {
      settings->clients = std::max(1, std::atoi(value));
    } else if (flag == "--rows") {
      settings->rows = std::max(1, std::atoi(value));
    } else if (flag == "--workers") {
      settings->workers = std::max(1, std::atoi(value));
    } else if (flag == "--seconds") {
      settings->seconds = std::atof(value);
    } else if (flag == "--rounds") {
      settings->rounds = std::max(1, std::atoi(value));
    } else if (flag == "--sizes") {
      settings->sizes.clear();
      for (char* at = argv[i]; *at != '\0'; at += *at == ',')
        settings->sizes.push_back(std::max(1L, std::strtol(at, &at, 10)));
    } else {
      return false;
    }
  }
  return !settings->sizes.empty();
}

}  // namespace
}  // namespace floe::server

int main(int argc, char** argv) {
  floe::server::Settings settings;
  if (!floe::server::Parse(argc, argv, &settings)) {
    std::fprintf(stderr,
                 "usage: batch_bench MODEL [--clients N] [--rows N] [--workers N] [--seconds S] "
                 "[--rounds N] [--sizes N,N...] [--check]\n");
    return 2;
  }
  return floe::server::Main(settings);
}
