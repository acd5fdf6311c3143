"""Runs a payload of tensor bytecode: raises `Broken` if a promise is broken, or says how the payload ended.

Every binding is a range inside a buffer of its own, with bytes of a pattern before, behind, and around the buffer. Each
entry runs twice, with other patterns, and the bindings must hold the same afterwards; then in the form for bindings
that overlap, which must give the same again; then with bindings that do overlap. Only errors of the HAL and of the
module come out, in time, and no memory beyond the device's limit is taken.
"""

import random
import time
from collections import Counter
from typing import Any

import numpy as np
from guards import PATTERNS, Broken, guarded
from passing_tensors import Made

from orchestrion.hal.backend import Entry
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeadlineExceeded, HalError
from orchestrion.hal.executable import Executable
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema.dtypes import FLOAT
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.tensor_bytecode import FORMAT, EntryCode
from orchestrion.schema.tensor_encoding import decode

#: bytes of device memory, intermediates included; what one step of NumPy takes beside is a part of it
MEMORY = 32 << 20
DEADLINE, SLACK = 1.0, 10.0
#: bytes of a binding before and behind its range
SPARE = 48
#: parameters of a template: the sizes it was made for, others, none, too much
WORDS = ((11, 13), (12, 14), (40, 50), (1, 1), (0, 0), (11, (1 << 32) - 1), ((1 << 32) - 1, 1 << 31))
NUMBERS = (0, 1, 2, 3, -1, -2, 5, 100, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1, 1 << 32)

_DRIVER = ReferenceDriver()
_INFO = _DRIVER.devices()[0]


class Watcher:
    """Ends work, as the deadline of a call does."""

    def __init__(self) -> None:
        self.end = time.monotonic() + DEADLINE

    def check(self) -> None:
        if time.monotonic() >= self.end:
            raise DeadlineExceeded("it ran longer than it may")


def judge(made: Made, seed: int) -> Counter[str]:
    """How the entries of a payload ended."""
    found: Counter[str] = Counter()
    if made.is_template:
        for words in random.Random(seed).sample(WORDS, 3):
            found += _judge_words(made, seed, words)
        return found
    _same_when_read(made)
    return _judge_words(made, seed, ())


def _same_when_read(made: Made) -> None:
    read = decode(made.payload).entries
    for entry, accesses in zip(read, made.entries, strict=True):
        if entry.accesses != accesses:
            raise Broken(f"a reader sees {entry.accesses}, who wrote it {accesses}")


def _judge_words(made: Made, seed: int, words: tuple[int, ...]) -> Counter[str]:
    first, second = (_runs(made, seed, words, pattern) for pattern in PATTERNS)
    for one, other in zip(first, second, strict=True):
        if "DeadlineExceeded" not in (one[0], other[0]) and one != other:
            raise Broken(f"another pattern in memory gives another result: {one[0]} and {other[0]}")
    return Counter(end for end, _ in first)


def _runs(made: Made, seed: int, words: tuple[int, ...], pattern: int) -> list[tuple[str, list[bytes]]]:
    """A run of each entry on a device of its own, as `_run` gives it; with the first pattern also with bindings that
    overlap, which has no result to compare.
    """
    runs = []
    with guarded(pattern, MEMORY) as guards:
        device = Device.of(_DRIVER.open(_INFO), MEMORY)
        try:
            for entry in range(len(made.entries)):
                runs.append(_run(device, made, entry, seed, words, pattern))
                guards.check()
                if pattern == PATTERNS[0]:
                    _run(device, made, entry, seed, words, pattern, overlapping=True)
                    guards.check()
        finally:
            device.executables.clear()
        _closed(device)
    return runs


def _closed(device: Device) -> None:
    device.device_state.collect()
    if device.leaks or device.device_state.owned:
        raise Broken(f"{len(device.device_state.owned)} objects are left on the device")
    device.close()


def _run(
    device: Device, made: Made, entry: int, seed: int, words: tuple[int, ...], pattern: int, overlapping: bool = False
) -> tuple[str, list[bytes]]:
    """How a run of an entry ended, and what the bindings hold then."""
    started = time.monotonic()
    try:
        executable = _executable(device, made)
        lengths = _lengths(executable, made, entry, words)
        buffers, ranges = _buffers(device, lengths, seed, pattern, overlapping)
        try:
            _dispatch(device, executable, entry, buffers, ranges, words)
        finally:
            held = _contents(buffers, ranges, pattern, overlapping)
        if not overlapping:
            _compare_careful(executable, entry, words, ranges, seed, held)
        return "result", held
    except (HalError, ModuleError) as error:
        _check_error(error)
        return type(error).__name__, []
    finally:
        if time.monotonic() - started > 4 * DEADLINE + SLACK:
            raise Broken(f"it took {time.monotonic() - started:.1f} s")


def _check_error(error: Exception) -> None:
    text = str(error)
    if not text or "no more memory" in text:
        raise Broken(f"{type(error).__name__}: {text or 'no message'}") from error


def _executable(device: Device, made: Made) -> Executable:
    entries = tuple(
        Entry(f"e{at}", tuple((access, 0 if words else length) for access, length in accesses), words, (1, 1, 1))
        for at, (accesses, words) in enumerate(zip(made.entries, made.parameters, strict=True))
    )
    return device.create_executable(FORMAT, memoryview(made.payload), entries)


def _code(executable: Executable, entry: int, words: tuple[int, ...]) -> EntryCode:
    code: Any = executable.backend.entry.__self__  # type: ignore[attr-defined]
    made: EntryCode = code._instance(entry, words)[0] if words else code.entries[entry]
    return made


def _lengths(executable: Executable, made: Made, entry: int, words: tuple[int, ...]) -> list[int]:
    """Just what the code says that it touches; of a template, now and then a byte less."""
    accesses = _code(executable, entry, words).accesses
    lengths = [length for _, length in accesses][: len(made.entries[entry])]
    lengths += [16] * (len(made.entries[entry]) - len(lengths))
    if words and words[0] % 2 and lengths and lengths[0]:
        lengths[0] -= words[0] == 11 and words[1] != 13
    return [length if length <= MEMORY else 64 for length in lengths]


def _buffers(
    device: Device, lengths: list[int], seed: int, pattern: int, overlapping: bool
) -> tuple[list[Any], list[tuple[int, int]]]:
    """A buffer per binding, or one for all, and (offset, length) of each binding in it. Contents go by the seed."""
    choose = random.Random(seed)
    if overlapping:
        whole = device.allocator.allocate(max(lengths, default=0) + 64)
        whole.write(_numbers(seed, whole.size))
        return [whole] * len(lengths), [(choose.randrange(whole.size - length + 1), length) for length in lengths]
    buffers, ranges = [], []
    for at, length in enumerate(lengths):
        offset = choose.choice((0, 16, SPARE, 7))
        buffer = device.allocator.allocate(offset + length + SPARE)
        buffer.write(np.full(buffer.size, pattern, np.uint8))
        if length:
            buffer.write(_numbers(seed + at, length), offset)
        buffers.append(buffer)
        ranges.append((offset, length))
    return buffers, ranges


def _numbers(seed: int, length: int) -> Any:
    """Bytes that are hostile numbers, whatever type they are read as."""
    choose = np.random.default_rng(seed)
    kind = seed % 5
    if kind == 0:
        return choose.integers(0, 256, length, np.uint8)
    if kind == 1:
        return np.resize(np.array(NUMBERS, np.int64).view(np.uint8), length)
    if kind == 2:
        return np.resize(np.array(NUMBERS, np.int64).astype(np.int32).view(np.uint8), length)
    if kind == 3:
        floats = np.array([np.nan, np.inf, -np.inf, 1e30, -0.0, 2.5, -3.5, 1e-40], np.float32)
        return np.resize(floats.view(np.uint8), length)
    return np.resize(choose.integers(0, 4, 64).astype(np.int32).view(np.uint8), length)


def _dispatch(
    device: Device,
    executable: Executable,
    entry: int,
    buffers: list[Any],
    ranges: list[tuple[int, int]],
    words: tuple[int, ...],
) -> None:
    """Recorded over slots, and run twice: the second run uses what the first left."""
    commands = device.create_command_buffer(len(buffers))
    parameters = b"".join(word.to_bytes(4, "little") for word in words)
    bindings = [(slot, *one) for slot, one in enumerate(ranges)]
    commands.dispatch(executable, entry, (1, 1, 1), bindings, parameters)
    commands.finish()
    for _ in range(2):
        device.queue.execute(commands, buffers, Watcher())


def _contents(buffers: list[Any], ranges: list[tuple[int, int]], pattern: int, overlapping: bool) -> list[bytes]:
    found = []
    for buffer, (offset, length) in zip(buffers, ranges, strict=True):
        data = np.zeros(buffer.size, np.uint8)
        buffer.read(data)
        if not overlapping and ((data[:offset] != pattern).any() or (data[offset + length :] != pattern).any()):
            raise Broken(f"bytes beside the range {offset} to {offset + length} of a buffer were written")
        found.append(data[offset : offset + length].tobytes())
    return found


def _compare_careful(
    executable: Executable,
    entry: int,
    words: tuple[int, ...],
    ranges: list[tuple[int, int]],
    seed: int,
    held: list[bytes],
) -> None:
    """The form that copies everything gives the same, where the order of additions is given."""
    code = _code(executable, entry, words)
    names = {one.row.name for one in code.instructions}
    readers = {one.attributes[0] for one in code.instructions if one.row.name in ("load_input", "store_slice")}
    if "dot_general" in names or readers & set(code.writes):  # BLAS goes by strides; a second run reads the first's
        return
    overlapping = executable.backend.entry(entry, True, words)  # type: ignore[attr-defined]
    if overlapping.scratch_bytes > MEMORY:
        return
    memories = [np.zeros(max(16, length), np.uint8) for _, length in ranges]
    for at, (_, length) in enumerate(ranges):
        memories[at][:length] = _numbers(seed + at, length)
    with np.errstate(all="ignore"):
        registers = overlapping.bind([(memory, 0) for memory in memories])
        for step in overlapping.steps:
            step(registers)
    for one in code.instructions:
        if one.row.name == "store_output":
            binding, of = one.attributes[0], code.values[one.operands[0]]
            same = memories[binding][: of.bytes].tobytes() == held[binding][: of.bytes]
            if not same and not _equal_numbers(memories[binding], held[binding], of):
                raise Broken(f"binding {binding} is another in the form for bindings that overlap")


def _equal_numbers(one: Any, other: bytes, of: Any) -> bool:
    if of.dtype.kind != FLOAT:
        return False
    x = one[: of.bytes].view(of.dtype.numpy)
    return np.array_equal(x, np.frombuffer(other, of.dtype.numpy, of.elements), equal_nan=True)
