// What work on a GPU costs, for choices that are made without looking at one: the same on every
// replica. Round figures of servers' GPUs; none of them was measured by us.
#pragma once

namespace floe {

// Starting a graph of launches, and waking up when it has ended; and each launch in it.
inline constexpr double kDeviceRunMicros = 15, kDeviceLaunchMicros = 3;
// A microsecond's copy over PCIe 3.0 x16, and what a device computes and moves meanwhile.
inline constexpr double kCrossingBytes = 12e3, kDeviceFlops = 10e6, kDeviceBytes = 1e6;
// What a core of the host computes in a microsecond.
inline constexpr double kHostFlops = 20e3;

}  // namespace floe
