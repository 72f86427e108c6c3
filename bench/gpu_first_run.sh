#!/usr/bin/env bash
# For a machine with a GPU and without network: what has never run on one is checked and timed there.
#
#   bench/gpu_first_run.sh pack FOLDER [BUILD [MODELS]]   fills FOLDER, a new one, from a build (build/release), about 40 MB, and
#                                                from what `bench/gpu.py make MODELS` has made
#   bench/gpu_first_run.sh try [BUILD]           packs into a temporary folder and runs that over the fake CUDA runtime
#   FOLDER/gpu_first_run.sh [LOG]                on the machine with the GPU: runs everything
#
# The machine needs the NVIDIA driver R580 or newer, and glibc 2.36 or newer. Steps whose tool is missing there are named. Times of
# models need python3 with numpy; onnxruntime-gpu and torch are compared with where they are.
# Exit status 1: a step failed.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf '\n== %s\n' "$*"; }

programs=(cuda_check cuda_tests op_cases_tests floectl)
scripts=(gpu.py peers.py serving_kit.py)

# Everything that the programs link, but for what belongs to the system.
libraries_of() {
  ldd "$@" | awk '/=> \//{print $3}' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libresolv|ld-linux-x86-64)\.so'
}

pack() {
  local to=$1 build=$2 models=$3 program found=()
  [ -z "$(ls -A "$to" 2>/dev/null)" ] || { echo "$to is not empty" >&2; exit 1; }
  mkdir -p "$to/lib" "$to/op_cases/graphs"
  for program in "${programs[@]}"; do
    [ -x "$build/$program" ] || { echo "not built, left out: $program"; continue; }
    strip -o "$to/$program" "$build/$program"
    found+=("$build/$program")
  done
  libraries_of "${found[@]}" | xargs -I{} cp -L {} "$to/lib/"
  cp "$build/libfloe_cuda.so" "$here/gpu_first_run.sh" "${scripts[@]/#/$here/}" "$to/"
  [ -z "$models" ] || cp -r "$models" "$to/models"
  cp "$here"/../tests/op_cases/*.txt "$to/op_cases/"
  cp "$here"/../tests/op_cases/graphs/*.txt "$to/op_cases/graphs/"
  git -C "$here" rev-parse HEAD >"$to/commit"
  (cd "$here/.." && pwd) >"$to/source_folder"
  # Small enough to be sent: it is unpacked where it runs.
  (cd "$to" && XZ_OPT=-2 tar -cJf .files -- * && rm -r -- * && mv .files files.tar.xz &&
    tar -xJf files.tar.xz gpu_first_run.sh)
  du -sh "$to"
}

failed=()
# step NAME COMMAND...
step() {
  say "$1"
  local name=$1 start=$SECONDS
  shift
  if "$@"; then echo "-- passed, $((SECONDS - start)) s"; else echo "-- FAILED with status $?"; failed+=("$name"); fi
}

# Test programs look for the op cases where they were built.
place_op_cases() {
  local folder
  folder=$(cat source_folder)/tests
  [ -e "$folder/op_cases" ] && return 0
  mkdir -p "$folder" && ln -sfn "$here/op_cases" "$folder/op_cases"
}

sanitize() {
  local tool
  for tool in memcheck racecheck synccheck initcheck; do
    step "compute-sanitizer $tool" compute-sanitizer --tool "$tool" --error-exitcode 9 ./cuda_check 0 check
  done
  [ -x cuda_tests ] || return 0
  for tool in memcheck racecheck; do  # all kernels
    FLOE_COMPARE_DEVICE=0 step "compute-sanitizer $tool, tests of kernels" \
      timeout 900 compute-sanitizer --tool "$tool" --error-exitcode 9 ./cuda_tests --gtest_brief=1
  done
}

# Models against the peers. Over the fake runtime, and without models, only whether the script is whole.
compare_models() {
  if ! python3 -c 'import numpy' 2>/dev/null; then
    echo "no python3 with numpy is here: times of models were left out"
    return 0
  fi
  mkdir -p models
  if [ -n "${FLOE_FIRST_RUN_FAKE:-}" ] || [ -z "$(ls models)" ]; then
    step "models: what would be timed" python3 gpu.py run models --build . --dry-run
  else
    step "models: times" python3 gpu.py run models --build . --json gpu.json
  fi
}

# Which layers cuBLASLt and cuDNN are proven to compute, where they are installed, and how long the models take by them.
use_libraries() {
  local graph
  for graph in models/*/graph.pb; do
    [ -e "$graph" ] || continue
    step "libraries of NVIDIA: $graph" ./floectl bench "$graph" --device cuda --gpu_libraries all --batch 64 --seconds 1
  done
}

run_all() {
  cd "$here"
  [ ! -e files.tar.xz ] || { tar -xJf files.tar.xz && rm files.tar.xz; }
  export LD_LIBRARY_PATH=$here/lib
  say "what is here"
  echo "commit $(cat commit)"
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv || echo "there is no nvidia-smi"
  if [ -n "${FLOE_FIRST_RUN_FAKE:-}" ]; then
    export FLOE_CUDA_LIBRARY=$FLOE_FIRST_RUN_FAKE/libfloe_cuda.so
    export LD_LIBRARY_PATH=$FLOE_FIRST_RUN_FAKE:$LD_LIBRARY_PATH
    step "programs of launches: bits" ./cuda_check 0 check
  else
    step "programs of launches: bits and times" ./cuda_check 0
  fi
  if [ -x cuda_tests ]; then
    FLOE_COMPARE_DEVICE=0 step "tests of kernels, each compared with the device" ./cuda_tests
  fi
  if [ -x op_cases_tests ] && place_op_cases; then
    FLOE_COMPARE_DEVICE=0 step "op cases, each kernel compared with the device" ./op_cases_tests --gtest_filter='*EmulatedDevice'
  fi
  if [ -n "${FLOE_FIRST_RUN_FAKE:-}" ]; then
    echo "compute-sanitizer: not over the fake runtime"
  elif command -v compute-sanitizer >/dev/null; then
    sanitize
  else
    echo "compute-sanitizer is not here: its checks were left out"
  fi
  compare_models
  use_libraries
  say "result"
  if [ ${#failed[@]} = 0 ]; then echo "all steps passed"; else printf 'FAILED: %s\n' "${failed[@]}"; return 1; fi
}

case "${1:-run}" in
  pack) pack "${2:?pack needs a folder}" "${3:-$here/../build/release}" "${4:-}" ;;
  try)
    build=$(realpath "${2:-$here/../build/release}")
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    pack "$folder" "$build" ""
    FLOE_FIRST_RUN_FAKE=$build/fake_cuda "$folder/gpu_first_run.sh" run
    ;;
  run) run_all ;;
  *) run_all 2>&1 | tee "$1"; exit "${PIPESTATUS[0]}" ;;
esac
