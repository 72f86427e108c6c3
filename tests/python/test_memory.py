"""memory_limit: what files and requests may make a server take, and who is refused for it."""
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf

from floed import MNIST, Floed, predict_request

LIMIT_MIB = 256
# Of the program itself, its threads and libraries, and what arrives.
OVERHEAD_MIB = 120
REPEATED = 5
Code = grpc.StatusCode
v1 = tf.compat.v1


def mib(floed, what):
    """VmRSS or VmHWM."""
    with open(f"/proc/{floed.process.pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what)) / 1024


def doubled():
    """A string that doubles forty times."""
    x = v1.placeholder(tf.string, [None], name="x")
    text = tf.constant("0123456789")
    for _ in range(40):
        text = tf.strings.join([text, text])
    return tf.strings.join([x, text], name="y")


def chain():
    """A constant of 1 MiB through 20,000 ops, which tf.Graph would take minutes to make."""
    ops, floats = 20_000, 1 << 18
    x = v1.placeholder(tf.float32, [None, floats], name="x")
    value = tf.add(tf.constant(np.arange(floats, dtype=np.float32)), 1.0, name="0")
    tf.add(x, value, name="y")
    graph = x.graph.as_graph_def()
    nodes = {node.name: node for node in graph.node}
    for i in range(1, ops):
        node = graph.node.add()
        node.CopyFrom(nodes["0"])
        node.name, node.input[0] = str(i), str(i - 1)
    nodes["y"].input[1] = str(ops - 1)
    return graph


def filled():
    """Eight fills of 512 MiB, of each of which the first element is used."""
    y = v1.placeholder(tf.float32, [None], name="x")
    for i in range(8):
        y = y + tf.fill([1 << 27], float(i))[:1]
    return tf.identity(y, name="y")


def repeated():
    """Four constants of 512 MiB, of one number each."""
    y = v1.placeholder(tf.float32, [None], name="x")
    for i in range(4):
        y = y + tf.constant(float(i), shape=[REPEATED])[:1]
    return tf.identity(y, name="y")


def repeat(graph):
    """What would be too large to write here: constants of REPEATED numbers get as many as they stand for."""
    for node in graph.node:
        tensor = node.attr["value"].tensor
        dims = tensor.tensor_shape.dim
        if node.op == "Const" and len(dims) == 1 and dims[0].size == REPEATED:
            number = tf.make_ndarray(tensor)[0]
            tensor.ClearField("tensor_content")
            tensor.float_val[:] = [number]
            dims[0].size = 1 << 27
    return graph


def write(folder, make):
    """What make() adds to the default graph, or gives as a GraphDef of its own."""
    with tf.Graph().as_default() as graph:
        made = make()
    (folder / "1").mkdir(parents=True)
    given = made if isinstance(made, v1.GraphDef) else graph.as_graph_def()
    (folder / "1/frozen.pb").write_bytes(repeat(given).SerializeToString())


def configure(folder, limit_mib):
    """A configuration of `fine` and of `large`, whose files are in folder/large."""
    config = folder / "floe.yaml"
    config.write_text(f"lifecycle: {{memory_limit: {limit_mib}MiB}}\n"
                      f"models:\n  - {{name: fine, base_path: {MNIST}/models/mnist_beginner}}\n"
                      f"  - {{name: large, base_path: {folder}/large, workers: 1}}\n")
    return str(config)


@pytest.mark.parametrize("make", [doubled, chain, filled, repeated], ids=lambda make: make.__name__)
def test_no_file_takes_more_than_the_limit(tmp_path, make):
    write(tmp_path / "large", make)
    floed = Floed("--config", configure(tmp_path, LIMIT_MIB), wait=False)
    floed.wait_until(lambda: "ready: Serving" in floed.log() and "others are still" not in floed.log())
    with floed.client() as client:
        client.softmax("fine", np.zeros([1, 784], np.float32))
    print(f"{make.__name__}: at most {mib(floed, 'VmHWM'):.0f} MiB, then {mib(floed, 'VmRSS'):.0f} MiB\n{floed.log()}")
    assert mib(floed, "VmHWM") < LIMIT_MIB + OVERHEAD_MIB
    if "'large' version 1 is not served: " in floed.log():
        assert "memory_limit is 256.0 MiB" in floed.log() or "max_load_seconds" in floed.log()
        floed.wait_until(lambda: mib(floed, "VmRSS") < OVERHEAD_MIB)
    floed.close()


@pytest.mark.parametrize("mib_each,limit_mib", [([50] * 5, 350), ([250], 350), ([250], 200)])
def test_a_large_file_is_in_memory_once(tmp_path, mib_each, limit_mib):
    def tables():
        i = v1.placeholder(tf.int32, [None], name="i")
        rows = [tf.gather(tf.constant(np.full([size << 10, 256], k + 1, np.float32)), i) for k, size in enumerate(mib_each)]
        tf.add_n(rows, name="y")
    write(tmp_path / "large", tables)
    floed = Floed("--config", configure(tmp_path, limit_mib), wait=False)
    floed.wait_until(lambda: "ready: Serving" in floed.log() and "others are still" not in floed.log())
    print(f"{mib_each}, limit {limit_mib}: at most {mib(floed, 'VmHWM'):.0f} MiB, then {mib(floed, 'VmRSS'):.0f} MiB\n{floed.log()}")
    if limit_mib < sum(mib_each):
        assert "'large' version 1 is not served: " in floed.log() and "memory_limit is 200.0 MiB" in floed.log()
        assert mib(floed, "VmHWM") < OVERHEAD_MIB
    else:
        with floed.client() as client:
            y = client.predict("large", {"i": np.array([0, 7], np.int32)}).outputs["y"]
        assert tf.make_ndarray(y)[1, 255] == sum(range(1, len(mib_each) + 1))
        assert mib(floed, "VmHWM") < sum(mib_each) * 1.4
    floed.close()


ADDRESS_SPACE = 1 << 30


def test_what_an_address_space_does_not_hold_is_refused(tmp_path):
    write(tmp_path / "large", lambda: tf.nn.relu(v1.placeholder(tf.float32, [None, 1024], name="x"), name="y"))
    config = tmp_path / "floe.yaml"
    config.write_text(f"models:\n  - {{name: fine, base_path: {MNIST}/models/mnist_beginner}}\n"
                      f"  - {{name: large, base_path: {tmp_path}/large, workers: 1}}\n")
    floed = Floed("--config", str(config), under=("prlimit", f"--as={ADDRESS_SPACE}"))
    large = predict_request("large", {"x": np.ones([251 << 8, 1024], np.float32)}).SerializeToString()
    assert 250 << 20 < len(large) < 256 << 20
    clients = [floed.client() for _ in range(6)]
    calls = [client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict").future(large, timeout=60)
             for client in clients]
    codes = [call.code() for call in calls]
    print(f"{codes}; at most {mib(floed, 'VmPeak'):.0f} MiB of addresses, {mib(floed, 'VmHWM'):.0f} MiB\n{floed.log()}")
    assert set(codes) <= {Code.OK, Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}
    for client in clients:
        client.close()
    assert floed.process.poll() is None
    with floed.client() as client:
        floed.wait_until(lambda: client.softmax("fine", np.zeros([1, 784], np.float32)).shape == (1, 10))
    floed.close()


def test_large_requests_are_refused_and_small_ones_are_not(tmp_path):
    write(tmp_path / "copy", lambda: tf.nn.relu(v1.placeholder(tf.float32, [None, 1024], name="x"), name="y"))
    config = tmp_path / "floe.yaml"
    config.write_text(f"lifecycle: {{memory_limit: {LIMIT_MIB}MiB}}\n"
                      f"models:\n  - {{name: fine, base_path: {MNIST}/models/mnist_beginner}}\n"
                      f"  - {{name: copy, base_path: {tmp_path}/copy, workers: 1}}\n")
    floed = Floed("--config", str(config))
    large = predict_request("copy", {"x": np.ones([10 << 10, 1024], np.float32)}).SerializeToString()
    clients = [floed.client() for _ in range(12)]
    calls = [client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict").future(large, timeout=60)
             for client in clients]
    ended = threading.Event()
    small, failed = [], []

    def neighbour():
        with floed.client() as client:
            while not (ended.is_set() and small):
                try:
                    client.softmax("fine", np.zeros([1, 784], np.float32))
                    small.append(1)
                except grpc.RpcError as error:
                    if error.code() != Code.UNAVAILABLE:  # gRPC closes connections when its quota is used up
                        failed.append(f"{error.code()}: {error.details()}")
    thread = threading.Thread(target=neighbour, daemon=True)
    thread.start()
    codes = [call.code() for call in calls]
    ended.set()
    thread.join(60)
    print(f"{codes}; {len(small)} small ones; at most {mib(floed, 'VmHWM'):.0f} MiB")
    assert set(codes) <= {Code.OK, Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}
    assert small and not failed, failed[:3]
    for client in clients:
        client.close()
    with floed.client() as client:
        again = client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")(large, timeout=60)
        assert len(again) > 10 << 20
    floed.close()


def test_small_things_get_no_huge_pages():
    """The system may make them for whoever does not refuse."""
    with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="utf-8") as f:
        if "[never]" in f.read():
            return
    refused = resident = 0
    floed = Floed("--model_name=m", f"--model_base_path={MNIST}/models/mnist_beginner")
    try:
        with open(f"/proc/{floed.process.pid}/smaps", encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if words[0] == "Anonymous:":
                    anonymous = int(words[1])
                elif words[0] == "VmFlags:":
                    resident += anonymous
                    refused += anonymous if "nh" in words else 0
    finally:
        floed.close()
    assert refused > resident / 2
