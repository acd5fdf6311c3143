"""A device on which kernels run by themselves: what they compute of given inputs, and how long each launch takes.

A launch is timed by the device's own clock if it has one, else by the host's around a submission of one launch. All
kernels of one entry have the same buffers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.hal import profiling
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.device import Device
from orchestrion.hal.errors import HalError
from orchestrion.hal.executable import Executable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import find_device, open_device
from orchestrion.schema.dtypes import BOOL, FLOAT, DType

from .kernels import Code, Memory

Array = npt.NDArray[Any]
#: what outputs hold before a launch: a result that is not written differs
_POISON = 0xA5
#: rounds of launches in one submission, at most
MAX_ROUNDS = 4


class Rig:
    """An open device. Its code was compiled here, so it may run. Raises HalError if the device cannot be opened."""

    def __init__(self, device: str) -> None:
        self.timestamps = find_device(device)[1].timestamps
        self.device: Device = open_device(device, policy=Policy(allow_native_code=True), profiling=self.timestamps)

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.device.close()

    def build(self, format: str, code: Code) -> Executable:
        """Raises HalError if the device does not take the code."""
        made = self.device.create_executable(format, memoryview(code.payload.data), (code.entry,))
        return made


class Bench:
    """The buffers of one entry, filled with random numbers of a seed."""

    def __init__(self, rig: Rig, memory: Sequence[Memory], seed: int) -> None:
        self._rig, self._memory = rig, memory
        random = np.random.default_rng(seed)
        self._given = [draw(random, one) for one in memory]
        self._buffers: list[Buffer] = []
        try:
            for one in memory:
                self._buffers.append(rig.device.allocator.allocate(one.length))
        except HalError:
            self.close()
            raise

    def close(self) -> None:
        for buffer in self._buffers:
            buffer.release()

    def results(self, code: Code, executable: Executable) -> list[Array]:
        """What a launch writes, a flat array for each binding that it may write."""
        for buffer, given in zip(self._buffers, self._given, strict=True):
            buffer.write(given)
        self.times([(code, executable)], 1)
        found = []
        for buffer, one in zip(self._buffers, self._memory, strict=True):
            if one.access != "read":
                out = np.empty(one.length, np.uint8)
                buffer.read(out)
                found.append(out.view(one.dtype.numpy))
        return found

    def times(self, kernels: Sequence[tuple[Code, Executable]], rounds: int) -> list[list[float]]:
        """Seconds of each launch: for each round those of all kernels, which take turns."""
        if not self._rig.timestamps:
            return [[self._run([one])[0] for one in kernels] for _ in range(rounds)]
        found: list[list[float]] = []
        while len(found) < rounds:
            spans = self._run([one for _ in range(min(rounds - len(found), MAX_ROUNDS)) for one in kernels])
            found += [spans[start : start + len(kernels)] for start in range(0, len(spans), len(kernels))]
        return found

    def _run(self, kernels: Sequence[tuple[Code, Executable]]) -> list[float]:
        device = self._rig.device
        commands = device.create_command_buffer()
        try:
            bindings = [(buffer, 0, one.length) for buffer, one in zip(self._buffers, self._memory, strict=True)]
            for code, executable in kernels:
                commands.dispatch(executable, 0, code.workload, bindings)
                commands.barrier()
            commands.finish()
            started = perf_counter()
            device.queue.execute(commands)
            taken = perf_counter() - started
        finally:
            commands.release()
        if not self._rig.timestamps:
            return [taken]
        spans = [span for row in profiling.take(device) for span in row.spans]
        return [(end - start) / 1e9 for start, end in spans]


def draw(random: np.random.Generator, memory: Memory) -> Array:
    """Numbers for a binding: floats of about 1 in both signs, small integers, truth values; poison for outputs."""
    dtype = memory.dtype
    if memory.access == "write":
        return np.full(memory.length, _POISON, np.uint8)
    count = memory.length // dtype.itemsize
    return numbers(random, dtype, (count,))


def numbers(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Random numbers of a type."""
    if dtype.kind == FLOAT:
        return random.standard_normal(shape).astype(dtype.numpy)
    if np.dtype(dtype.numpy).kind == "c":
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype.numpy)
    return random.integers(0, 2 if dtype.kind == BOOL else 4, shape).astype(dtype.numpy)


def difference(want: Sequence[Array], got: Sequence[Array], tolerance: float) -> str:
    """How results differ from those that are right; empty if they do not.

    `tolerance`: 0 for bit by bit, though any NaN is as good as another; else floats may differ by so much of their size
    and of the largest of their array.
    """
    for number, (right, found) in enumerate(zip(want, got, strict=True)):
        bits = right.view(np.uint8) == found.view(np.uint8)
        same = bits.reshape(right.size, -1).all(axis=1) | ((right != right) & (found != found))
        if same.all():
            continue
        if not tolerance or right.dtype.kind not in "fc":
            return f"{int(np.sum(~same))} of {right.size} elements of result {number} differ"
        finite = np.abs(right[np.isfinite(right)])
        largest = float(finite.max(initial=0.0))
        if not np.allclose(found, right, rtol=tolerance, atol=tolerance * largest, equal_nan=True):
            with np.errstate(all="ignore"):
                worst = float(np.nanmax(np.abs(found.astype(np.float64) - right)))
            return f"result {number} differs by up to {worst:.3g}, and {tolerance * max(largest, 1):.3g} is allowed"
    return ""


def tolerance_of(memory: Sequence[Memory], length: int) -> float:
    """How much floats of results may differ if a reduction of so many elements adds them up in another order."""
    floats = [one.dtype.numpy for one in memory if one.dtype.kind == FLOAT]
    epsilon = max((float(np.finfo(dtype).eps) for dtype in floats), default=0.0)
    return epsilon * (64 + 2 * math.sqrt(length))
