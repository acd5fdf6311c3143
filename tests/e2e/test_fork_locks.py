"""A process that is forked while other threads hold locks: none of them hangs it.

Every lock of the project that outlives a call is remembered (`schema/fork.py`). One thread of the parent holds all of
them when it forks; the child loads and runs a module, and takes each of them.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrion import compiler

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
FORKED = """
import os, sys, threading
import numpy as np
from orchestrion import vm
from orchestrion.hal import libraries
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.libraries import registry
from orchestrion.hal.registry import open_device
from orchestrion.schema import child_process, dtypes
from orchestrion.schema.fork import remembered_locks
from orchestrion.hal.vulkan import trial_build

X = np.array([1, 2, 3, 4], np.float32)
programs = []
for name in ("reference", "opencl", "vulkan"):
    try:
        programs.append(vm.load({path!r}, name, allow_native_code=True))
    except DriverUnavailable:
        continue
for program in programs:
    program.main(X)
    program.main.submit(X).result()
fence, registry_lock = vm.Fence(), registry._lock
held, done = threading.Event(), threading.Event()

def hold():
    # some are another thread's for as long as it lives, and so are held at the fork as well
    taken = [lock for lock in remembered_locks() if lock.acquire(True, 0.5)]
    print(len(taken) > 20, registry_lock in taken, trial_build._turn in taken, flush=True)
    held.set()
    done.wait()
    for lock in taken:
        lock.release()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    for lock in remembered_locks():
        assert lock.acquire(False), lock
        lock.release()
    fence.signal()
    list(registry.libraries())
    print(np.asarray(vm.load({path!r}, "reference").main(X)).tolist(), flush=True)
    sys.stdout.flush()
    os._exit(0)
status = os.waitpid(child, 0)[1]
done.set()
thread.join()
for program in programs:
    np.testing.assert_array_equal(program.main(X), X * X)
    program.close()
print(status)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no fork")
def test_a_fork_while_every_lock_is_held(tmp_path: Path) -> None:
    path = tmp_path / "module.fb"
    path.write_bytes(compiler.compile(TEXT))
    code = FORKED.format(path=str(path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["True True True", "[1.0, 4.0, 9.0, 16.0]", "0"]


#: the file that makes them for all others
ALLOWED = {"schema/fork.py"}


def test_every_lock_is_remembered() -> None:
    """`threading.Lock()` and its like stand in one file only."""
    found = []
    for folder in ("hal", "vm", "schema"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            for node in ast.walk(ast.parse(text if "Lock" in text or "Condition" in text else "")):
                name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                if name in ("threading.Lock", "threading.RLock", "threading.Condition", "Lock", "RLock"):
                    found.append(path.relative_to(ROOT).as_posix())
    assert {*found} == ALLOWED
