"""What floed leaves behind when it crashes."""
import ctypes
import os
import re
import signal
import threading

import grpc
import numpy as np

from floed import CONFIG, Floed


def crash_a_busy_worker():
    """The log of a floed that got SIGSEGV in a thread that computes, or sends what it computed."""
    server = Floed("--config", CONFIG)
    images, stop = np.zeros((64, 784), np.float32), threading.Event()

    def ask():
        with server.client() as client:
            while not stop.is_set():
                try:
                    client.predict("mnist_conv", {"input": images})
                except grpc.RpcError:
                    return

    callers = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
    for caller in callers:
        caller.start()
    tasks = f"/proc/{server.process.pid}/task"

    def workers():
        """Threads that are in a run: those of the model that use the CPU."""
        found = []
        for task in os.listdir(tasks):
            try:
                with open(f"{tasks}/{task}/comm", encoding="utf-8") as f:
                    name = f.read()
                with open(f"{tasks}/{task}/stat", encoding="utf-8") as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if name.startswith("w") and "mnist_conv" in name and state == "R":
                found.append(int(task))
        return found

    libc, sys_tgkill = ctypes.CDLL(None), 234

    def struck():
        return any(libc.syscall(sys_tgkill, server.process.pid, worker, signal.SIGSEGV) == 0 for worker in workers())

    server.wait_until(struck)
    assert server.wait() == -signal.SIGSEGV
    stop.set()
    for caller in callers:
        caller.join()
    return server.log()


def test_a_crash_names_model_op_and_stack():
    for _ in range(10):
        log = crash_a_busy_worker()
        assert "*** SIGSEGV received" in log
        if "while computing" in log:
            break
    assert re.search(r"while computing model 'mnist_conv' version 1, node '.*' \(\w+\)", log), log
    assert "floe::" in log, "the stack has names"
