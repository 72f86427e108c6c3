#!/usr/bin/env bash
# Writes the files of the image to a folder: floed, floectl, the shared libraries they load, and accounts. No shell, no
# package manager, no writable place but /tmp, which is mounted.
#
#   deploy/make_rootfs.sh BUILD FOLDER
#
# Where BUILD was configured with FLOE_CUDA=on, libfloe_cuda.so is one of them. The container toolkit mounts the driver's
# libraries, in a folder where the loader looks without a cache.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
build=$1 out=$2
PATH=$PATH:/usr/sbin  # icupkg, where the path is a user's

mkdir -p "$out"/{etc,models,proc,dev,sys,run,usr/bin,usr/lib,usr/lib64}
install -d -m 1777 "$out/tmp"
ln -sfn usr/lib "$out/lib"
ln -sfn usr/lib64 "$out/lib64"
for program in floed floectl; do
  objcopy --strip-unneeded "$build/$program" "$out/usr/bin/$program"
  chmod 755 "$out/usr/bin/$program"
done
mkdir -p "$out/usr/libexec/floe"
objcopy --strip-unneeded "$build/floe-hdf5" "$out/usr/libexec/floe/floe-hdf5"
chmod 755 "$out/usr/libexec/floe/floe-hdf5"

if grep -q '^FLOE_CUDA:[A-Z]*=on$' "$build/CMakeCache.txt"; then
  install -D -m 755 "$build/libfloe_cuda.so" "$out/usr/lib/floe/libfloe_cuda.so"
fi

# floe-hdf5 parses HDF5 files. libhdf5 can read from S3 by libcurl, which brings 9 MB of libraries.
# floe reads files alone: a libcurl whose functions return 0 stands in its place, and ldd below lists what is needed with that.
work=$(mktemp -d)
hdf5=$(ldconfig -p | awk '!found && $1 ~ /^libhdf5_serial[.]so[.][0-9]+$/ { print $NF; found = 1 }')  # reads to the end: no SIGPIPE
objdump -T "$hdf5" | grep -E ' curl_' >"$work/symbols"
awk '{ print "long " $NF "(void) { return 0; }" }' "$work/symbols" >"$work/curl.c"
echo "$(grep -oE 'CURL_[A-Z]+_[0-9]+' "$work/symbols" | sort -u) { *; };" >"$work/curl.map"
cc -shared -nostdlib -Wl,-soname,libcurl.so.4,--version-script,"$work/curl.map" -o "$work/libcurl.so.4" "$work/curl.c"

# Each library as ldd finds it, at the same place. Symbolic links of Debian's / (/lib -> /usr/lib) are resolved.
{ echo "$hdf5"; LD_LIBRARY_PATH=$work ldd "$build/floed" "$build/floectl" "$build/floe-hdf5" "$hdf5" | grep -v ':$' | grep -oE '/[^ ]+[.]so[^ ]*'; } | sort -u | while read -r library; do
  place=$out/usr${library#/usr}
  case $library in "$work"/*) place=$(dirname "$out/usr${hdf5#/usr}")/${library##*/} ;; esac
  install -D -m 755 "$(readlink -f "$library")" "$place"
done

# ICU's data without what floe never asks for: locales, collation, line breaks. It keeps the encodings and normal forms, 5 of
# 30 MB. The library has one symbol, named after the version, at the start of .rodata.
icu=$(find "$out/usr/lib" -name 'libicudata.so.*')
version=${icu##*.so.}
objcopy -O binary --only-section=.rodata "$icu" "$work/icudt${version}l.dat"
icupkg -l "$work/icudt${version}l.dat" | grep -vE '^[^/]+[.](cnv|nrm)$|^cnvalias[.]icu$' >"$work/unused.txt"
mkdir "$work/small"
icupkg -r "$work/unused.txt" "$work/icudt${version}l.dat" "$work/small/icudt${version}l.dat"
printf '%s\n' ".section .rodata" ".balign 16" ".globl icudt${version}_dat" ".type icudt${version}_dat, @object" \
  "icudt${version}_dat: .incbin \"$work/small/icudt${version}l.dat\"" ".section .note.GNU-stack,\"\",@progbits" |
  cc -shared -nostdlib -Wl,-soname,"${icu##*/}" -x assembler - -o "$icu"
rm -r "$work"

echo 'floe:x:65532:65532:floe:/tmp:/sbin/nologin' >"$out/etc/passwd"
echo 'floe:x:65532:' >"$out/etc/group"
echo 'hosts: files dns' >"$out/etc/nsswitch.conf"

# What is not libc and its loader.
total=$(du -sk --apparent-size "$out" | cut -f1)
libc=$(find "$out" -type f \( -name 'libc.so.6' -o -name 'libm.so.6' -o -name 'ld-linux*' -o -name 'libresolv.so.2' \) -printf '%s\n' |
       awk '{n += $1} END {print int(n / 1024)}')
echo "image: $(((total - libc) / 1024)) MiB beyond libc (mark: 60)"
