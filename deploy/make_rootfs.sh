#!/usr/bin/env bash
# Writes the files of the image to a folder: floed, floectl, the shared libraries they load, and accounts. No shell, no
# package manager, no writable place but /tmp, which is mounted.
#
#   deploy/make_rootfs.sh BUILD FOLDER
set -euo pipefail
[ $# = 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
build=$1 out=$2

mkdir -p "$out"/{etc,models,proc,dev,sys,run,usr/bin,usr/lib,usr/lib64}
install -d -m 1777 "$out/tmp"
ln -sfn usr/lib "$out/lib"
ln -sfn usr/lib64 "$out/lib64"
for program in floed floectl; do
  objcopy --strip-unneeded "$build/$program" "$out/usr/bin/$program"
  chmod 755 "$out/usr/bin/$program"
done

# Each library as ldd finds it, at the same place. Symbolic links of Debian's / (/lib -> /usr/lib) are resolved.
ldd "$build/floed" "$build/floectl" | grep -oE '/[^ ]+[.]so[^ ]*' | sort -u | while read -r library; do
  place=$out/usr${library#/usr}
  install -D -m 755 "$(readlink -f "$library")" "$place"
done
echo 'floe:x:65532:65532:floe:/tmp:/sbin/nologin' >"$out/etc/passwd"
echo 'floe:x:65532:' >"$out/etc/group"
echo 'hosts: files dns' >"$out/etc/nsswitch.conf"

# What is not libc and its loader.
total=$(du -sk --apparent-size "$out" | cut -f1)
libc=$(find "$out" -type f \( -name 'libc.so.6' -o -name 'libm.so.6' -o -name 'ld-linux*' -o -name 'libresolv.so.2' \) -printf '%s\n' |
       awk '{n += $1} END {print int(n / 1024)}')
echo "image: $(((total - libc) / 1024)) MiB beyond libc (mark: 60)"
