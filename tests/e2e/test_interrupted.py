"""Ctrl-C at any moment: processes that interrupt, call and close, over and over.

`make stress` runs 200 rounds per device (ORCHESTRION_STRESS), CI some.
"""

import functools
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import interrupted
import numpy as np
import pytest
from watchdog import watched

from orchestrion import compiler

LONG = "ORCHESTRION_STRESS" in os.environ
#: rounds of all processes of a device together, and of one process
ROUNDS, PER_PROCESS = (200, 20) if LONG else (10, 10)
#: the validation layer, when the device is destroyed: an object that was made when the alarm came, before anybody had
#: its handle, is left to the driver
LOST = "VUID-vkDestroyDevice-device-00378"
TEXT = """
func.func @small(%x: tensor<192x192xf32>) -> tensor<192x192xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<192x192xf32>
  return %0 : tensor<192x192xf32>
}
func.func @large(%x: tensor<192x192xf32>) -> tensor<192x192xf32> {
  %0 = stablehlo.dot %x, %x : (tensor<192x192xf32>, tensor<192x192xf32>) -> tensor<192x192xf32>
  %1 = stablehlo.dot %0, %x : (tensor<192x192xf32>, tensor<192x192xf32>) -> tensor<192x192xf32>
  %2 = stablehlo.dot %1, %x : (tensor<192x192xf32>, tensor<192x192xf32>) -> tensor<192x192xf32>
  %3 = stablehlo.dot %2, %x : (tensor<192x192xf32>, tensor<192x192xf32>) -> tensor<192x192xf32>
  return %3 : tensor<192x192xf32>
}
"""

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no alarms")


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


@pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
def test_interrupt_call_close(device: str, load_on: Callable[[bytes, str], Any], tmp_path: Path) -> None:
    load_on(module(), device).close()  # skips where there is no such device
    path = tmp_path / "module.fb"
    path.write_bytes(module())
    for seed in range(ROUNDS // PER_PROCESS):
        command = [sys.executable, interrupted.__file__, str(path), device, str(PER_PROCESS), str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        said = [line for line in done.stderr.splitlines() if LOST not in line]
        assert (done.returncode, done.stdout, said) == (0, f"{PER_PROCESS}\n", []), f"seed {seed}"


def test_a_submit_that_ends_before_the_queue_advances(load_on: Callable[[bytes, str], Any]) -> None:
    """The queue may hold the context's lock by then: the next blocking call waited for it for ever."""
    program = load_on(module(), "reference")
    x = np.ones((192, 192), np.float32)
    program.small.submit(x).result(60)
    run = program.context.call_queue.loops.run
    real, struck = run.post, []

    class Struck:
        def post(self, work: Callable[[], None]) -> None:
            if not struck:
                struck.append(work)
                raise KeyboardInterrupt
            real(work)

        def __getattr__(self, name: str) -> Any:
            return getattr(run, name)

    queue = program.context.call_queue
    loops = queue.loops
    queue.loops = types.SimpleNamespace(run=Struck(), wait=loops.wait)
    try:
        with pytest.raises(KeyboardInterrupt):
            program.small.submit(x)
    finally:
        queue.loops = loops
    assert struck
    with watched(60):
        np.testing.assert_array_equal(program.small(x), x)
    program.close()
