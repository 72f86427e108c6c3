// MemoryFill: what tests fill memory with before a run uses it. Two runs over different fills agree
// to the bit unless an answer is made of memory that nobody wrote.
#pragma once

#include <cstddef>
#include <cstdint>

namespace floe {

enum class MemoryFill : uint8_t {
  kNone,     // memory as it comes; in production always
  kOnes,     // NaN, -1, true
  kStripes,  // large and zero in turn, so that booleans differ from kOnes too
};

// With kNone it does nothing.
void FillMemory(MemoryFill fill, void* block, size_t bytes);
// Whether bytes [from, to) of a block that was filled are untouched; true with kNone.
bool StillFilled(MemoryFill fill, const void* block, size_t from, size_t to);

}  // namespace floe
