// A Lifecycle with a made-up disk, made-up loads and a clock to turn by hand.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/registry/lifecycle.h"
#include "server/registry/model_status.h"

namespace floe::server {

inline ModelConfig TestModel(const std::string& name, const std::string& path = "") {
  ModelConfig config;
  config.name = name;
  config.base_path = path.empty() ? "/" + name : path;
  return config;
}

inline Lifecycle::Options WithoutPolling() {
  Lifecycle::Options options;
  options.times.poll = Duration::zero();
  return options;
}

// A load's end that no further try changes.
inline const absl::Status kBadModel = absl::InvalidArgumentError("this is no model");
// One that another try may change.
inline const absl::Status kPassing = absl::UnavailableError("the disk is slow today");

// Looks happen at once; loads and unloads when the test says so.
class LifecycleWorld {
 public:
  explicit LifecycleWorld(const std::vector<ModelConfig>& models,
                          const Lifecycle::Options& options = Lifecycle::Options())
      : lifecycle_(models, options) {}

  // ---- the disk: by default, of files that have long been complete ----
  void Put(const std::string& path, int64_t version, uint64_t stamp = 1,
           Duration quiet = std::chrono::hours(1)) {
    FoundVersion found;
    found.version = version;
    found.file = absl::StrCat(path, "/", version, "/frozen.pb");
    found.stamp = stamp;
    found.quiet = quiet;
    disk_[path][version] = found;
  }
  void PutWithoutModel(const std::string& path, int64_t version) {
    Put(path, version);
    disk_[path][version].file.clear();
    disk_[path][version].error = kBadModel;
  }
  void Delete(const std::string& path, int64_t version) { disk_[path].erase(version); }
  void Unmount(const std::string& path) { disk_.erase(path); }
  void Fail(const std::string& path, const absl::Status& error) { failing_[path] = error; }
  // Looks at this place do not end until it recovers.
  void Hang(const std::string& path) { hanging_.insert(path); }
  void Recover(const std::string& path) {
    hanging_.erase(path);
    const std::vector<ScanAction> looks = std::move(hung_scans_);
    hung_scans_.clear();
    for (const ScanAction& scan : looks) End(scan);
    Step();
  }
  size_t hung_scans() const { return hung_scans_.size(); }
  // Whether scans that ask for it are watched. Who has changed something tells.
  void SetWatching(bool watching) { watching_ = watching; }
  void Tell(const std::string& model) {
    lifecycle_.FilesChanged({model}, now_);
    Step();
  }
  int watches_tried() const { return watches_tried_; }
  // Loads of this version end so, from now on.
  void Break(const std::string& model, int64_t version, const absl::Status& error) {
    broken_[{model, version}] = error;
  }
  void Mend(const std::string& model, int64_t version) { broken_.erase({model, version}); }

  // ---- time and work ----
  void Advance(Duration by) {
    now_ += by;
    Step();
  }
  void Step() {
    for (bool looked = true; looked;) {
      looked = false;
      std::vector<Lifecycle::Ended> ended;
      const Work work = lifecycle_.Step(now_, &ended);
      next_ = work.next;
      for (const Lifecycle::Ended& one : ended) one.transaction->End(one.status);
      for (const LoadAction& load : work.loads) {
        EXPECT_TRUE(ids_.insert(load.id).second || retried_.count(load.id)) << "loaded twice";
        loads_.push_back(load);
      }
      for (const UnloadAction& unload : work.unloads) {
        EXPECT_EQ(loaded_.count(unload.id), 1u) << "unloaded, but not loaded";
        unloads_.push_back(unload);
      }
      for (const ScanAction& scan : work.scans) {
        if (hanging_.count(scan.base_path) != 0) {
          hung_scans_.push_back(scan);
          continue;
        }
        End(scan);
        looked = true;
      }
    }
  }
  // The first load, or unload, that is under way ends.
  bool FinishLoad() {
    if (loads_.empty()) return false;
    const LoadAction load = loads_.front();
    loads_.pop_front();
    ++finished_loads_;
    const auto it = broken_.find({load.model, load.version});
    const absl::Status status = load.unwanted->cancelled() ? absl::CancelledError("")
                                : it != broken_.end()      ? it->second
                                                           : absl::OkStatus();
    if (status.ok()) {
      loaded_.insert(load.id);
    } else {
      retried_.insert(load.id);
    }
    lifecycle_.Loaded(load.model, load.id, status, now_);
    Step();
    return true;
  }
  bool FinishUnload() {
    if (unloads_.empty()) return false;
    const UnloadAction unload = unloads_.front();
    unloads_.pop_front();
    loaded_.erase(unload.id);
    lifecycle_.Unloaded(unload.model, unload.id);
    Step();
    return true;
  }
  // Until nothing is under way. Time stands still.
  void Finish() {
    Step();
    while (FinishLoad() || FinishUnload()) {
    }
  }
  int64_t Reload(std::vector<ModelConfig> models, Duration timeout = std::chrono::minutes(1),
                 std::optional<int64_t> replaces = std::nullopt) {
    const auto ticket = static_cast<int64_t>(transactions_.size());
    transactions_.push_back(std::make_shared<Transaction>(
        ReloadRequest{std::move(models), now_ + timeout, replaces, std::make_shared<CancelToken>()},
        [this, ticket](const absl::Status& outcome) { outcomes_[ticket] = outcome; }));
    lifecycle_.reloads().Add(transactions_.back());
    Step();
    return ticket;
  }
  void Cancel(int64_t ticket) {
    transactions_[static_cast<size_t>(ticket)]->wanted.cancel->Cancel();
    Step();
  }

  // ---- what there is ----
  bool Ended(int64_t ticket) const { return outcomes_.count(ticket) != 0; }
  absl::Status Outcome(int64_t ticket) const {
    return Ended(ticket) ? outcomes_.at(ticket) : absl::UnknownError("it has not ended");
  }
  // "3 AVAILABLE, 2 UNLOADING"; "none" when the model is not configured.
  std::string States(const std::string& model) const {
    const auto it = lifecycle_.models().find(model);
    if (it == lifecycle_.models().end() || !it->second.current) return "none";
    std::vector<std::string> texts;
    for (const VersionStatus& one : Statuses(it->second))
      texts.push_back(
          absl::StrCat(one.version, " ", VersionStateName(one.state), one.error.ok() ? "" : "!"));
    return absl::StrJoin(texts, ", ");
  }
  // "3, 2": what requests find.
  std::string Served(const std::string& model) const {
    const auto it = lifecycle_.models().find(model);
    std::vector<int64_t> versions;
    if (it != lifecycle_.models().end())
      for (const Servable* one : Published(it->second)) versions.push_back(one->version());
    return absl::StrJoin(versions, ", ");
  }
  absl::Status ErrorOf(const std::string& model, int64_t version) const {
    for (const VersionStatus& one : Statuses(lifecycle_.models().at(model)))
      if (one.version == version) return one.error;
    return absl::UnknownError("no such version");
  }
  std::string Loads() const {  // under way: "m 2, n 1"
    return absl::StrJoin(loads_, ", ", [](std::string* out, const LoadAction& one) {
      absl::StrAppend(out, one.model, " ", one.version);
    });
  }
  std::string Unloads() const {
    return absl::StrJoin(unloads_, ", ", [](std::string* out, const UnloadAction& one) {
      absl::StrAppend(out, one.model);
    });
  }
  int64_t HeaviestOfLastLoad() const { return loads_.back().cpu_shares.heaviest; }
  size_t loaded() const { return loaded_.size(); }  // versions that take memory
  int scans() const { return scans_; }
  // The versions whose files were looked at since the last call.
  std::set<int64_t> TakeScanned() { return std::exchange(scanned_versions_, {}); }
  int finished_loads() const { return finished_loads_; }
  TimePoint now() const { return now_; }
  TimePoint next() const { return next_; }
  Lifecycle& lifecycle() { return lifecycle_; }

 private:
  void End(const ScanAction& scan) {
    watches_tried_ += scan.watch != nullptr ? 1 : 0;
    lifecycle_.Scanned(scan.model, scan.ticket, {Look(scan), watching_ && scan.watch != nullptr},
                       now_);
    ++scans_;
  }
  absl::StatusOr<std::vector<FoundVersion>> Look(const ScanAction& scan) {
    if (const auto it = failing_.find(scan.base_path); it != failing_.end()) return it->second;
    const auto it = disk_.find(scan.base_path);
    if (it == disk_.end()) return absl::NotFoundError(absl::StrCat(scan.base_path, " is gone"));
    if (it->second.empty()) return absl::InvalidArgumentError(scan.base_path + " holds nothing");
    std::vector<int64_t> versions;
    for (auto one = it->second.rbegin(); one != it->second.rend(); ++one)
      versions.push_back(one->first);
    const std::set<int64_t> into = scan.versions.Among(versions);
    scanned_versions_.insert(into.begin(), into.end());
    std::vector<FoundVersion> found;
    for (auto one = it->second.rbegin(); one != it->second.rend(); ++one) {
      found.push_back(one->second);
      if (into.count(one->first) != 0) continue;
      found.back() = FoundVersion();
      found.back().version = one->first;
      found.back().scanned = false;
    }
    return found;
  }

  std::map<std::string, std::map<int64_t, FoundVersion>> disk_;
  std::map<std::string, absl::Status> failing_;
  std::set<std::string> hanging_;
  std::vector<ScanAction> hung_scans_;
  std::map<std::pair<std::string, int64_t>, absl::Status> broken_;
  TimePoint now_ = TimePoint(std::chrono::hours(1)), next_ = TimePoint::max();
  std::list<LoadAction> loads_;
  std::list<UnloadAction> unloads_;
  std::set<ServableId> ids_, retried_, loaded_;
  std::map<int64_t, absl::Status> outcomes_;
  std::vector<std::shared_ptr<Transaction>> transactions_;
  int scans_ = 0, finished_loads_ = 0, watches_tried_ = 0;
  bool watching_ = false;
  std::set<int64_t> scanned_versions_;
  Lifecycle lifecycle_;
};

// One in which version 1 of its only model is served, and nothing is under way.
class ServingWorld : public LifecycleWorld {
 public:
  explicit ServingWorld(const ModelConfig& model = TestModel("m"),
                        const Lifecycle::Options& options = Lifecycle::Options())
      : LifecycleWorld({model}, options) {
    Put(model.base_path, 1);
    Finish();
  }
};

}  // namespace floe::server
