# Compiler flags, linker and cache, the same for every target.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(LLD ld.lld)
if(LLD)
  add_link_options(-fuse-ld=lld)
endif()
# What is installed: half a megabyte of relocations less. lld's are not what glibc reads.
include(CheckLinkerFlag)
set(FLOE_PACKED_RELOCATIONS -fuse-ld=bfd -Wl,-z,pack-relative-relocs)
check_linker_flag(CXX "${FLOE_PACKED_RELOCATIONS}" FLOE_PACKS_RELOCATIONS)

# No path of this checkout in what is built: the same bytes from anywhere, and one checkout's cache serves another.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

# Contraction off: FMA only where a kernel says MulAdd, so that every tail rounds as its body does.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno
                    -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees uninitialised moves inside absl::InlinedVector's union; ASan and valgrind see none.
  add_compile_options(-Wno-maybe-uninitialized)
else()
  add_compile_options(-Werror=thread-safety)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
# Every index into a vector (slots, arguments, frames) is asserted, and by NDEBUG's absence each step's memory.
add_compile_definitions($<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

set(FLOE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined or thread")
if(FLOE_SANITIZE)
  if(NOT FLOE_FUZZ)
    set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")  # quicker to build by far more than its tests take longer
  endif()
  add_compile_options(-fsanitize=${FLOE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_compile_definitions(FLOE_SANITIZED)
  # Without the last two each of twenty binaries is half as large again: relocations and line tables.
  add_link_options(-fsanitize=${FLOE_SANITIZE} -no-pie -Wl,--compress-debug-sections=zlib)
endif()
# Most of the time to compile a source goes into the headers it includes. But a change compiles all sources of its group,
# and clang-tidy wants to know how each is compiled.
option(FLOE_UNITY "Compile the sources of libraries and of their tests in groups: a first build takes less than half as long" OFF)
if(FLOE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a group a source is an included file, and g++ warns of types of included files that use an anonymous namespace.
  add_compile_options(-Wno-subobject-linkage)
endif()
option(FLOE_WITH_GRPC "Build what needs grpc++ (transport, tools, their tests)" ON)
if(FLOE_SANITIZE MATCHES "thread")
  # ThreadSanitizer reports races inside Debian's prebuilt gRPC; the rest is built and tested without it.
  set(FLOE_WITH_GRPC OFF)
  # Under this macro of g++ protobuf's headers give map fields two more members, which Debian's library does not know
  # of: reading a text GraphDef would crash. libstdc++ is told by its own macro instead.
  add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  set(FLOE_ONE_ISA ON)  # what threads share is the same for all
endif()
# Fuzzing builds (tests/fuzz, docs/fuzzing.md): libFuzzer's instrumentation everywhere.
option(FLOE_FUZZ "Build the fuzzers with libFuzzer; needs clang" OFF)
if(FLOE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FLOE_FUZZ needs clang: use the preset 'fuzz'")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  set(FLOE_ONE_ISA ON)
endif()
if(FLOE_ONE_ISA)  # keeps the build short, and still runs vector code with its tails
  add_compile_definitions(HWY_COMPILE_ONLY_STATIC)
endif()
# Without the emulated vectors, which are slow where nothing is optimised, and have as many lanes as SSE4's.
if((FLOE_SANITIZE OR FLOE_ONE_ISA) AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-msse4.2 -mpclmul -maes)
endif()
include_directories(${CMAKE_SOURCE_DIR})
