// What becomes of a run when a device fails it.
#pragma once

#include <cstdint>

namespace floe {

enum class OnDeviceError : uint8_t {
  kFail,  // the run fails: UNAVAILABLE once the device is lost
  kCpu,   // the host computes what the device did not
};

}  // namespace floe
