"""Exports whose sizes come with each call: slots and recordings per shape, refusals, memory that stays bounded."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal.device import Device
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.writer import write
from orchestrion.vm.errors import CallerError, MemoryExceeded
from orchestrion.vm.program import Program

SOURCE = (Path(__file__).parents[1] / "fuzz" / "programs" / "sized.asm").read_text()
C = np.zeros(2, np.float32)


@pytest.fixture(scope="module")
def module() -> bytes:
    return write(assemble(SOURCE))


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with open_device("reference") as opened:
        yield opened


@pytest.fixture
def program(module: bytes, device: Device) -> Iterator[Program]:
    loaded = vm.load(module, device)
    yield loaded
    loaded.close()


def rows(count: int) -> Any:
    return np.arange(2 * count, dtype=np.float32).reshape(count, 2)


def check(program: Any, count: int) -> None:
    x = rows(count)
    above, same = program.twice(x, C)
    assert np.array_equal(above, np.concatenate([x, x])) and np.array_equal(same, x)
    assert np.array_equal(program.one(x[:, 1].copy()), x[:, 1])


def test_signature(module: bytes, program: Program) -> None:
    assert str(program.exports[0]) == ("twice(x: f32[n,2], c: f32[2]) -> (f32[2 * n,2], f32[n,2])")
    assert [value.shape for value in program.exports[0].results] == [(-1, 2), (-1, 2)]
    assert [module.strings[text] for module in [read_module(module)] for text in module.expressions] == ["n", "2 * n"]


def test_sizes_in_any_order(program: Program) -> None:
    """More sizes than are kept, again and again, interpreted and translated."""
    random = np.random.default_rng(7)
    for count in [3, 3, 5, *random.integers(1, 14, 60).tolist()]:
        check(program, count)
    twice = program.functions["twice"]
    assert isinstance(twice, vm.dynamic_function.DynamicFunction) and twice.code.translation is not None
    assert len(twice._slot_cache) == 8


def test_a_known_size_costs_what_a_static_one_does(program: Program) -> None:
    check(program, 4)
    for _ in range(30):
        check(program, 4)
        last = program.statistics()["calls"][-2:]
        assert [(row["submissions"], row["waits"], row["allocations"]) for row in last] == [(1, 1, 0)] * 2
    recorded = program.context.device.statistics.command_buffers_recorded  # type: ignore[union-attr]
    check(program, 6)
    assert program.context.device.statistics.command_buffers_recorded == recorded + 2  # type: ignore[union-attr]
    assert program.statistics()["calls"][-2]["allocations"] == 5  # an arena, two arguments, two results


def test_destinations(program: Program) -> None:
    x = rows(3)
    above, same = np.empty((6, 2), np.float32), program.empty((3, 2), np.float32)
    program.twice(program.put(x), C, out=(above, same))
    assert np.array_equal(above, np.concatenate([x, x])) and np.array_equal(same.to_numpy(), x)
    before = program.statistics()["memory"]["peak_device_bytes"]
    for _ in range(3):
        program.twice(program.put(x), C, out=(above, same))
    assert program.statistics()["memory"]["peak_device_bytes"] <= before + 64
    donated = program.put(x[:, 0].copy())
    program.one(donated, out=donated)
    assert np.array_equal(donated.to_numpy(), x[:, 0])


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "rank": (
        np.zeros(4, np.float32), None,
        r"argument 0 of 'twice': expected f32\[n,2\], got f32\[4\]",
    ),
    "static size": (
        np.zeros((4, 3), np.float32), None,
        r"argument 0 of 'twice': expected f32\[n,2\], got f32\[4,3\]",
    ),
    "type": (np.zeros((4, 2)), None, r"argument 0 of 'twice': expected f32\[4,2\], got f64\[4,2\]"),
    "list": ([[1.0], [2.0]], None, r"argument 0 of 'twice': expected f32\[\?,2\], got nested lists"),
    "asserted": (np.zeros((1000, 2), np.float32), None, "1000 rows are too many\n  at twice_setup pc"),
    "destination": (
        rows(2), (np.empty((3, 2), np.float32), None),
        r"out 0 of 'twice': expected f32\[4,2\], got f32\[3,2\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused(program: Program, what: str) -> None:
    x, out, message = REFUSED[what]
    for _ in range(2):
        with pytest.raises(CallerError, match=message):
            program.twice(x, C, out=out)
    with pytest.raises(CallerError, match="takes 2 arguments, got 1"):
        program.twice(x)
    check(program, 2)


def test_refused_on_the_device(program: Program) -> None:
    with pytest.raises(CallerError, match=r"argument 0 of 'twice': expected f32\[n,2\], got f32\[2,3\]"):
        program.twice(program.put(np.zeros((2, 3), np.float32)), C)
    small = program.empty((3, 2), np.float32)
    with pytest.raises(CallerError, match=r"expected f32\[4,2\], got f32\[3,2\]\n  at twice pc"):
        program.twice(rows(2), C, out=(small, None))


def test_numbers_in_lists(program: Program) -> None:
    above, same = program.twice([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0.0, 0.0])
    assert above.shape == (6, 2) and np.array_equal(same, [[1, 2], [3, 4], [5, 6]])


def test_submitted_calls(program: Program) -> None:
    futures = [program.one.submit(np.full(size, size, np.float32)) for size in (3, 1, 3, 9, 2)]
    for size, future in zip((3, 1, 3, 9, 2), futures, strict=True):
        assert np.array_equal(future.result(10), np.full(size, size, np.float32))
    target = np.empty(4, np.float32)
    program.one.submit(np.ones(4, np.float32), out=target).result(10)
    assert target.tolist() == [1, 1, 1, 1]
    with pytest.raises(CallerError, match=r"expected f32\[\?\], got f32\[2,2\]"):
        program.one.submit(np.ones((2, 2), np.float32))


def test_memory_stays_within_a_limit(program: Program) -> None:
    """What is only kept for later calls goes before a call fails."""
    context = program.create_context(memory=600_000)
    for count in (*range(2000, 9000, 1000), 3000, 8000):  # 8000 rows take 448,000 bytes
        above, _ = context.functions["twice"](rows(count), C)
        assert above.shape == (2 * count, 2)
    with pytest.raises(MemoryExceeded, match="exceeds the limit of 600000 bytes"):
        context.functions["twice"](rows(20_000), C)
    context.functions["one"](np.ones(7, np.float32))
    context.close()


def test_released_with_the_context(module: bytes) -> None:
    with open_device("reference") as device:
        program = vm.load(module, device)
        for count in range(1, 12):
            check(program, count)
        program.close()
        assert device.allocator.live_bytes == 0 and not any(device.live.values())


def test_contexts_in_threads(program: Program) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        context = program.create_context()
        random = np.random.default_rng(seed)
        for count in random.integers(1, 20, 40).tolist():
            x = rows(count) + seed
            above, same = context.functions["twice"](x, C)
            if not (np.array_equal(above, np.concatenate([x, x])) and np.array_equal(same, x)):
                wrong.append((seed, count))
        context.close()

    threads = [Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_that_lies_about_its_results(device: Device) -> None:
    """It gives the view of its argument: that is not taken for memory of its own."""
    text = SOURCE.replace("call_import @hal.execute(%r3, %r2, %r4)\n    return (%r1)", "return (%r0)")
    program = vm.load(write(assemble(text)), device)
    mine = program.put(np.ones(3, np.float32))
    for _ in range(3):
        assert program.one(mine).tolist() == [1, 1, 1]
    assert program.one(np.full(3, 5, np.float32)).tolist() == [5, 5, 5]
    assert mine.to_numpy().tolist() == [1, 1, 1]
    program.close()
