"""What could hang does not: processes that end, or fork, with calls under way, each in a process of its own."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrion import compiler

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
LOAD = """
import os, sys, threading
import numpy as np
from orchestrion import vm
from orchestrion.hal.errors import DriverUnavailable, HalError
from orchestrion.vm.errors import VmError
X = np.array([1, 2, 3, 4], np.float32)
def load():
    return vm.load({path!r}, {device!r}, allow_native_code=True)
try:
    program = load()
except DriverUnavailable as error:
    print(error)
    sys.exit(77)
def said(action):
    try:
        print(np.asarray(action()).tolist(), flush=True)
    except (VmError, HalError, TimeoutError) as error:
        print(type(error).__name__, error, flush=True)
"""
#: script -> what it prints
PENDING = """
contexts = [program.create_context() for _ in range(5)]
stuck = program.main.submit(X, wait=[vm.Fence()])
waiting = [context.main.submit(X, wait=[stuck]) for context in contexts]
running = [context.main.submit(X) for context in contexts for _ in range(20)]
threading.Thread(target=stuck.result, daemon=True).start()
said(lambda: stuck.result(0.01))
"""
AWAITED = """
import asyncio
async def main():
    async def wait():
        await program.main.submit(X, wait=[vm.Fence()])
    task = asyncio.create_task(wait())
    await asyncio.sleep(0.01)
asyncio.run(main())
said(lambda: program.main(X))
"""
EVENT = """
try:
    import pyopencl as cl
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
except Exception as error:
    print(error)
    sys.exit(77)
event = cl.UserEvent(context)
future = program.main.submit(X, wait=[event])
said(lambda: future.result(0.05))
"""
CLOSED = """
futures = [program.main.submit(X) for _ in range(20)] + [program.main.submit(X, wait=[vm.Fence()])]
program.close()
said(lambda: futures[-1].result(10))
said(lambda: program.main(X))
said(lambda: program.main.submit(X))
assert all(future.exception(10) is None or "closed" in str(future.exception()) for future in futures)
"""
FORKED = """
program.main.submit(X).result(10)
resident = program.put(X)
stuck = program.main.submit(X, wait=[vm.Fence()])
parent = os.getpid()
child = os.fork()
if child == 0:
    said(lambda: program.main(X))
    said(lambda: program.main.submit(X))
    said(lambda: program.put(X))
    said(lambda: stuck.result(10))
    program.close()
    said(lambda: load().main(X))
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert stuck.cancel()
said(lambda: program.main.submit(resident).result(10))
"""
SQUARES = "[1.0, 4.0, 9.0, 16.0]"


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


def run(script: str, device: str, folder: Path) -> list[str]:
    """The lines it prints. It ends by itself, says nothing else, and succeeds."""
    path = folder / "module.fb"
    path.write_bytes(module())
    code = LOAD.format(path=str(path), device=device) + script
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(params=["reference", "opencl", "vulkan"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_exit_with_calls_under_way(device: str, tmp_path: Path) -> None:
    assert run(PENDING, device, tmp_path) == ["TimeoutError not reached after 0.01 s"]


def test_a_loop_that_ends_cancels_what_it_awaits(device: str, tmp_path: Path) -> None:
    assert run(AWAITED, device, tmp_path) == [SQUARES]


def test_exit_while_an_event_is_looked_at(device: str, tmp_path: Path) -> None:
    assert run(EVENT, device, tmp_path) == ["TimeoutError not reached after 0.05 s"]


def test_close_with_calls_under_way(device: str, tmp_path: Path) -> None:
    stuck, *closed = run(CLOSED, device, tmp_path)
    assert stuck == "Cancelled the context was closed before the call began"
    assert closed == ["CallerValueError the program of 'main' is closed", "CallerValueError the program is closed"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no fork")
def test_fork(device: str, tmp_path: Path) -> None:
    """The child is told by name, its parent goes on; on the host alone the child may load the program again."""
    *refused, again, parent = run(FORKED, device, tmp_path)
    kinds = [line.split()[0] for line in refused]
    assert kinds == ["CallerValueError", "CallerValueError", "InvalidArgument", "Cancelled"]
    assert all("of which this one is a fork" in line for line in refused)
    assert again == SQUARES if device == "reference" else again.startswith(f"DriverUnavailable driver {device} was in")
    assert parent == SQUARES
