# Shared by the scripts of this folder; sourced, not run. Sets `root` and goes there.
# shellcheck shell=bash
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Under sudo in a checkout that belongs to the caller, packages are installed as root and everything else
# runs as the caller: otherwise root would own the build and the caller's next build would fail.
install_deps_and_step_down() {
  "$root/scripts/install_deps.sh" "$1"
  shift
  local owner
  owner=$(stat -c %U "$root")
  if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ] && [ "$owner" = "$SUDO_USER" ]; then
    HOME=$(getent passwd "$SUDO_USER" | cut -d: -f6) \
      exec runuser -u "$SUDO_USER" -- "$root/scripts/$(basename "$0")" "$@"
  fi
}

# configure PRESET [CMAKE-ARGUMENT...]: configures build/PRESET; its output is shown only when it fails.
configure() {
  local log
  log=$(mktemp)
  cmake --preset "$@" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; return 1; }
  rm -f "$log"
}

# configure_release [CMAKE-ARGUMENT...]: a first build compiles sources in groups where nothing is in the compiler's cache
# yet; what is built stays as it is.
configure_release() {
  local groups=()
  if [ ! -e build/release/CMakeCache.txt ] && [ ! -d "$(ccache --get-config cache_dir 2>/dev/null)" ]; then
    groups=(-DFLOE_UNITY=ON)
  fi
  configure release "${groups[@]}" "$@"
}

# A TCP port on which nothing listens right now.
free_port() {
  local port
  for _ in $(seq 100); do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  die "no free TCP port found on 127.0.0.1"
}

# What one checkout compiled serves another.
export CCACHE_BASEDIR=$root

cd "$root"
