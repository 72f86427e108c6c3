// The request of a trial load as text, and the load in the other process.
#include "server/loading/trial_load.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"
#include "kernels/cpu/gemm/openblas.h"

namespace floe::server {
namespace {

// The running program, even if its file has been replaced.
constexpr char kProgram[] = "/proc/self/exe";
constexpr char kArgument[] = "--floe-trial-load";  // only for this use

// The request: numbers on a line, the file's path, which may have any bytes, and the configuration.
struct TrialRequest {
  int64_t version = 0, heaviest = 1, shares_sum = 0, run_bytes = 0, memory_limit = 0,
          memory_in_use = 0;
  std::string file;
  ServerConfig config;  // of one model
};

// `on_device`: the model's islands will be computed by a device.
std::string WriteRequest(const Trial& trial, ServerConfig config, bool on_device) {
  config.models = {trial.config};
  config.models[0].device = on_device ? "cuda" : "cpu";
  const std::string& file = trial.source.file;
  return absl::StrCat(trial.source.version, " ", trial.cpu_shares.heaviest, " ",
                      trial.cpu_shares.sum, " ", trial.run_bytes, " ", trial.memory_limit, " ",
                      trial.memory_in_use, " ", file.size(), "\n", file, ConfigToYaml(config));
}

absl::StatusOr<TrialRequest> ReadRequest(const std::string& text) {
  TrialRequest request;
  int64_t file_size = 0;
  size_t at = 0;
  for (int64_t* number :
       {&request.version, &request.heaviest, &request.shares_sum, &request.run_bytes,
        &request.memory_limit, &request.memory_in_use, &file_size}) {
    const size_t end = text.find_first_of(" \n", at);
    if (end == std::string::npos || !absl::SimpleAtoi(text.substr(at, end - at), number))
      return absl::InternalError("the request of the trial load cannot be read");
    at = end + 1;
  }
  request.file = text.substr(at, static_cast<size_t>(file_size));
  FLOE_ASSIGN_OR_RETURN(
      request.config,
      ParseConfig(text.substr(at + static_cast<size_t>(file_size)), "trial load", ""));
  if (request.config.models.size() != 1)
    return absl::InternalError("the request of the trial load names no model");
  return request;
}

absl::StatusOr<FileIdentity> TryLoad(const TrialRequest& request, TrialBoard* board) {
  const ModelConfig& config = request.config.models[0];
  LoadOptions options = LoadOptionsOf(request.config);
  options.prepare.cpu_shares = {request.heaviest, request.shares_sum};
  options.prepare.run_bytes = request.run_bytes;
  options.prepare.trial = true;
  if (!request.config.cpu.blas_library.empty())
    kernels::SetBlasLibrary(request.config.cpu.blas_library);
  // What is left of the limit, and of the machine where there is none.
  const int64_t limit = request.memory_limit;
  const int64_t left =
      limit > 0 ? std::max<int64_t>(1, limit - request.memory_in_use) : UsableMemory();
  const int64_t workers = WorkersOf(config, options.prepare.cpu_shares, FindUsableCpus());
  LimitTrialMemory(left, workers * config.intra_op_threads, board);
  FLOE_ASSIGN_OR_RETURN(const FileIdentity identity, IdentifyFile(request.file));
  MemoryBudget memory(limit);
  const absl::StatusOr<MemoryShare> others = memory.Take(request.memory_in_use);
  LoadSource source;
  source.version = request.version;
  source.file = request.file;
  source.identity = identity;
  FLOE_RETURN_IF_ERROR(LoadModel(config, source, options, memory).status());
  return identity;
}

// What a process is short of may be there later: such an end is no fault of the model.
absl::StatusOr<FileIdentity> TryOrCatch(const TrialTask& task) {
  try {
    StartThreadSource();
    FLOE_ASSIGN_OR_RETURN(const TrialRequest request, ReadRequest(task.request));
    return TryLoad(request, task.board);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("memory ran out in the trial load");
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a thread of the trial load could not be made (", e.what(),
                     "); raise the limit of threads (TasksMax of the unit, ulimit -u)"));
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("the trial load failed: ", e.what()));
  }
}

}  // namespace

LoadOptions LoadOptionsOf(const ServerConfig& config) {
  LoadOptions options;
  // The choices of the key cpu.gemm are the backends' names.
  options.compile.kernels.gemm = GemmBackendFromName(config.cpu.gemm).value_or(GemmBackend::kAuto);
  options.default_reply = config.reply;
  options.prepare.own_batching_parameters = config.lifecycle.enable_per_model_batching_parameters;
  options.prepare.replay_recorded = config.lifecycle.enable_model_warmup;
  options.prepare.replays = config.lifecycle.num_request_iterations_for_warmup;
  options.prepare.warm_up_optional = config.lifecycle.warmup_optional;
  return options;
}

std::unique_ptr<TrialStarter> ForkTrialStarter(const ServerConfig& config, int argc, char** argv) {
  if (config.lifecycle.trial_load == TrialLoad::kNever) return nullptr;
  // The system lays the arguments one behind the other.
  const char* const end = argv[argc - 1] + std::strlen(argv[argc - 1]);
  auto starter = TrialStarter::Fork({argv[0], static_cast<size_t>(end - argv[0])}, RunTrial);
  return starter.ok() ? *std::move(starter) : nullptr;
}

TrialFunction TryInProcess(const ServerConfig& config, TrialStarter* starter,
                           std::shared_ptr<ModelDevices> devices) {
  const auto start = [starter, by_exec = ByExec({kProgram, kArgument})](const TrialFiles& files) {
    if (starter != nullptr)
      if (auto forked = starter->Start(files); forked.ok()) return forked;
    return by_exec(files);
  };
  return [config, start,
          devices = std::move(devices)](const Trial& trial) -> absl::StatusOr<FileIdentity> {
    ModelPlace place;
    if (devices != nullptr) {
      FLOE_ASSIGN_OR_RETURN(place, devices->Choose(trial.config));
    }
    const std::string request = WriteRequest(trial, config, place.device != nullptr);
    return RunTrialProcess(start, request, trial.limits);
  };
}

bool IsTrial(int argc, const char* const* argv) {
  return argc == 2 && std::strcmp(argv[1], kArgument) == 0;
}

void RunTrial() {
  auto task = BeginTrial();
  if (!task.ok()) std::_Exit(2);  // nobody could read an answer
  spdlog::set_level(spdlog::level::off);
  EndTrial(TryOrCatch(*task), task->board);
}

}  // namespace floe::server
