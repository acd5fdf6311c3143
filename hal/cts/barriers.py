"""Hazards: commands after a barrier run after the commands before it, for each pair of commands.

A hazard is two commands on one range: read after write, write after read, or write after write. Each possible pair of
kinds of commands is a case. Both commands process 256 KiB, three times in one recording, so that a device which
overlaps them is detected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from orchestrion.hal.command_buffer import CommandBuffer, Source

from .case import Group
from .kernels import ADD, INCREMENT, IOTA
from .rig import Bound, Rig, Words

case = Group("barriers", __doc__)

#: words that each command works on
N = 1 << 16
SIZE = 4 * N
ROUNDS = 3

Record = Callable[[Rig, CommandBuffer, Source, Source, int], None]


def _write_by_dispatch(rig: Rig, commands: CommandBuffer, shared: Source, other: Source, value: int) -> None:
    rig.dispatch(commands, IOTA, [(shared, 0, SIZE)], N, value)


def _write_by_copy(rig: Rig, commands: CommandBuffer, shared: Source, other: Source, value: int) -> None:
    commands.copy(other, 0, shared, 0, SIZE)


def _write_by_fill(rig: Rig, commands: CommandBuffer, shared: Source, other: Source, value: int) -> None:
    commands.fill(shared, 0, SIZE, value.to_bytes(4, "little"))


def _read_by_dispatch(rig: Rig, commands: CommandBuffer, shared: Source, other: Source, value: int) -> None:
    rig.dispatch(commands, ADD, [(shared, 0, SIZE), (shared, 0, SIZE), (other, 0, SIZE)], N, value)


def _read_by_copy(rig: Rig, commands: CommandBuffer, shared: Source, other: Source, value: int) -> None:
    commands.copy(shared, 0, other, 0, SIZE)


WRITES: dict[str, Record] = {"dispatch": _write_by_dispatch, "copy": _write_by_copy, "fill": _write_by_fill}
READS: dict[str, Record] = {"dispatch": _read_by_dispatch, "copy": _read_by_copy}


def _written(kind: str, source: Words, value: int) -> Words:
    """What a write leaves; a copy copies `source`."""
    if kind == "copy":
        return source
    start = np.arange(N, dtype=np.uint32) if kind == "dispatch" else np.zeros(N, np.uint32)
    return start + np.uint32(value)


def _read(kind: str, shared: Words, value: int) -> Words:
    """What a read writes elsewhere."""
    return shared if kind == "copy" else shared + shared + np.uint32(value)


def _read_after_write(write: str, read: str, rig: Rig, bound: type[Bound]) -> None:
    source = rig.random(N, 1)
    targets = [rig.zeros(SIZE) for _ in range(ROUNDS)]
    buffers = bound(rig, rig.zeros(SIZE), rig.buffer(source), *targets)
    shared, other, *places = buffers.sources
    commands = buffers.recording()
    for round, place in enumerate(places):
        commands.fill(shared, 0, SIZE, b"\xee\xee\xee\xee")
        commands.barrier()
        WRITES[write](rig, commands, shared, other, 10 + round)
        commands.barrier()
        READS[read](rig, commands, shared, place, 1000)
        commands.barrier()
    buffers.run(commands)
    for round, target in enumerate(targets):
        rig.holds(target, _read(read, _written(write, source, 10 + round), 1000))


def _write_after_read(read: str, write: str, rig: Rig, bound: type[Bound]) -> None:
    source, first = rig.random(N, 1), rig.random(N, 2)
    targets = [rig.zeros(SIZE) for _ in range(ROUNDS)]
    shared_buffer = rig.buffer(first)
    buffers = bound(rig, shared_buffer, rig.buffer(source), *targets)
    shared, other, *places = buffers.sources
    commands = buffers.recording()
    for round, place in enumerate(places):
        READS[read](rig, commands, shared, place, 1000)
        commands.barrier()
        WRITES[write](rig, commands, shared, other, 10 + round)
        commands.barrier()
    buffers.run(commands)
    held = first
    for round, target in enumerate(targets):
        rig.holds(target, _read(read, held, 1000))
        held = _written(write, source, 10 + round)
    rig.holds(shared_buffer, held)


def _write_after_write(first: str, second: str, rig: Rig, bound: type[Bound]) -> None:
    sources = rig.random(N, 1), rig.random(N, 2)
    shared_buffer, half = rig.zeros(SIZE), rig.zeros(SIZE)
    buffers = bound(rig, shared_buffer, half, *(rig.buffer(source) for source in sources))
    shared, kept, one, two = buffers.sources
    commands = buffers.recording()
    for round in range(ROUNDS):
        WRITES[first](rig, commands, shared, one, 10 + round)
        commands.barrier()
        WRITES[second](rig, commands, shared, two, 100 + round)
        commands.barrier()
    commands.copy(shared, 0, kept, 0, SIZE)
    buffers.run(commands)
    want = _written(second, sources[1], 100 + ROUNDS - 1)
    rig.holds(shared_buffer, want)
    rig.holds(half, want)


def _add(hazard: str, first: str, second: str, check: Callable[[str, str, Rig, type[Bound]], None], doc: str) -> None:
    needs = ("dispatch",) if "dispatch" in (first, second) else ()
    case.add_both(f"{hazard}_{first}_{second}", partial(check, first, second), doc, *needs)


for _first in WRITES:
    for _second in READS:
        _add(
            "read_after_write", _first, _second, _read_after_write,
            f"A {_second} behind a barrier reads all that a {_first} wrote before it.",
        )  # fmt: skip
for _first in READS:
    for _second in WRITES:
        _add(
            "write_after_read", _first, _second, _write_after_read,
            f"A {_second} behind a barrier overwrites a range only after a {_first} read it.",
        )  # fmt: skip
for _first in WRITES:
    for _second in WRITES:
        _add(
            "write_after_write", _first, _second, _write_after_write,
            f"Of a {_first} and a {_second} behind a barrier on one range, the second is what stays.",
        )  # fmt: skip


@case
def barriers_alone(rig: Rig) -> None:
    """Barriers may come first, last, twice, and without any command; they change nothing."""
    data = rig.random(16)
    source, target = rig.buffer(data), rig.zeros(64)
    commands = rig.recording()
    commands.barrier()
    commands.barrier()
    commands.copy(source, 0, target, 0, 64)
    commands.barrier()
    commands.barrier()
    commands.finish()
    rig.run(commands)
    rig.holds(target, data)
    alone = rig.recording()
    for _ in range(3):
        alone.barrier()
    alone.finish()
    rig.run(alone)
    rig.holds(target, data)


@case
def disjoint_ranges_need_no_barrier(rig: Rig) -> None:
    """Commands on ranges that touch but do not overlap are independent, at any byte."""
    want = np.zeros(1 << 14, np.uint8)
    target, source = rig.zeros(want.size), rig.buffer(np.arange(want.size) % 251)
    data = rig.contents(source)
    commands = rig.recording()
    edges = [0, 1, 4, 7, 64, 65, 130, 1000, 1003, 4096, 4097, 9999, want.size]
    for place, (start, end) in enumerate(zip(edges, edges[1:], strict=False)):
        if place % 2:
            commands.copy(source, start, target, start, end - start)
            want[start:end] = data[start:end]
        else:
            commands.fill(target, start, end - start, bytes([place + 1]))
            want[start:end] = place + 1
    commands.finish()
    rig.run(commands)
    rig.holds(target, want)


@case
def long_chain(rig: Rig) -> None:
    """A value goes through 60 buffers, a barrier between each two copies."""
    data = rig.random(256)
    chain = [rig.buffer(data), *(rig.zeros(1024) for _ in range(60))]
    commands = rig.recording()
    for source, target in zip(chain, chain[1:], strict=False):
        commands.copy(source, 0, target, 0, 1024)
        commands.barrier()
    commands.finish()
    rig.run(commands)
    rig.holds(chain[-1], data)


@case.needing("dispatch")
def two_independent_chains(rig: Rig) -> None:
    """One barrier orders all that was recorded before it, of several chains on different buffers."""
    a, b = rig.zeros(SIZE), rig.zeros(SIZE)
    commands = rig.recording()
    for step in range(6):
        rig.dispatch(commands, INCREMENT, [(a, 0, SIZE)], N, step)
        rig.dispatch(commands, INCREMENT, [(b, 0, SIZE)], N, 10 * step)
        commands.barrier()
        commands.fill(a, 0, 4, b"\0\0\0\0")
        commands.fill(b, SIZE - 4, 4, b"\0\0\0\0")
        commands.barrier()
    commands.finish()
    rig.run(commands)
    want = np.full(N, 15, np.uint32)
    want[0] = 0
    rig.holds(a, want)
    want = np.full(N, 150, np.uint32)
    want[-1] = 0
    rig.holds(b, want)
