"""Images for aarch64 run under qemu-user: the conformance suite, and whole programs, which give JAX's numbers.

Every seventh program runs in each run of the tests; all of them, and all of the suite, when
`ORCHESTRION_REAL_PROGRAMS=all` asks for it (`make programs`).
"""

import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from cpu_devices import open_cpu
from emulated_cpu import emulated, need_emulator

from orchestrion import compiler, vm
from orchestrion.hal.cpu import driver
from orchestrion.hal.cts import catalogue
from orchestrion.hal.cts.kernels import IOTA
from orchestrion.hal.cts.rig import Rig, whole
from orchestrion.hal.registry import devices_of, load_driver
from orchestrion.schema import native_image

ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: groups of the suite whose cases run native code
GROUPS = ("dispatches", "transfers", "indirect", "barriers", "recordings", "batches", "control_flow", "threads")
#: the one case of these groups that takes seconds
LONG = "control_flow.endless_loop"
SUITE = [name for name in catalogue.CASES if ALL or (name.split(".")[0] in GROUPS and name != LONG)]
SAMPLE = 7
#: an instruction of aarch64: leave the function
RETURN = 0xD65F03C0


@pytest.fixture(scope="module")
def emulator() -> Iterator[None]:
    need_emulator()
    with emulated():
        yield


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("hal_case", SUITE)
def test_conformance(hal_case: str, emulator: None) -> None:
    cpu = load_driver("cpu")
    (info,) = devices_of(cpu)
    result = catalogue.run_on(hal_case, cpu, info)
    if result.outcome in (catalogue.Outcome.NOT_APPLICABLE, catalogue.Outcome.UNSUPPORTED):
        pytest.skip(f"{result.outcome}: {result.reason}")


@pytest.mark.sampled(every=6)
@pytest.mark.programs(every=SAMPLE)
def test_program(case: Any, emulator: None, check: Callable[[Any, Any], None]) -> None:
    module = compiler.compile(case.lowered(), targets=["cpu"], target_cpu="aarch64")
    with open_cpu() as device:
        check(case, vm.load(module, device=device).main(*case.arguments()))


@pytest.mark.parametrize("level", ["aarch64", "aarch64-dotprod"])
@pytest.mark.parametrize("shape", [(21, 67, 40), (5, 260, 48)])
def test_products_of_bytes(level: str, shape: tuple[int, int, int], emulator: None) -> None:
    """Exact sums on both levels; the emulator's processor has dot products."""
    rows, depth, columns = shape
    random = np.random.default_rng(depth)
    x, y = (random.integers(-128, 128, of).astype(np.int8) for of in ((rows, depth), (depth, columns)))
    x[:, 3], y[3] = -128, -128
    types = f"tensor<{rows}x{depth}xi8>, tensor<{depth}x{columns}xi8>"
    text = f"""func.func @main(%x: tensor<{rows}x{depth}xi8>, %y: tensor<{depth}x{columns}xi8>) -> tensor<{rows}x{columns}xi32> {{
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({types}) -> tensor<{rows}x{columns}xi32>
      return %r : tensor<{rows}x{columns}xi32>
    }}"""  # noqa: E501
    features = {"Features": "fp asimd asimddp"} if level == "aarch64-dotprod" else {}
    with patch.object(driver, "description", lambda: features), open_cpu() as device:
        found = vm.load(compiler.compile(text, targets=["cpu"], target_cpu=level), device=device).main(x, y)
    np.testing.assert_array_equal(found, x.astype(np.int32) @ y.astype(np.int32))


def test_the_code_is_what_runs(emulator: None) -> None:
    """A kernel whose first instruction returns writes nothing."""
    with open_cpu() as device:
        rig = Rig(device, computes=True)
        kernel = rig.kernel(16, 1)
        image, payload = native_image.decode(kernel.payload), bytearray(kernel.payload)
        start = image.code_offset + image.entries[IOTA].offset
        payload[start : start + 4] = RETURN.to_bytes(4, "little")
        for code, wanted in ((kernel.payload, np.arange(1, 17)), (payload, np.zeros(16))):
            executable = device.create_executable(kernel.format, memoryview(code), kernel.entries)
            out, commands = rig.zeros(64), rig.recording()
            commands.dispatch(executable, IOTA, (16, 1, 1), [whole(out)], kernel.parameters)
            commands.finish()
            rig.run(commands)
            rig.computed(out, wanted.astype(np.uint32))
            executable.release()
