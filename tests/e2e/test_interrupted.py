"""Ctrl-C at any moment: processes that interrupt, call and close, over and over.

`make stress` runs 200 rounds per device (ORCHESTRION_STRESS), CI some.
"""

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import interrupted
import pytest

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
