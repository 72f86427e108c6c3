# What the tests of the package share; sourced, not run. The caller sets `work`, a folder, and `package`, a .deb.
# shellcheck shell=bash

fail() { echo "FAILED: $*" >&2; exit 1; }

# until_true SECONDS COMMAND...: repeats it until it succeeds; status 1 where the time passed.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# make_chroot: sets `chroot_tar` to a Debian 12 with what floe depends on, so that times measured in it are floe's own, and
# with a systemd, which may be booted. It is made once, by mmdebstrap, and kept outside the checkout. Status 1: it cannot be.
make_chroot() {
  local needs cache
  needs=$(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/ //g'),dbus,systemd-sysv
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/floe
  chroot_tar=$cache/chroot-$(sha256sum <<<"$needs" | cut -c1-12).tar
  [ ! -e "$chroot_tar" ] || return 0
  [ -z "${FLOE_OFFLINE:-}" ] || return 1
  mkdir -p "$cache"
  mmdebstrap --quiet --variant=apt --include="$needs" bookworm "$chroot_tar.new.tar" </dev/null >"$work/mmdebstrap" 2>&1 ||
    { tail -5 "$work/mmdebstrap"; rm -f "$chroot_tar.new.tar"; return 1; }
  mv "$chroot_tar.new.tar" "$chroot_tar"
}

# One Predict after the other, by the caller's `predict`, which writes what it prints to $work/answer. Each call has a
# connection of its own, which a process may take and close at its end: as docs/systemd.md says, such calls are repeated on
# UNAVAILABLE, at most five attempts.
start_load() {
  echo 0 >"$work/calls"
  : >"$work/repeated"
  touch "$work/go"
  { calls=0; while [ -e "$work/go" ]; do
      attempts=1
      until predict; do
        cat "$work/answer" >>"$work/repeated"
        if [ $attempts = 5 ] || ! grep -q UNAVAILABLE "$work/answer"; then cp "$work/answer" "$work/failed_call"; break 2; fi
        attempts=$((attempts + 1))
      done
      calls=$((calls + 1)); echo $calls >"$work/calls.new"; mv "$work/calls.new" "$work/calls"
    done; } &
  load=$!
}

# Waits for twenty more calls, at most 20 s.
more_calls() {
  local at
  at=$(cat "$work/calls")
  enough() { [ "$(cat "$work/calls")" -gt $((at + 20)) ] || [ -e "$work/failed_call" ]; }
  until_true 20 enough || fail "twenty calls took more than 20 s"
}

# stop_load WHAT: fails when a call did; prints how many there were.
stop_load() {
  rm -f "$work/go"; wait "$load" || true; load=
  [ ! -e "$work/failed_call" ] || { cat "$work/failed_call"; fail "a call failed during: $1"; }
  echo "$1 under load: $(cat "$work/calls") calls, $(grep -c UNAVAILABLE "$work/repeated" || true) repeated, 0 failed"
}
