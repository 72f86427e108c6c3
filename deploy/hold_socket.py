#!/usr/bin/env python3
"""hold_socket.py ADDRESS:PORT COMMAND...: keeps a socket open for a server, as systemd's socket unit does.

SIGHUP restarts the server with the same socket. SIGTERM ends it and this.
"""
import os
import signal
import socket
import subprocess
import sys


def start(listener, command):
    def hand_over():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.dup2(listener.fileno(), 3)
        os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        os.execvp(command[0], command)
    # Its environment names its own process, so it executes the command itself.
    return subprocess.Popen(["true"], preexec_fn=hand_over, pass_fds=(3, listener.fileno()))


SIGNALS = {signal.SIGHUP, signal.SIGTERM}


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    keep = os.open("/dev/null", os.O_RDONLY)  # so that 3 is never the listener itself
    listener = socket.create_server((host, int(port)), backlog=4096)
    server = start(listener, sys.argv[2:])
    while True:
        got = signal.sigwait(SIGNALS)
        server.terminate()
        code = server.wait()
        if got == signal.SIGTERM:
            os.close(keep)
            sys.exit(code)
        server = start(listener, sys.argv[2:])


if __name__ == "__main__":
    main()
