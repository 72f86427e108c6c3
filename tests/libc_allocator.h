// glibc's own allocator under other names, for programs that define malloc and its like themselves.
#pragma once

#include <cstddef>

// NOLINTBEGIN(bugprone-reserved-identifier): its names
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}
// NOLINTEND(bugprone-reserved-identifier)
