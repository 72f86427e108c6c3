"""Versions whose load crashes, hangs or takes all memory, beside one that serves: each is tried in another process."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import grpc
import h5py
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import get_model_status_pb2

from floed import FLOECTL, FLOED, MNIST, Floed, digits, free_port

BEGINNER = os.path.join(MNIST, "models/mnist_beginner/1/frozen.pb")
TRIAL = "floed-trial"


def graph_of(build):
    graph = tf.Graph()
    with graph.as_default():
        build(tf.compat.v1.placeholder(tf.float32, [None, 784], name="input"))
    return graph.as_graph_def().SerializeToString()


def endless():
    """Ends once the first number is negative; the warm-up's is 0."""
    def build(x):
        i, _ = tf.compat.v1.while_loop(lambda i, total: i >= 0, lambda i, total: (i * 1, total + 1), [x[0, 0], 0.0])
        tf.identity(i, name="softmax")
    with_v1 = tf.compat.v1.control_flow_v2_enabled()
    tf.compat.v1.disable_control_flow_v2()
    try:
        return graph_of(build)
    finally:
        if with_v1:
            tf.compat.v1.enable_control_flow_v2()


def huge():
    """Constants of a GiB each, of a few bytes in the file."""
    def build(x):
        total = tf.reduce_sum(x)
        for k in range(8):
            total += tf.reduce_sum(tf.fill([256, 1024, 1024], float(k)) * x[0, 0])
        tf.identity(total, name="softmax")
    return graph_of(build)


def put(place, version, data, name="frozen.pb"):
    """As a careful copier does it: complete at once."""
    new = os.path.join(place, "new")
    os.makedirs(new)
    with open(os.path.join(new, name), "wb") as f:
        f.write(data)
    open(os.path.join(new, "done"), "w", encoding="utf-8").close()
    os.rename(new, os.path.join(place, str(version)))


@pytest.fixture
def place(tmp_path):
    with open(BEGINNER, "rb") as f:
        put(tmp_path, 1, f.read())
    return tmp_path


def start(place, *flags, config=""):
    path = str(place) + ".yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"models:\n  - {{name: m, base_path: {place}, completion_marker: done}}\n{config}")
    return Floed("--config", path, *flags)


def children(floed):
    """The names of floed's child processes by their ids."""
    found = {}
    for task in os.listdir(f"/proc/{floed.process.pid}/task"):
        try:
            with open(f"/proc/{floed.process.pid}/task/{task}/children", encoding="utf-8") as f:
                ids = f.read().split()
            for pid in ids:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                    found[int(pid)] = f.read().strip()
        except FileNotFoundError:
            pass
    return found


def trials(floed):
    """The process ids of floed's trials."""
    return [pid for pid, name in children(floed).items() if name == TRIAL]


def starter_of(floed):
    """The process id of what forks the trials."""
    (pid,) = [pid for pid, name in children(floed).items() if name == "trial-starter"]
    return pid


def busy(pid):
    """Whether the process has computed for a third of a second: it is past its start."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    return 3 * int(fields[11]) >= os.sysconf("SC_CLK_TCK")


def status_of(client, version):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "m"
    for status in client.models.GetModelStatus(request, timeout=30).model_version_status:
        if status.version == version:
            return status.status
    return None


class Callers:
    """Call version 1 as long as they are there; no call may fail, nor be answered by another version."""

    def __init__(self, floed):
        self.calls, self.failed, self.over = 0, [], False
        self.thread = threading.Thread(target=self.run, args=(floed,), daemon=True)

    def run(self, floed):
        x = digits()[:1]
        with floed.client() as client:
            while not self.over:
                try:
                    reply = client.predict("m", {"input": x}, timeout=10)
                    assert reply.model_spec.version.value == 1
                    self.calls += 1
                except (grpc.RpcError, AssertionError) as error:
                    self.failed.append(error)
                time.sleep(0.001)

    def __enter__(self):
        self.thread.start()
        while not self.calls and not self.failed:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        assert not self.failed and self.calls > 0, (self.calls, self.failed[:3])


def wait_for_error(floed, version):
    with floed.client() as client:
        floed.wait_until(lambda: (status := status_of(client, version)) is not None and status.error_code != 0)
        return status_of(client, version)


@pytest.mark.parametrize("sign", [signal.SIGSEGV, signal.SIGILL, signal.SIGABRT, signal.SIGKILL])
def test_a_signal_ends_the_trial_and_nothing_else(place, sign):
    floed = start(place)
    with Callers(floed):
        put(place, 2, endless())
        floed.wait_until(lambda: trials(floed) and busy(trials(floed)[0]))
        os.kill(trials(floed)[0], sign)
        error = wait_for_error(floed, 2)
    assert f"ended by {sign.name} during warm-up, running node '" in error.error_message, error
    assert error.error_code == (14 if sign == signal.SIGKILL else 13)
    assert str(place) not in error.error_message
    floed.close()


def test_one_that_hangs_ends_in_time(place):
    floed = start(place, "--max_load_seconds=2")
    with Callers(floed):
        put(place, 2, endless())
        error = wait_for_error(floed, 2)
    assert error.error_code == 4 and "max_load_seconds (2 s)" in error.error_message, error
    assert "during warm-up, running node '" in error.error_message, error
    assert not trials(floed)
    # From outside, too, and all that was changed is nothing.
    other = os.path.join(place.parent, "other")
    os.makedirs(other)
    put(other, 1, endless())
    both = f"{other}.yaml"
    with open(both, "w", encoding="utf-8") as f:
        f.write(f"models:\n  - {{name: m, base_path: {place}, completion_marker: done}}\n  - {{name: other, base_path: {other}}}\n")
    applied = subprocess.run([FLOECTL, "config", "apply", both, "--target", floed.target], capture_output=True, text=True, timeout=120, check=False)
    assert applied.returncode != 0 and "max_load_seconds (2 s)" in applied.stderr, applied
    with floed.client() as client:
        assert client.softmax("m", digits()[:1]).shape == (1, 10)
    floed.close()


def own_memory(pid):
    with open(f"/proc/{pid}/statm", encoding="utf-8") as f:
        _, resident, shared, *_ = map(int, f.read().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def test_one_that_takes_all_memory_takes_none_of_the_servers(place):
    floed = start(place, "--memory_limit=600MiB")
    before = own_memory(floed.process.pid)
    with Callers(floed):
        put(place, 2, huge())
        error = wait_for_error(floed, 2)
    assert error.error_code == 8, error
    assert own_memory(floed.process.pid) - before < 100 << 20
    floed.close()


def test_never_tries_nothing(place):
    floed = start(place, "--trial_load=never")
    assert "and a trial of" not in floed.log()
    floed.close()


def hostile_hdf5(tmp_path, at, value):
    """A file with this byte of its strings' heap changed: libhdf5 believes the sizes that are there."""
    path = os.path.join(tmp_path.parent, f"{at}.h5")
    with h5py.File(path, "w") as f:
        f.attrs["keras_version"] = "2.15.0"
        f.attrs["model_config"] = "{}"
    with open(path, "rb") as f:
        data = bytearray(f.read())
    data[data.index(b"GCOL") + at] = value
    return bytes(data)


@pytest.mark.parametrize("at, value, end", [(31, 1, "SIGSEGV"), (48, 255, "limit of [0-9]+ CPU seconds")])
def test_hostile_hdf5_harms_nobody_without_a_trial(place, at, value, end):
    floed = start(place, "--trial_load=never", config="lifecycle: {load_retry_interval_micros: 100000}\n")
    with Callers(floed):
        put(place, 2, hostile_hdf5(place, at, value), name="model.h5")
        error = wait_for_error(floed, 2)
        floed.wait_until(lambda: "is not served: " in floed.log())
    assert error.error_code == 3 and re.search(f"the HDF5 parser was ended by (its )?{end}", error.error_message), error
    assert floed.log().count("the HDF5 parser") == 1  # it is not tried again
    assert "floe-hdf5" not in children(floed).values()
    with open(f"/proc/{floed.process.pid}/maps", encoding="utf-8") as f:
        assert "libhdf5" not in f.read()
    floed.close()


def test_updates_leaves_the_start_alone(place):
    floed = start(place, "--trial_load=updates")
    assert "and a trial of" not in floed.log()
    with open(BEGINNER, "rb") as f:
        put(place, 2, f.read())
    floed.wait_until(lambda: "version 2 is loaded after" in floed.log())
    assert re.search("version 2 is loaded after .* and a trial of", floed.log())
    floed.close()


def test_it_starts_without_what_forks_it(place):
    floed = start(place)
    starter = starter_of(floed)
    with open(f"/proc/{starter}/cmdline", encoding="utf-8") as f:
        assert f.read().strip("\0") == "trial-starter"  # pgrep -f and the like find floed alone
    os.kill(starter, signal.SIGTERM)  # a service's end is for all its processes, and floed may load until then
    with open(BEGINNER, "rb") as f:
        put(place, 2, f.read())
    floed.wait_until(lambda: re.search("version 2 is loaded after .* and a trial of", floed.log()))
    assert starter_of(floed) == starter
    os.kill(starter, signal.SIGKILL)
    shutil.copytree(place / "2", place / "new")
    os.rename(place / "new", place / "3")
    floed.wait_until(lambda: re.search("version 3 is loaded after .* and a trial of", floed.log()))
    floed.close()


def test_its_price(place):
    """What a trial takes beyond the load that it is: the start of a process."""
    floed = start(place, config="lifecycle: {file_system_poll_wait_seconds: 1}\n")
    for version in range(2, 7):
        shutil.copytree(place / "1", place / "new")
        os.rename(place / "new", place / str(version))
        floed.wait_until(lambda v=version: f"version {v} is loaded after" in floed.log())
    times = re.findall(r"is loaded after ([\d.]+) ms and a trial of ([\d.]+) ms", floed.log())
    floed.close()
    loads, tried = np.array(times, float).T
    print(f"load {np.median(loads):.1f} ms, trial {np.median(tried):.1f} ms, price {np.min(tried - loads):.1f} ms at best,"
          f" {np.median(tried - loads):.1f} usually")
    assert np.min(tried - loads) < 1000


# ---- where threads are short

OTHER_USER = 61234


def limited(threads):
    """What becomes a process of a user whose processes may have so many threads together; or, with --pid, limits one."""
    user = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"] if os.geteuid() == 0 else []
    return [*user, "prlimit", f"--nproc={threads}"]


@pytest.fixture
def open_place():
    """Other users may read it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(BEGINNER, "rb") as f:
            put(os.path.join(folder), 1, f.read())
        yield folder


@pytest.fixture(scope="module")
def open_floed():
    """floed where other users may run it: they may not enter a checkout in root's home."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(FLOED, folder)


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_without_threads_it_does_not_start_and_says_why(open_place, open_floed, threads):
    done = subprocess.run([*limited(threads), open_floed, "--model_name=m", f"--model_base_path={open_place}", f"--port={free_port()}"],
                          capture_output=True, text=True, timeout=60, check=False)
    print(done.stderr)
    assert done.returncode == 1
    assert "thread" in done.stderr or "Resource temporarily unavailable" in done.stderr


def limit_threads(floed, room):
    """From now on floed's user may have one thread, or, with `room`, so many more than now."""
    processes = [floed.process.pid, *children(floed)]
    threads = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in processes) + room if room else 1
    for pid in processes:
        subprocess.run([*limited(threads), "--pid", str(pid)], check=True)


# Without room no process can be made; with room for one, it has no threads but where one of the server's has ended.
@pytest.mark.parametrize("room, expected", [(0, "cannot be started"), (1, "thread|cannot be started|is loaded")])
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user without other processes")
def test_a_trial_without_threads_is_no_fault_of_the_version(open_place, open_floed, room, expected):
    config = os.path.join(open_place, "floe.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"models:\n  - {{name: m, base_path: {open_place}, completion_marker: done}}\n"
                "lifecycle: {load_retry_interval_micros: 100000, max_num_load_retries: 1000}\n")
    floed = Floed("--config", config, under=limited(4096), program=open_floed)
    limit_threads(floed, room)
    with open(BEGINNER, "rb") as f:
        put(open_place, 2, f.read())
    floed.wait_until(lambda: re.search(f"version 2.*({expected})", floed.log()))
    print(floed.log())
    assert "SIGABRT" not in floed.log()
    assert "is not served: " not in floed.log()  # it is tried again
    floed.close()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_server(place, sign):
    floed = start(place)
    put(place, 2, endless())
    floed.wait_until(lambda: trials(floed))
    processes = [trials(floed)[0], starter_of(floed)]
    floed.process.send_signal(sign)
    assert floed.wait() == (0 if sign == signal.SIGTERM else -sign)
    end = time.monotonic() + 30

    def gone(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                return f.read().rpartition(")")[2].split()[0] == "Z"  # nobody may wait for it here
        except FileNotFoundError:
            return True
    while not all(gone(pid) for pid in processes):
        assert time.monotonic() < end
        time.sleep(0.02)
    shutil.rmtree(floed.folder)


def test_it_has_a_loads_priority_and_no_files_of_the_server(place):
    floed = start(place)
    put(place, 2, endless())
    floed.wait_until(lambda: trials(floed) and busy(trials(floed)[0]))
    child = trials(floed)[0]
    with open(f"/proc/{child}/cmdline", encoding="utf-8") as f:
        assert TRIAL in f.read()
    assert os.getpgid(child) == child
    own = os.getpriority(os.PRIO_PROCESS, floed.process.pid)
    assert os.getpriority(os.PRIO_PROCESS, child) >= min(19, own + 5)
    links = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
    assert not any("socket:" in link or link == floed.log_path for link in links), links
    floed.close()
