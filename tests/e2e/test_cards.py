"""Programs on a card: a device whose memory the host cannot see, without and with resizable BAR.

No card is here, so the device that is here shows itself with the heaps of one (`heap_tables.with_heaps`): constants and
arenas are not mapped, inputs and results are copied by the device, and the validation layer watches.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from heap_tables import with_heaps

from orchestrion.compiler.driver import compile
from orchestrion.hal.vulkan import driver, physical
from orchestrion.hal.vulkan.heaps import Machine

ModuleOf = Callable[[Any], bytes]
Check = Callable[[Any, list[Any]], None]
LoadOn = Callable[[bytes, str], Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(params=[Machine.SMALL_BAR, Machine.LARGE_BAR], ids=lambda machine: machine.name.lower())
def machine(request: pytest.FixtureRequest, needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Every Vulkan device that is opened has the heaps of a card."""

    def scan(found: Any) -> Any:
        rows, reasons = physical.scan(found)
        return [with_heaps(row, request.param) for row in rows], reasons

    monkeypatch.setattr(driver, "scan", scan)
    yield request.param


def submissions(program: Any) -> list[int]:
    """Appended to at each vkQueueSubmit of the program's device."""
    queue = program.device.device_state.backend.queue
    real, seen = queue._submit, list[int]()

    def submit(*arguments: Any) -> int:
        seen.append(1)
        return int(real(*arguments))

    queue._submit = submit
    return seen


@pytest.mark.sampled(every=32)
@pytest.mark.parametrize("machine", [Machine.SMALL_BAR], indirect=True, ids=["small_bar"])
def test_program(graph_case: Any, machine: Machine, module_of: ModuleOf, load_on: LoadOn, check: Check) -> None:
    program = load_on(module_of(graph_case), "vulkan")
    assert program.device.device_state.backend.physical.machine is machine
    for _ in range(2):
        results = program.main(*graph_case.arguments())
        check(graph_case, list(results) if isinstance(results, tuple | list) else [results])


def test_a_warm_call_of_simple_mul_is_one_submission(machine: Machine, load_on: LoadOn) -> None:
    program = load_on(module("simple_mul.mlir"), "vulkan")
    x, y = (np.arange(4, dtype=np.float32) + 1, np.full(4, 3, np.float32))
    for _ in range(3):
        program.simple_mul(x, y)
    seen = submissions(program)
    for number in range(5):
        np.testing.assert_array_equal(program.simple_mul(x + number, y), (x + number) * y)
    assert len(seen) == 5


def test_device_arrays_are_not_read_ahead(machine: Machine, load_on: LoadOn) -> None:
    program = load_on(module("simple_mul.mlir"), "vulkan")
    x, y, out = program.put(np.arange(4, dtype=np.float32)), program.put(np.full(4, 3, np.float32)), None
    out = program.empty((4,), np.float32)
    for _ in range(2):
        program.simple_mul(x, y, out=out)
    seen = submissions(program)
    for _ in range(3):
        program.simple_mul(x, y, out=out)
    assert len(seen) == 3
    np.testing.assert_array_equal(np.asarray(out), np.arange(4) * 3)


def test_constants_lie_in_the_cards_memory(machine: Machine, load_on: LoadOn) -> None:
    """They are copied once, at load, and no host memory is imported."""
    program = load_on(module("mlp.mlir"), "vulkan")
    allocator = program.device.device_state.backend.allocator
    x, want = np.load(EXAMPLES / "mlp_input.npy"), np.load(EXAMPLES / "mlp_output.npy")
    np.testing.assert_allclose(program.main(x), want, rtol=1e-5, atol=1e-6)
    assert program.device.statistics.imports == 0
    used = {place for place, blocks in allocator._blocks.items() if any(not block.empty for block in blocks)}
    assert all(place.type.heap.local for place in used if not place.mapped)
    assert {place.mapped for place in used} == {
        False,
        True,
    }  # the mapped ones are staging, and inputs if the BAR is large


def module(name: str) -> bytes:
    return bytes(compile(EXAMPLES / name, targets=["spirv"]))
