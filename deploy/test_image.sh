#!/usr/bin/env bash
# With buildah, makes the image from the last stage of deploy/Dockerfile, looks at what it says, and sends a Predict to it.
# Then runs the files of the image as a container would, without an engine: read-only root, /tmp in memory, another user, no
# capability. Asks its health, sends a Predict, ends it.
#
#   deploy/test_image.sh [BUILD]
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

build=${1:-build/release}
[ "$(id -u)" = 0 ] || { echo "not run: the chroot needs root"; exit 0; }
[ -n "${FLOE_IN_NAMESPACE:-}" ] || exec env FLOE_IN_NAMESPACE=1 unshare --mount "$0" "$@"
work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  umount -R "$work/image" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
fail() { echo "FAILED: $*" >&2; [ ! -e "$work/log" ] || cat "$work/log" >&2; exit 1; }

image=$work/image
chmod 755 "$work"
deploy/make_rootfs.sh "$build" "$image"
mount --bind "$image" "$image"
mount --bind examples/mnist/models "$image/models"
mount -t proc proc "$image/proc" 2>/dev/null || mount --rbind /proc "$image/proc"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$image/tmp"
mount --bind /dev "$image/dev"
mount -o remount,bind,ro "$image"
cp examples/mnist/data/digits.npy "$image/tmp/"
[ ! -e "$image/bin" ] && [ -z "$(find "$image/usr/bin" -name '*sh')" ] || fail "there is a shell"
! touch "$image/etc/x" 2>/dev/null || fail "the root can be written"

port=$(free_port)
# As the image's user and with the image's variables alone.
in_image=(env -i MODEL_NAME=mnist_conv MODEL_BASE_PATH=/models "$(command -v chroot)" --userspec=65532:65532 "$image")
status() { "${in_image[@]}" /usr/bin/floectl status --target "127.0.0.1:$port" --timeout 4; }

began=$(date +%s%N)
"${in_image[@]}" /usr/bin/floed --port="$port" >"$work/log" 2>&1 &
server=$!
end=$((SECONDS + 20))
until status >"$work/status" 2>&1; do
  kill -0 "$server" 2>/dev/null || fail "floed ended"
  [ $SECONDS -lt $end ] || fail "not ready in 20 s"
done
echo "start to READY, as the health check sees it: $((($(date +%s%N) - began) / 1000000)) ms (mark: 300)"
grep -q mnist_conv "$work/status" || fail "MODEL_NAME is not served"
"${in_image[@]}" /usr/bin/floectl predict mnist_conv input=@/tmp/digits.npy --target "127.0.0.1:$port" >"$work/answer" 2>&1 ||
  { cat "$work/answer"; fail "Predict"; }

# The image has only a part of ICU's data: the encodings.
cat >"$image/tmp/decode.pbtxt" <<'END'
node { name: "sjis" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {} string_val: "\226\173" } } } }
node { name: "utf8" op: "UnicodeTranscode" input: "sjis"
  attr { key: "input_encoding" value { s: "SHIFT_JIS" } } attr { key: "output_encoding" value { s: "UTF-8" } }
  attr { key: "errors" value { s: "strict" } } }
END
"${in_image[@]}" /usr/bin/floectl run /tmp/decode.pbtxt --fetch utf8 --stored --outputs /tmp/decoded.npz >"$work/answer" 2>&1 ||
  { cat "$work/answer"; fail "UnicodeTranscode"; }
grep -q '本' "$image/tmp/decoded.npz" || fail "SHIFT_JIS is not decoded"

# HDF5 comes without libcurl. floe-hdf5 reads the weights of a Keras file all the same.
cp tests/fuzz/corpus/keras/04_keras3.keras "$image/tmp/weights.keras"
"${in_image[@]}" /usr/bin/floectl bench /tmp/weights.keras --seconds 0.01 >"$work/answer" 2>&1 || { cat "$work/answer"; fail "a Keras file"; }

# Beyond loopback only by an explicit word.
if "${in_image[@]}" /usr/bin/floed --port="$port" --bind_address=0.0.0.0 --check-config >"$work/public" 2>&1; then fail "public by default"; fi
grep -q insecure_public "$work/public" || fail "no word about insecure_public: $(cat "$work/public")"
[ "$(awk '/^Uid:/ {print $2}' "/proc/$server/status")" = 65532 ] || fail "floed runs as another user"
[ "$(awk '/^CapEff:/ {print $2}' "/proc/$server/status")" = 0000000000000000 ] || fail "floed has capabilities"
kill -TERM "$server"
wait "$server" || fail "floed ended with $?"
server=

# The image itself. Its first stage is left out: it would build floe again.
by_buildah() {
  local store=(buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs) container said pid
  mkdir "$work/context"
  deploy/make_rootfs.sh "$build" "$work/context/rootfs" >/dev/null
  sed -n '/^FROM scratch/,$s|--from=build /rootfs/|rootfs/|; /^FROM scratch/,$p' deploy/Dockerfile >"$work/context/Dockerfile"
  "${store[@]}" bud --isolation chroot --format docker -t floe:test "$work/context" >"$work/log" 2>&1 || fail "buildah bud"
  said=$("${store[@]}" inspect --type image floe:test)
  for text in '"User": "65532:65532"' 'MODEL_NAME=model' 'MODEL_BASE_PATH=/models' '"/usr/bin/floectl"'; do
    grep -qF "$text" <<<"$said" || fail "the image does not say $text"
  done
  container=$("${store[@]}" from floe:test)
  "${store[@]}" run --isolation chroot --env MODEL_NAME=mnist_beginner --env FLOE_INSECURE_PUBLIC=true -v "$PWD/examples/mnist/models:/models:ro" \
    "$container" -- /usr/bin/floed --port="$port" >"$work/log" 2>&1 &
  server=$!
  end=$((SECONDS + 20))
  until "$build/floectl" status --target "127.0.0.1:$port" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "the container is not ready in 20 s"
  done
  pid=$(pgrep -f "^/usr/bin/floed --port=$port") || fail "no floed"
  # Not the address of loopback by default: the variable has opened it.
  "$build/floectl" predict mnist_beginner input=@examples/mnist/data/digits.npy --target "127.0.0.2:$port" >"$work/answer" 2>&1 ||
    { kill "$pid"; cat "$work/answer"; fail "Predict to the container"; }
  kill "$pid"
  wait "$server" || fail "the container ended with $?"
  server=
  "${store[@]}" rm "$container" >/dev/null
}
if command -v buildah >/dev/null; then by_buildah; else echo "not run: buildah is not installed"; fi
echo "image: passed"
