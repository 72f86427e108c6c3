// IslandRun: the plan of an island at one number of rows, on a device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/device/device_run.h"
#include "runtime/device_weights.h"
#include "runtime/plan.h"

namespace floe {

// What all runs of one worker share, because it makes one at a time.
struct IslandPlace {
  std::shared_ptr<const cuda::Stream> stream;
  std::shared_ptr<const cuda::DeviceBuffer> arena;  // IslandRun::ArenaBytes, or more
  std::shared_ptr<const cuda::PinnedBuffer> staging;
  size_t staging_at = 0;  // IslandRun::StagingBytes from there on are the run's
};

// Constants that follow from a plan's shapes, on its device. Threading: immutable, any thread.
struct IslandConstants {
  cuda::DeviceBuffer buffer;
  std::map<const void*, std::byte*> places;  // by where they are on the host
};

// Has one CUDA graph, which reads and writes in its place. Threading: one thread at a time.
class IslandRun {
 public:
  // Whether all steps of the plan are the device's.
  static bool Covers(const Plan& plan);
  // Whether a run of fewer rows may be one of more: rows that are too many change nothing in the
  // others, and lie behind them in every value that crosses.
  static bool RowsAreSeparate(const Plan& plan);
  static size_t ArenaBytes(const Plan& plan, int64_t rows);
  static size_t StagingBytes(const Plan& plan, int64_t rows);

  // Of a plan that it covers. Errors are those of the device.
  static absl::StatusOr<std::shared_ptr<const IslandConstants>> MakeConstants(
      const Plan& plan, const DeviceWeights& weights);

  struct Parts {
    std::string name;  // of the island, for errors
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<const DeviceWeights> weights;
    std::shared_ptr<const IslandConstants> constants;
    IslandPlace place;
  };
  // Of a plan that it covers. Errors are those of the device.
  static absl::StatusOr<std::unique_ptr<IslandRun>> Make(Parts parts, int64_t rows);

  // Where input i is copied from. What lies there already is not copied to it again. Null: only
  // the shape of the input is read.
  std::byte* staged(size_t i) const { return staged_[i]; }

  // Inputs of the plan, in its order, of as many rows as the run has; or of fewer, where rows are
  // separate: the others are zeros. Returns when the outputs are there.
  absl::Status Run(absl::Span<const TensorView> inputs, int64_t rows);
  // The first `rows` of output k, until another run of the same place.
  TensorView Output(size_t k, int64_t rows) const;

 private:
  IslandRun(Parts parts, int64_t rows) : parts_(std::move(parts)), rows_(rows) {}
  absl::Status UploadCounted();
  void PlaceStaging();
  TensorView ViewOf(int slot) const;
  void AddPorts(std::vector<cuda::DevicePort>* in, std::vector<cuda::DevicePort>* out) const;
  std::vector<cuda::Launch> Launches() const;

  const Parts parts_;
  const int64_t rows_;
  // Integers that follow from the number of rows, by slot, and where they are on the device.
  std::map<int, Tensor> counted_;
  std::map<const void*, std::byte*> counted_places_;
  cuda::DeviceBuffer counted_buffer_;
  std::vector<std::byte*> staged_;   // by input
  std::vector<std::byte*> outputs_;  // in the staging; null: known before the run
  std::unique_ptr<cuda::DeviceRun> run_;
};

}  // namespace floe
