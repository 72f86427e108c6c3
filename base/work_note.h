// WorkNote: what a load is doing, in memory that another process may share, which reads it there
// even when this one has crashed.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

namespace floe {

// Threading: any thread writes; what one writes while another does may be lost. Never fails, never
// allocates. A reader in another process may find a text half written.
class WorkNote {
 public:
  // The note of this process; null: nobody wants to know. One read of memory.
  static WorkNote* Current() { return current_.load(std::memory_order_relaxed); }
  // `note` outlives all work; null: none from now on.
  static void Keep(WorkNote* note) { current_.store(note, std::memory_order_relaxed); }

  // "warm-up"; what was done in the last stage is over.
  void Enter(std::string_view stage);
  // "running", the node's name and its op; empty: nothing of the stage any more. Texts are cut.
  void Do(std::string_view verb, std::string_view node = {}, std::string_view op = {});

  // "warm-up, running node 'x' (Conv2D)"; bytes that are not printable ASCII as '?'.
  std::string Describe() const;

 private:
  inline static std::atomic<WorkNote*> current_{nullptr};

  char stage_[48] = {}, verb_[32] = {}, node_[192] = {}, op_[48] = {};  // each ends with 0
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace floe
