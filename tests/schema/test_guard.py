"""Segments are verified before use: in threads, by pieces or as a whole; before signing in both ways."""

import threading
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import reseal
from orchestrion.schema.decoder import read_module
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.rows import SegmentKind
from orchestrion.schema.trust.guard import Guard, in_threads, verify_all, verify_both
from orchestrion.schema.writer import write

MIB = 1 << 20
TEXT = """custom "card" = hex "0102030405"
program @p profile "reference" {
  constant @w : tensor<1xi8> = hex "00"
  func @f () -> () { return () }
}"""


def module_of(size: int) -> bytes:
    """A module with a constant of that many bytes and a custom segment."""
    rows = assemble(TEXT)
    data = np.arange(size, dtype=np.uint8)
    constant = replace(rows.programs[0].constants[0], data=data, dims=(size,))
    return write(replace(rows, programs=[replace(rows.programs[0], constants=[constant])]))


def segment_of(data: bytes, kind: SegmentKind) -> int:
    return next(ordinal for ordinal, row in enumerate(read_module(data).segments) if row.kind == kind)


def changed(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_work_is_done_once_each(count: int) -> None:
    done: list[int] = []
    in_threads(done.append, range(count))
    assert sorted(done) == list(range(count))


@pytest.mark.parametrize("count", [1, 2, 100])
def test_no_failure_of_the_work_passes_for_its_end(count: int) -> None:
    """An `IndexError` of the work is not mistaken for the empty list that ends it."""
    with pytest.raises(IndexError, match="of the work"):
        in_threads(_fail, range(count))


def _fail(number: int) -> None:
    raise IndexError(f"of the work on {number}")


def test_the_first_failure_is_raised_and_ends_the_work() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 3:
            raise ModuleError("the third")
        done.append(number)

    before = threading.active_count()
    with pytest.raises(ModuleError, match="the third"):
        in_threads(work, range(100_000))
    assert len(done) < 100_000 and threading.active_count() == before


@pytest.mark.parametrize("size", [0, 1, 1000, 4 * MIB, 4 * MIB + 1])
def test_sound_modules_pass(size: int) -> None:
    module = read_module(module_of(size))
    assert bool(len(module.chunks)) == (size >= 4 * MIB)
    verify_all(module)
    verify_both(module)
    guard = Guard(module)
    for ordinal in range(len(module.segments)):
        assert bytes(guard.segment(ordinal)) == bytes(module.container.segment(ordinal))


@pytest.mark.parametrize("size", [1000, 4 * MIB + 1])
@pytest.mark.parametrize("kind", [SegmentKind.Constant, SegmentKind.Custom])
def test_damage_is_found(size: int, kind: SegmentKind) -> None:
    data = module_of(size)
    ordinal = segment_of(data, kind)
    start, length = read_module(data).container.spans[ordinal]
    for at in (start, start + length // 2, start + length - 1):
        module = read_module(changed(data, at))
        for verify in (verify_all, verify_both, lambda module: Guard(module).segment(ordinal)):
            with pytest.raises(ModuleError, match=f"segment {ordinal} is damaged"):
                verify(module)


def test_digests_that_do_not_agree_are_not_signed() -> None:
    """The digests of the pieces are right and that of the whole segment is wrong: both ways to verify must agree."""
    data = module_of(4 * MIB)
    row = read_module(data).segments[segment_of(data, SegmentKind.Constant)]
    module = read_module(reseal(changed(data, data.index(row.digest))))
    assert row.digest == sha256(np.arange(4 * MIB, dtype=np.uint8)).digest()
    verify_all(module)
    with pytest.raises(ModuleError, match="is damaged: its digest differs"):
        verify_both(module)


def test_what_was_taken_out() -> None:
    from signed_modules import rebuilt

    data = module_of(1000)
    ordinal = segment_of(data, SegmentKind.Constant)
    module = read_module(rebuilt(data, without=[ordinal]))
    verify_all(module)
    for use in (Guard(module).segment, lambda at: Guard(module).verify(at, 0, 1)):
        with pytest.raises(ModuleError, match=f"segment {ordinal} was taken out of this file"):
            use(ordinal)


def test_whatever_fails_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an earlier version an `IndexError` of the work ended it silently."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)

    def work(item: int) -> None:
        if item == 5:
            raise IndexError(item)

    with pytest.raises(IndexError, match="5"):
        in_threads(work, range(8))
