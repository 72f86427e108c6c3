#!/usr/bin/env bash
# Builds the package floe-cuda from build/release, and checks its files and what it needs.
#
#   deploy/test_cuda_package.sh [BUILD]
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"
source deploy/test_kit.sh

build=${1:-build/release}
[ -e "$build/CPackCudaConfig.cmake" ] || { echo "not run: $build has no libfloe_cuda.so, which needs nvcc 13"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$(stat -c %Y "$build/libfloe_cuda.so")
export SOURCE_DATE_EPOCH
for number in 1 2; do
  rm -f "$build"/packages/floe-cuda*
  (cd "$build" && cpack --config CPackCudaConfig.cmake >"$work/cpack" 2>&1) || { cat "$work/cpack"; fail "cpack"; }
  package=$(ls "$build"/packages/floe-cuda*) || fail "no package"
  [ "$(wc -l <<<"$package")" = 1 ] || fail "more than one package"
  cp "$package" "$work/$number.deb"
done
cmp "$work/1.deb" "$work/2.deb" || fail "packing twice gives different packages"
files=$(dpkg-deb --fsys-tarfile "$package" | tar -t | grep -v '/$' | sort | tr '\n' ' ')
dropin=usr/lib/systemd/system/floed.service.d/50-cuda.conf
[ "$files" = "./usr/lib/floe/libfloe_cuda.so ./$dropin ./usr/share/doc/floe-cuda/copyright " ] || fail "it has the files $files"
# With the unit of floe: the settings that keep devices away are lifted, and no others.
if command -v systemd-analyze >/dev/null; then
  mkdir -p "$work/root/usr/bin" "$work/root/etc/floe" "$work/root/bin"
  dpkg-deb -x "$package" "$work/root"
  install -D -m 644 systemd/floed.service "$work/root/usr/lib/systemd/system/floed.service"
  for program in usr/bin/floed bin/sh; do printf '#!/bin/sh\n' >"$work/root/$program"; chmod 755 "$work/root/$program"; done
  systemd-analyze verify --root="$work/root" floed.service >"$work/verify" 2>&1 || true
  ! grep '50-cuda[.]conf' "$work/verify" || fail "systemd-analyze verify"
  systemd-analyze security --offline=yes --root="$work/root" --threshold=20 --no-pager floed.service >"$work/security" ||
    { cat "$work/security"; fail "systemd-analyze security"; }
  tail -1 "$work/security"
else
  echo "not run: systemd-analyze is not installed"
fi
needs=$(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/ //g' | tr ',' '\n' | sort | tr '\n' ' ')
case "$needs" in
  "libc6 libgcc-s1 libstdc++6 " | "libc6 libstdc++6 " | "libc6 ") ;;
  *) fail "it needs $needs" ;;
esac
echo "floe-cuda: $(du -k "$package" | cut -f1) KiB, installed $(dpkg-deb -f "$package" Installed-Size) KiB; needs $needs"
