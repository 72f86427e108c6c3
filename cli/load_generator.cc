// The calls of `bench --target`. Whatever this costs is taken from the server on the same machine,
// so a message is serialised once, and no answer is parsed.
#include "cli/load_generator.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "base/cpus.h"
#include "base/mutex.h"
#include "cli/pacing.h"

namespace floe::cli {
namespace {

TimePoint Now() { return Clock::Steady().Now(); }

double ProcessCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Share `part` of `of` equal shares of `whole`, whose sum is `whole`.
int Share(int whole, int part, int of) { return whole / of + (part < whole % of ? 1 : 0); }

}  // namespace

void LoadResult::Add(const LoadResult& other) {
  succeeded += other.succeeded;
  failed += other.failed;
  unsent += other.unsent;
  latency.Add(other.latency);
  lag.Add(other.lag);
  for (const auto& [code, more] : other.errors) {
    LoadErrors& these = errors[code];
    if (these.count == 0) these.first_message = more.first_message;
    these.count += more.count;
  }
  seconds = std::max(seconds, other.seconds);
  reply_bytes = std::max(reply_bytes, other.reply_bytes);
}

// One part of the load, with connections and threads of its own.
class LoadGenerator::Worker : public Sender {
 public:
  Worker(const LoadOptions& options, int part, int of)
      : options_(options),
        part_(part),
        of_(of),
        timeout_(static_cast<int64_t>(options.target.timeout_s * 1e6)),
        token_(TokenMetadata(options.target).value_or(RpcClient::Metadata())),
        calls_(static_cast<size_t>(Share(options.concurrency, part, of))) {
    for (int i = Share(options.connections, part, of); i > 0; --i)
      stubs_.emplace_back(ChannelTo(options.target, /*own_connection=*/true));
    for (size_t i = 0; i < calls_.size(); ++i) calls_[i].stub = &stubs_[i % stubs_.size()];
    const grpc::Slice slice(options.request);
    request_ = grpc::ByteBuffer(&slice, 1);
  }

  // On any thread, while another runs this.
  int64_t ended() const { return ended_.load(std::memory_order_relaxed); }
  int64_t failed() const { return failed_.load(std::memory_order_relaxed); }

  LoadResult Run(TimePoint start, TimePoint end) {
    result_ = LoadResult();
    ended_ = failed_ = 0;
    queue_.emplace();
    end_ = last_ = end;
    if (options_.rate > 0) {
      RunOpen(start);
    } else {
      last_ = start;
      RunClosed();
    }
    result_.seconds = std::chrono::duration<double>(last_ - start).count();
    return std::move(result_);
  }

 private:
  struct Call {
    grpc::GenericStub* stub = nullptr;
    std::optional<grpc::ClientContext> context;  // one for each use
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer reply;
    grpc::Status status;
    TimePoint from;  // its latency counts from here
  };

  void RunClosed() {
    size_t waiting = calls_.size();
    for (Call& call : calls_) Start(call, Now());
    void* tag = nullptr;
    bool ok = false;
    while (waiting > 0 && queue_->Next(&tag, &ok)) {
      Call& call = *static_cast<Call*>(tag);
      const TimePoint now = End(call);
      if (now < end_) {
        Start(call, Now());
      } else {
        --waiting;
      }
    }
    queue_->Shutdown();
    while (queue_->Next(&tag, &ok)) {
    }
  }

  void RunOpen(TimePoint start) {
    {
      MutexLock lock(mutex_);
      for (Call& call : calls_) free_.push_back(&call);
    }
    std::thread answers([this] {
      void* tag = nullptr;
      bool ok = false;
      while (queue_->Next(&tag, &ok)) {
        Call* const call = static_cast<Call*>(tag);
        End(*call);
        MutexLock lock(mutex_);
        free_.push_back(call);
        freed_.NotifyOne();
      }
    });
    Arrivals arrivals(options_.rate, options_.constant_arrivals, part_, of_);
    const Paced paced = Pace(arrivals, start, end_, *this);
    {
      MutexLock lock(mutex_);
      while (free_.size() < calls_.size()) freed_.Wait(mutex_);
      free_.clear();
    }
    queue_->Shutdown();
    answers.join();
    result_.unsent = paced.unsent;
    result_.lag = lag_;
    lag_ = LatencyHistogram();
  }

  void WaitUntil(TimePoint due) override {
    prctl(PR_SET_TIMERSLACK, 1);  // of this thread: it would be 50 us late
    std::this_thread::sleep_until(due);
  }

  bool Send(TimePoint due) override {
    Call* call = nullptr;
    {
      MutexLock lock(mutex_);
      while (free_.empty())
        if (!freed_.WaitUntil(mutex_, end_)) return false;
      call = free_.back();
      free_.pop_back();
    }
    lag_.Record(Now() - due);
    Start(*call, due);
    return true;
  }

  void Start(Call& call, TimePoint from) {
    call.from = from;
    call.context.emplace();
    call.context->set_deadline(std::chrono::system_clock::now() + timeout_);
    for (const auto& [key, value] : token_) call.context->AddMetadata(key, value);
    call.reader = call.stub->PrepareUnaryCall(&*call.context, options_.method, request_, &*queue_);
    call.reader->StartCall();
    call.reader->Finish(&call.reply, &call.status, &call);
  }

  // Counts what has come, and returns when that was.
  TimePoint End(Call& call) {
    const TimePoint now = Now();
    last_ = std::max(last_, now);
    if (call.status.ok()) {
      ++result_.succeeded;
      result_.latency.Record(now - call.from);
      result_.reply_bytes = static_cast<int64_t>(call.reply.Length());
    } else {
      ++result_.failed;
      LoadErrors& errors = result_.errors[static_cast<absl::StatusCode>(call.status.error_code())];
      if (errors.count++ == 0) errors.first_message = call.status.error_message();
      failed_.fetch_add(1, std::memory_order_relaxed);
    }
    ended_.fetch_add(1, std::memory_order_relaxed);
    call.reader.reset();
    call.context.reset();
    call.reply.Clear();
    return now;
  }

  const LoadOptions& options_;
  const int part_, of_;
  const std::chrono::microseconds timeout_;
  const RpcClient::Metadata token_;       // its file was read before, for the metadata of the model
  std::vector<grpc::GenericStub> stubs_;  // each with its connection
  std::vector<Call> calls_;               // each on its connection
  grpc::ByteBuffer request_;
  std::optional<grpc::CompletionQueue> queue_;  // of this run
  TimePoint end_, last_;                        // when sending ends; the last answer
  LoadResult result_;                           // of the thread that takes answers
  LatencyHistogram lag_;                        // of the thread that sends
  std::atomic<int64_t> ended_{0}, failed_{0};
  Mutex mutex_;
  CondVar freed_;
  std::vector<Call*> free_ ABSL_GUARDED_BY(mutex_);  // in an open loop
};

LoadGenerator::LoadGenerator(LoadOptions options) : options_(std::move(options)) {
  const int count = std::min(options_.connections, FindUsableCpus().count());
  for (int part = 0; part < count; ++part)
    workers_.push_back(std::make_unique<Worker>(options_, part, count));
}

LoadGenerator::~LoadGenerator() = default;

LoadResult LoadGenerator::Run(double seconds, const Progress& progress) {
  constexpr std::chrono::milliseconds kBetweenReports(250);
  const double cpu_before = ProcessCpuSeconds();
  const TimePoint start = Now();
  const TimePoint end =
      start + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  std::vector<std::future<LoadResult>> parts;
  for (const auto& worker : workers_)
    parts.push_back(std::async(std::launch::async, [&] { return worker->Run(start, end); }));
  LoadResult result;
  for (std::future<LoadResult>& part : parts) {
    while (part.wait_for(kBetweenReports) == std::future_status::timeout) {
      if (!progress) continue;
      int64_t ended = 0, failed = 0;
      for (const auto& worker : workers_) {
        ended += worker->ended();
        failed += worker->failed();
      }
      progress(std::chrono::duration<double>(Now() - start).count(), ended, failed);
    }
    result.Add(part.get());
  }
  result.cpu_seconds = ProcessCpuSeconds() - cpu_before;
  return result;
}

}  // namespace floe::cli
