"""Eight threads, three contexts, a driver that fails at random and the garbage collector at each lock: no wrong result,
no deadlock, nothing left. `tests/support/stressed.py` is what runs, in a process of its own.

`make stress` makes more calls (ORCHESTRION_STRESS, divided by 20), CI some.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrion import compiler

CALLS = max(40, int(os.environ.get("ORCHESTRION_STRESS", "0")) // 20)
TEXT = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %w = stablehlo.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %w : tensor<4xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32>
}
"""


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
def test_faults_and_the_collector_at_each_lock(
    device: str, load_on: Callable[[bytes, str], Any], tmp_path: Path
) -> None:
    load_on(module(), device).close()  # skips where there is no such device
    path = tmp_path / "module.fb"
    path.write_bytes(module())
    script = Path(__file__).parents[1] / "support" / "stressed.py"
    for seed in range(2):
        command = [sys.executable, str(script), str(path), device, str(CALLS), str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        right, failed = map(int, done.stdout.split())
        assert right + failed == 8 * CALLS and right > CALLS and failed > 0
