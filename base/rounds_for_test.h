// How often a test repeats what more rounds may find.
#pragma once

namespace floe {

// Sanitizers, which take ten to forty times as long, look at the code of a round and not at its
// numbers.
#ifdef FLOE_SANITIZED
inline constexpr int kRoundsLess = 10, kEveryCase = 3;
#else
inline constexpr int kRoundsLess = 1, kEveryCase = 1;
#endif

// Of rounds at random, or alike.
constexpr int Rounds(int rounds) { return (rounds + kRoundsLess - 1) / kRoundsLess; }

}  // namespace floe
