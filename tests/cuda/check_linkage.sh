#!/usr/bin/env bash
# check_linkage.sh FLOED [LIBFLOE_CUDA]: floed links nothing of CUDA; the library exports one function, needs nothing
# that Debian does not have, and is small.
set -eu
most_bytes=$((15 << 20))
failed=0
complain() { echo "$*" >&2; failed=1; }

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

floed=$1
if ldd "$floed" | grep -E '\blibcu(da|dart|blas|dnn|fft)|nvidia|nvrtc'; then complain "$floed links CUDA"; fi

if [ $# -gt 1 ]; then
  library=$2
  exports=$(nm -D --defined-only "$library" | awk '{print $3}')
  [ "$exports" = floe_cuda_library ] || complain "$library exports: $exports"
  for name in $(needed "$library"); do
    case $name in
      libc.so.6 | libm.so.6 | libdl.so.2 | librt.so.1 | libpthread.so.0 | libstdc++.so.6 | libgcc_s.so.1 | ld-linux*) ;;
      *) complain "$library needs $name" ;;
    esac
  done
  bytes=$(stat -Lc %s "$library")
  [ "$bytes" -le $most_bytes ] || complain "$library has $bytes bytes, more than $most_bytes"
  echo "$library: $bytes bytes"
fi
exit $failed
