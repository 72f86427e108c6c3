#!/usr/bin/env bash
# Builds floe and runs its tests.
#
#   scripts/test.sh [--ci] [--full] [--offline]
#
#   (nothing)    Release build and all tests, those in Python included
#   --ci         also the page in a browser, sanitizers, static checks, every instruction set, installation and the systemd unit
#   --full       with --ci: static checks look at all files, not only at changed ones; libFuzzer and long rounds of mutants run
#                too, older and newer versions of Keras write files, and schemathesis and SDKs of other servers ask floed, each in an
#                environment of its own
#   --offline    nothing is downloaded: packages must be there; Python tests are skipped without their environment
#
# Prints each stage's time, and at last the line "N passed, N failed, N skipped". Exit status 0: nothing failed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ci= full= offline=
for argument in "$@"; do
  case "$argument" in
    --ci) ci=1 ;;
    --full) full=1 ;;
    --offline) offline=1; export FLOE_OFFLINE=1 ;;
    *) sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done
packages=all
[ -z "$ci" ] || packages=ci
[ -z "$full" ] || packages=full
[ -n "$offline" ] || install_deps_and_step_down "$packages" "$@"
git() { command git -c safe.directory="$root" "$@"; }

# Where C++ tests put their files, by fixed names: the runs of two checkouts do not meet.
TEST_TMPDIR=$(mktemp -d)
export TEST_TMPDIR
beside=$(mktemp -d)
trap 'end_all_beside; rm -rf "$TEST_TMPDIR" "$beside"' EXIT

results=()    # folders for scripts/test_report.py
checks=()     # "passed NAME", "failed NAME" or "skipped NAME: REASON", of stages that are one check each
times=()
stage_start=
begin() { say "$1"; stage=$1; stage_start=$SECONDS; }
end() { times+=("$(printf '%4d s  %s' $((SECONDS - stage_start)) "$stage")"); echo "-- $stage: $((SECONDS - stage_start)) s"; }

# check NAME COMMAND...: a stage that is one check. Exit status 77: skipped, for the reason that was printed last.
check() {
  local name=$1 code=0 output; shift
  output=$(mktemp)
  begin "$name"
  "$@" 2>&1 | tee "$output" || code=${PIPESTATUS[0]}
  case $code in
    0) checks+=("passed $name") ;;
    77) checks+=("skipped $name: $(tail -1 "$output")") ;;
    *) checks+=("failed $name"); echo "-- $name FAILED" ;;
  esac
  rm -f "$output"
  end
}

# begin_beside NAME COMMAND...: runs beside the stages that follow, on processor time that they leave idle. The later
# `check TEXT end_beside NAME` waits for it. A session of its own has its own weight (sched(7), autogroup), and is killed as one.
begin_beside() {
  local name=$1; shift
  # shellcheck disable=SC2016
  setsid bash -c '
    { echo 19 >/proc/self/autogroup; } 2>/dev/null
    chrt --idle --pid 0 $$
    "${@:2}" >"$1.log" 2>&1
    echo $? >"$1.code"' beside "$beside/$name" "$@" &
  echo $! >"$beside/$name.pid"
}

end_beside() {
  tail --pid="$(<"$beside/$1.pid")" -f /dev/null
  cat "$beside/$1.log"
  return "$(<"$beside/$1.code")"
}

end_all_beside() {
  local pid
  for pid in "$beside"/*.pid; do
    [ ! -e "$pid" ] || kill -- "-$(<"$pid")" 2>/dev/null || true
  done
}

# run_tests NAME BUILD CTEST-ARGUMENT...: a stage that runs tests, each of which counts.
run_tests() {
  local name=$1 build=$2; shift 2
  local folder="$root/build/test-results/$name/results"
  rm -rf "$folder"; mkdir -p "$folder"
  begin "tests: $name"
  # Brief: of a program that fails, what failed is all that is read.
  GTEST_BRIEF=1 GTEST_OUTPUT="xml:$folder/" FLOE_TEST_RESULTS="$folder" \
    ctest --test-dir "$build" --output-on-failure --output-junit "$folder/ctest.xml" --timeout 1200 \
      --parallel "$(nproc)" "$@" || true  # the report judges
  results+=("$folder")
  end
}

# Every fuzzer finds its planted bug, then each runs for a minute from the committed seeds.
fuzz() {
  scripts/fuzz --self-test || return 1
  local name
  for name in "$@"; do scripts/fuzz "$name" --minutes 1 || return 1; done
}

keras_writers() {
  local python
  python=$(scripts/pyenv.sh) && "$python" tests/python/keras_writers.py
}

# 256 MB messages, 100,000 calls, a minute of deadlines, gRPC's own server; foreign stacks and proxies where they are.
conformance() {
  local python
  python=$(scripts/pyenv.sh) || return 1
  export FLOE_BUILD_DIR=$root/build/release TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
  (cd tests/python && FLOE_CONFORMANCE_FULL=1 "$python" -m pytest -q -rs -p no:cacheprovider test_conformance.py) || return 1
  "$python" tests/python/conformance_foreign.py
}

# 5,000 mutants of each kind of model file through floed and floectl.
mutants() {
  local seeds code=0
  seeds=$(mktemp -d)
  "$(scripts/pyenv.sh)" tests/fuzz/make_mutant_seeds.py "$seeds" >/dev/null 2>&1 \
    && tests/fuzz/mutants.py --seeds "$seeds" --jobs "$(nproc)" || code=1
  rm -rf "$seeds"
  return $code
}

# build PRESET [TARGET...]
build() { configure "$1" && ninja -k 0 -C "build/$1" "${@:2}"; }

export -f build configure  # for begin_beside

build_release() { configure_release && ninja -k 0 -C build/release; }

# clang-tidy wants to know how each source is compiled by itself. Nothing is compiled for it: build/release has the generated headers.
tidy() {
  configure release -B build/tidy -DFLOE_UNITY=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON && rm -rf build/tidy/proto_gen &&
    ln -s ../release/proto_gen build/tidy/proto_gen && scripts/check_clang.py tidy build/tidy "$@"
}

# Files that differ from the commit this work started from, one a line; empty where that is unknown.
changed_files() {
  local base head
  head=$(git rev-parse -q --verify HEAD 2>/dev/null) || return 0
  base=$(git merge-base HEAD origin/HEAD 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null || true)
  [ -n "$base" ] && [ "$base" != "$head" ] || base=$(git rev-parse -q --verify HEAD~1 2>/dev/null) || return 0
  { git diff --name-only --diff-filter=d "$base" -- '*.cc' '*.h'
    git ls-files --others --exclude-standard -- '*.cc' '*.h'; } | sort -u
}

static_checks() {
  local files=()
  if [ -z "$full" ]; then
    mapfile -t files < <(changed_files)
    if [ ${#files[@]} = 0 ]; then
      git rev-parse -q --verify HEAD~1 >/dev/null 2>&1 && { echo "no source changed"; return 0; }
    fi
  fi
  check clang-format scripts/check_clang.py format "${files[@]}"
  check clang-tidy tidy "${files[@]}"
}

install_and_unit() {
  local dest code=0
  dest=$(mktemp -d)
  DESTDIR=$dest cmake --install build/release --prefix /usr >/dev/null || code=1
  for file in usr/bin/floed usr/bin/floectl usr/libexec/floe/floe-hdf5 etc/floe/floe.yaml usr/lib/systemd/system/floed.{service,socket}; do
    [ -e "$dest/$file" ] || { echo "not installed: /$file"; code=1; }
  done
  # verify looks for the program where the unit says: in the staged tree, for this one.
  sed "s|^ExecStart=|&$dest|" "$dest/usr/lib/systemd/system/floed.service" >"$dest/floed.service" || code=1
  cp "$dest/usr/lib/systemd/system/floed.socket" "$dest/"
  systemd-analyze verify "$dest/floed.service" "$dest/floed.socket" || code=1
  systemd-analyze security --offline=yes --threshold=20 --no-pager "$dest/usr/lib/systemd/system/floed.service" \
    >"$dest/security" || { cat "$dest/security"; code=1; }
  tail -1 "$dest/security"
  rm -rf "$dest"
  return $code
}

check "build release" build_release
[ -z "$ci" ] || begin_beside asan-ubsan build asan-ubsan
FLOE_DIFFERENTIAL_MINUTES=${full:+10} FLOE_KERAS_MINUTES=${full:+10} FLOE_SDKS=${full:+1} FLOE_SWEEP_EVERY=${full:+1} run_tests release build/release
if [ -n "$ci" ]; then
  check "include directions" scripts/check_includes.py
  check "file and function sizes" scripts/check_sizes.py
  check "names that hide others" scripts/check_names.py
  static_checks
  for isa in scalar sse4 avx2 avx512; do
    FLOE_FORCE_ISA=$isa run_tests "isa-$isa" build/release -R '^kernels$'
  done
  check "install and systemd unit" install_and_unit
  check "package" deploy/test_package.sh build/release
  check "package floe-cuda" deploy/test_cuda_package.sh build/release
  check "package under systemd" deploy/test_systemd.sh build/release
  check "image" deploy/test_image.sh build/release
  check "build asan-ubsan" end_beside asan-ubsan
  # What shares data between threads; kernels and importers do not, and are slow to build.
  begin_beside tsan build tsan base_tests model_tests runtime_tests serving_tests api_tests listener_tests net_tests daemon_tests
  run_tests asan-ubsan build/asan-ubsan -LE 'load|long'
  check "build tsan" end_beside tsan
  # The accept loop looks at descriptors that others may have closed, by design, which ThreadSanitizer takes for a race.
  TSAN_OPTIONS=suppressions=$root/tests/tsan_suppressions.txt \
    run_tests tsan build/tsan -R '^(base|model|runtime|serving|api|listener|net|daemon)$'
  [ -z "$full" ] || [ -n "$offline" ] || check "writers of Keras files" keras_writers
  [ -z "$full" ] || [ -n "$offline" ] || check "conformance" conformance
  [ -z "$full" ] || check "mutants" mutants
  if [ -n "$full" ] && command -v clang++ >/dev/null; then check "fuzzers" fuzz graph saved_model bundle keras content wire h1 json example token pem connection; fi
fi

say "times"
printf '%s\n' "${times[@]}"
say "totals"
printf '%s\n' "${checks[@]}" | scripts/test_report.py "${results[@]}"
