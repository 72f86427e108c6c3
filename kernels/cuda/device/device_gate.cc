#include "kernels/cuda/device/device_gate.h"

#include <algorithm>
#include <utility>

namespace floe::cuda {
namespace {

thread_local DeviceGate::User* current_user = nullptr;

}  // namespace

void DeviceGate::Ask(User* user, Turn* turn) {
  MutexLock lock(mutex_);
  if (user->active_++ == 0) user->used_ = std::max(user->used_, now_);
  turn->user_ = user;
  turn->granted_ = false;
  waiting_.push_back(turn);
  Grant();
}

void DeviceGate::Await(Turn* turn) {
  MutexLock lock(mutex_);
  while (!turn->granted_) changed_.Wait(mutex_);
}

void DeviceGate::Leave(Turn* turn) {
  MutexLock lock(mutex_);
  User* const user = turn->user_;
  const TimePoint now = clock_->Now();
  const Duration took = now - std::max(turn->since_, last_left_);
  user->used_ += std::chrono::duration<double>(took).count() / static_cast<double>(user->shares_);
  last_left_ = now;
  --user->active_;
  --running_;
  Grant();
}

bool DeviceGate::IsGranted(const Turn& turn) const {
  MutexLock lock(mutex_);
  return turn.granted_;
}

size_t DeviceGate::waiting() const {
  MutexLock lock(mutex_);
  return waiting_.size();
}

void DeviceGate::Grant() {
  bool any = false;
  while (running_ < kTogether && !waiting_.empty()) {
    const auto next = std::min_element(
        waiting_.begin(), waiting_.end(),
        [](const Turn* a, const Turn* b) { return a->user_->used_ < b->user_->used_; });
    Turn* const turn = *next;
    waiting_.erase(next);
    now_ = std::max(now_, turn->user_->used_);
    turn->granted_ = true;
    turn->since_ = clock_->Now();
    ++running_;
    any = true;
  }
  if (any) changed_.NotifyAll();
}

ScopedDeviceUser::ScopedDeviceUser(DeviceGate::User* user)
    : before_(std::exchange(current_user, user)) {}
ScopedDeviceUser::~ScopedDeviceUser() { current_user = before_; }
DeviceGate::User* ScopedDeviceUser::Current() { return current_user; }

ScopedDeviceTurn::ScopedDeviceTurn(DeviceGate* gate)
    : gate_(ScopedDeviceUser::Current() == nullptr ? nullptr : gate) {
  if (gate_ == nullptr) return;
  gate_->Ask(ScopedDeviceUser::Current(), &turn_);
  gate_->Await(&turn_);
}

ScopedDeviceTurn::~ScopedDeviceTurn() {
  if (gate_ != nullptr) gate_->Leave(&turn_);
}

}  // namespace floe::cuda
