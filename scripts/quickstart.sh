#!/usr/bin/env bash
# From a fresh checkout to answers: installs what is missing, builds, serves the two MNIST models, sends each of
# them the 10,000 test digits over gRPC, and leaves nothing running.
#
#   scripts/quickstart.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# = 0 ] || die "takes no arguments"
say "packages"
install_deps_and_step_down build "$@"

say "build (Release; the first one takes some minutes)"
configure_release
ninja -C build/release floed floectl mnist_client

work=$(mktemp -d)
server=
stop() {
  if [ -n "$server" ]; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts floed on $port and returns once both models serve. Fails when floed ends first.
start() {
  build/release/floed --config config/floe.yaml --port "$port" 2>"$work/floed.log" &
  server=$!
  for _ in $(seq 300); do
    kill -0 "$server" 2>/dev/null || return 1
    if build/release/floectl status --target "127.0.0.1:$port" --model mnist_beginner >/dev/null 2>&1 &&
       build/release/floectl status --target "127.0.0.1:$port" --model mnist_conv >/dev/null 2>&1; then
      return 0
    fi
    sleep 0.1
  done
  return 1
}

say "floed"
for attempt in 1 2 3; do
  port=$(free_port)
  start && break
  # Somebody may have taken the port in between; anything else is worth reading.
  if [ "$attempt" = 3 ] || kill -0 "$server" 2>/dev/null; then
    cat "$work/floed.log" >&2
    die "floed did not start"
  fi
  wait "$server" || true
  server=
done
cat "$work/floed.log"

digits=examples/mnist/data
for model in mnist_beginner mnist_conv; do
  say "$model: 10,000 digits, one Predict call each"
  build/release/mnist_client --target "127.0.0.1:$port" --model "$model" \
    --images $digits/t10k-images-idx3-ubyte.gz --labels $digits/t10k-labels-idx1-ubyte.gz \
    --expect "examples/mnist/expected_classes/$model.u8" --concurrency 16
done

say "stopping floed"
kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
[ "$code" = 0 ] || { cat "$work/floed.log" >&2; die "floed exited with $code after SIGTERM"; }

cat <<'HELP'

Disagreements are counted against TensorFlow's own answers for the same files.

To call the server yourself, start it in one terminal:

    build/release/floed --config config/floe.yaml

and ask in another:

    build/release/floectl status --model mnist_conv
    build/release/floectl predict mnist_beginner input=@examples/mnist/data/digits.npy     # the first eight

or from Python, with a client that needs NumPy and grpcio only:

    sudo apt-get install python3-venv
    python3 -m venv ~/floe-client && ~/floe-client/bin/pip install "$(clients/python/build.sh)"
    ~/floe-client/bin/python -c 'import numpy; from floe_client import Client
    print(Client("127.0.0.1:8500").predict("mnist_beginner", numpy.load("examples/mnist/data/digits.npy"))["softmax"].argmax(1))'

or look at it in a browser, where a digit can be drawn:

    http://127.0.0.1:8500/models/mnist_conv

README.md says more.
HELP
