// Sizes in bytes, as people write and read them.
#pragma once

#include <cstdint>
#include <string>

namespace floe {

inline constexpr int64_t kMostByteSize = int64_t{1} << 50;

// "1048576", "512MiB", "2 GiB", "4GB": a whole number and a unit, up to kMostByteSize. KiB, MiB,
// GiB and TiB are powers of 1024, as are K, M, G, T, Ki, Mi, Gi and Ti. KB, MB, GB and TB are
// powers of 1000. Upper and lower case mean the same. False leaves `bytes` unspecified.
bool ParseByteSize(const std::string& text, int64_t* bytes);

// What ParseByteSize takes, for messages.
inline constexpr char kByteSizeForms[] = "bytes, such as 1048576, 512MiB, 2GiB or 4GB";

// "12.3 MiB", "640 B": powers of 1024, three digits.
std::string HumanBytes(double bytes);

}  // namespace floe
