"""The package's commands in forks of one process that has imported them, for tests that run hundreds of commands.

A command's process has its own arguments, folder, environment, and standard streams, and ends as it would otherwise; it
does not spend the second that imports take. `bin_of` gives a folder of commands to put on the path. That the installed
commands themselves start is for `tests/test_wheel.py`.

    command_server.py SOCKET    serves until its standard input ends
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: command -> module and function
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
#: what the commands import when they open a device; nothing is opened before a fork
DRIVERS = ("reference", "opencl", "vulkan")

#: a program for the shell, which runs Python: the first line of a script cannot name a path with a blank
CLIENT = """#!/bin/sh
'''exec' "{python}" -ISs "$0" "$@"
' '''
import array, json, os, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect({address!r})
request = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
streams = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2])
peer.sendmsg([len(request).to_bytes(8, "little")], [streams])
peer.sendall(request)
status = peer.recv(4)
sys.exit(int.from_bytes(status, "little", signed=True) if status else 70)
"""


@contextmanager
def commands(folder: Path) -> Iterator[Path]:
    """A folder of commands that a server runs, as long as the context is entered."""
    address = str(folder / "socket")
    for name in SCRIPTS:
        path = folder / name
        path.write_text(CLIENT.format(python=sys.executable, address=address))
        path.chmod(0o755)
    command = [sys.executable, __file__, address]
    environment = os.environ | {"ORCHESTRION_HOME": str(folder / "home")}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None and server.stdin is not None
        assert server.stdout.readline() == b"ready\n"
        try:
            yield folder
        finally:
            server.stdin.close()


def serve(address: str) -> Callable[[], Any] | None:
    """Serves until standard input ends, and gives None; in the process of a command gives its function."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:
            return None
        peer, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _command(peer)
        peer.close()


def _command(peer: socket.socket) -> Callable[[], Any]:
    """In the command's process its function; the process in front of it ends here, with the command's status told."""
    head, streams, _, _ = socket.recv_fds(peer, 8, 3)
    arguments, folder, environment = json.loads(_received(peer, int.from_bytes(head, "little")))
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        _wait(peer, child)
    peer.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    module, _, function = SCRIPTS[Path(arguments[0]).name].partition(":")
    found: Callable[[], Any] = getattr(import_module(module), function)
    return found


def _received(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = peer.recv(count - len(data))
        assert part, "the client ended in the middle of its request"
        data += part
    return bytes(data)


def _wait(peer: socket.socket, child: int) -> None:
    """Tells the client how the command ended, or ends the command if the client is gone."""
    watched = os.pidfd_open(child)
    ready, _, _ = select.select([peer, watched], [], [])
    if watched not in ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if watched in ready:
        peer.sendall((status if status >= 0 else 128 - status).to_bytes(4, "little", signed=True))
    os._exit(0)


def _import() -> None:
    """All that commands import: the compiler does so when it compiles."""
    for entry in SCRIPTS.values():
        import_module(entry.partition(":")[0])
    for driver in DRIVERS:
        with suppress(ImportError):
            import_module(f"orchestrion.hal.{driver}.driver")
    import_module("orchestrion.compiler").compile((ROOT / "examples" / "simple_mul.generic.mlir").read_text())


if __name__ == "__main__":
    _import()
    gc.freeze()  # a collection in a fork would copy what it looks at
    run = serve(sys.argv[1])
    sys.exit(run() if run is not None else 0)
