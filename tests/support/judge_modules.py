"""Runs a module: raises `Broken` if a promise is broken, or says how its exports ended.

A module runs three times: in the interpreter with checked registers, translated as soon as it can be, and, one module
of four, on the null device. The first two must end alike. Checked registers hold what their bank holds after each
instruction; a place that is no register of the function raises. Guards lie around all buffers (`guards.py`), with other
patterns in each run. After each export, `probe` must give 42; at the end nothing may be left on the device.
"""

import gc
import math
import re
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from guards import PATTERNS, Broken, Guards, guarded

from orchestrion.hal.device import Device
from orchestrion.hal.errors import HalError
from orchestrion.hal.null.driver import NullDriver
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import BANKS
from orchestrion.schema.signature import bank_of
from orchestrion.vm import code as code_module
from orchestrion.vm import context as context_module
from orchestrion.vm import program as program_module
from orchestrion.vm import verifier
from orchestrion.vm.code import Code
from orchestrion.vm.errors import CallerError, LoadError, VmError
from orchestrion.vm.function import Function
from orchestrion.vm.loader import Loader
from orchestrion.vm.ops.table import HIDDEN
from orchestrion.vm.program import Program, load
from orchestrion.vm.refs import TYPES

FUEL, DEADLINE, MEMORY, DEPTH = 4000, 0.3, 4 << 20, 20
SLACK = 10.0
#: calls of each export
ROUNDS = 3
_CLASSES = tuple(TYPES.values())
_LIMITS: dict[str, Any] = {"fuel": FUEL, "deadline": DEADLINE, "memory": MEMORY, "depth": DEPTH}
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "i32": (5, -1, -(2**31)),
    "i64": (2**63 - 1, 9, -(2**63)),
    "f32": (1.5, math.nan, -math.inf),
    "f64": (1e300, -0.0, math.nan),
}
_PACK_F32 = struct.Struct("<f").pack

#: Bytes in use, in an error. Their number depends on time: threads let go of submitted work a moment later.
_IN_USE = re.compile(r"\(\d+ in use\)")

#: how an export ended, call by call
Ends = list[tuple[str, str]]


class _Edge:
    """Stands behind the last register of a frame."""

    def __repr__(self) -> str:
        return "the edge of the frame"


EDGE = _Edge()


def _holds(bank: int, value: Any) -> bool:
    """Whether a register of a bank may hold a value."""
    if bank < 2:
        half = 1 << (31 if bank == 0 else 63)
        return type(value) is int and -half <= value < half
    if bank == 2:
        return type(value) is float and (not math.isfinite(value) or _fits_f32(value))
    if bank == 3:
        return type(value) is float
    return value is None or type(value) in _CLASSES


def _fits_f32(value: float) -> bool:
    try:
        return bool(struct.unpack("<f", _PACK_F32(value))[0] == value)
    except OverflowError:
        return False


class CheckedRegisters(list[Any]):
    """A frame whose registers are looked at whenever one is read or written."""

    __slots__ = ("banks",)
    banks: list[int]

    def copy(self) -> "CheckedRegisters":
        return checked(self, self.banks)

    def __getitem__(self, at: Any) -> Any:
        value = list.__getitem__(self, at)
        if value is EDGE:
            raise Broken(f"register {at} of {len(self.banks)} is read")
        return value

    def __setitem__(self, at: Any, value: Any) -> None:
        if not -HIDDEN <= at < len(self.banks):
            raise Broken(f"register {at} of {len(self.banks)} is written")
        if at >= 0 and not _holds(self.banks[at], value):
            raise Broken(f"register {at} of bank {BANKS[self.banks[at]]} gets {value!r:.60}")
        list.__setitem__(self, at, value)


def checked(values: Any, banks: list[int]) -> CheckedRegisters:
    made = CheckedRegisters(values)
    made.banks = banks
    return made


@contextmanager
def interpreted() -> Iterator[None]:
    """Functions are interpreted only, with checked registers, and verified without the short proof."""
    real_init, real_extend = Code.__init__, Code.extend_template

    def init(self: Code, link: Any, ordinal: int, name: str, counts: Any, *rest: Any) -> None:
        real_init(self, link, ordinal, name, counts, *rest)
        banks = [bank for bank, count in enumerate(counts) for _ in range(count)]
        self.template = checked([*self.zeros, EDGE, EDGE, *[None] * HIDDEN], banks)

    def extend(self: Code, further: list[Any], own: dict[int, Any]) -> None:
        banks = self.template.banks  # type: ignore[attr-defined]
        real_extend(self, further, own)
        for register in own:
            if not _holds(banks[register], self.template[register]):
                raise Broken(f"register {register} of bank {BANKS[banks[register]]} starts as {own[register]!r}")
        self.template = checked(self.template, banks)

    with (
        patch.object(Code, "__init__", init),
        patch.object(Code, "extend_template", extend),
        patch.object(code_module, "_RUNS_TO_TRANSLATE", 1 << 60),
        patch.object(context_module, "runs_forward", lambda code: False),
        patch.object(verifier, "prove", lambda *arguments: None),
    ):
        yield


@contextmanager
def translated() -> Iterator[None]:
    """Functions are translated at their second call, initializers run from their instructions, and proofs are short."""
    with patch.object(code_module, "_RUNS_TO_TRANSLATE", 1):
        yield


def judge(data: bytes, seed: int, null: bool = True) -> Counter[str]:
    """How the exports of a module ended."""
    with interpreted(), guarded(PATTERNS[0], 4 * MEMORY) as guards:
        first = _run(data, ReferenceDriver(), guards, seed)
    with translated(), guarded(PATTERNS[1], 4 * MEMORY) as guards:
        second = _run(data, ReferenceDriver(), guards, seed)
    _compare(first, second)
    if null and seed % 4 == 0:
        with interpreted(), guarded(PATTERNS[1], 4 * MEMORY) as guards:
            _run(data, NullDriver(), guards, seed)
    found: Counter[str] = Counter()
    for what, how in first:
        found[f"{'load' if what == 'load' else 'run'}: {how.partition(':')[0]}"] += 1
    return found


def _compare(first: Ends, second: Ends) -> None:
    for one, other in zip(first, second, strict=False):
        if "DeadlineExceeded" in (one[1].partition(":")[0], other[1].partition(":")[0]):
            return  # what follows depends on the time
        if one != other:
            raise Broken(f"interpreted {one}, translated {other}")
    if len(first) != len(second):
        raise Broken(f"interpreted {len(first)} calls, translated {len(second)}")


def _run(data: bytes, driver: Any, guards: Guards, seed: int) -> Ends:
    device = Device.of(driver.open(driver.devices()[0]))
    ends: Ends = []
    started = time.monotonic()
    with patch.object(program_module, "_LOADER", Loader(0, 0)):
        try:
            program = load(data, device, **_LIMITS)
        except (ModuleError, VmError, HalError) as error:
            _check_error(error, in_call=isinstance(error, VmError) and not isinstance(error, LoadError | CallerError))
            ends.append(("load", _text(error)))
        else:
            ends.append(("load", "ran"))
            _call_all(program, device, ends, guards, seed)
            try:
                program.close()
            except HalError as error:  # of submitted work that no fence was there to tell of
                ends.append(("close", type(error).__name__))
            del program
    guards.check()
    if time.monotonic() - started > SLACK + 20 * DEADLINE:
        raise Broken(f"it took {time.monotonic() - started:.1f} s")
    _check_leaks(device)
    return ends


def _call_all(program: Program, device: Device, ends: Ends, guards: Guards, seed: int) -> None:
    for name, function in program.functions.items():
        for round_ in range(ROUNDS):
            ends.append((name, _call(function, program, round_, seed)))
            guards.check()
            _check_globals(program)
            if program["e0"]() not in (42, 0) or (device.info.driver == "reference" and program["e0"]() != 42):
                raise Broken("after a call the next one is wrong")
            if "DeadlineExceeded" in ends[-1][1]:
                return


def _call(function: Any, program: Program, round_: int, seed: int) -> str:
    started = time.monotonic()
    try:
        if isinstance(function, Function):
            arguments: list[Any] = [np.arange(4, dtype=np.float32) * (round_ + 1)] * len(function.export.arguments)
        else:
            types = function._code.arguments
            arguments = [_NUMBERS[name][(round_ + seed) % 3] if name in _NUMBERS else None for name in types]
        result = function(*arguments)
        if not isinstance(function, Function):
            _check_results(result, function._code.results)
        return f"result: {_shown(result)}"
    except (ModuleError, VmError) as error:
        _check_error(error, in_call=isinstance(error, VmError))
        return _text(error)
    finally:
        if time.monotonic() - started > DEADLINE + SLACK:
            raise Broken(f"a call took {time.monotonic() - started:.1f} s")


def _check_results(result: Any, types: tuple[str, ...]) -> None:
    values = result if isinstance(result, tuple) and len(types) > 1 else (result,) * len(types)
    for value, name in zip(values, types, strict=True):
        if not _holds(BANKS.index(bank_of(name)), value):
            raise Broken(f"a result of type {name} is {value!r:.60}")


def _check_globals(program: Program) -> None:
    row, module = program._linked.row, program.module
    rows = module.globals[row.globals_start : row.globals_end]
    for value, one in zip(program.context.globals, rows, strict=True):
        name = module.strings[module.types[one.type]]
        if not _holds(BANKS.index(bank_of(name)), value):
            raise Broken(f"a global of type {name} holds {value!r:.60}")


def _shown(result: Any) -> str:
    """Numbers bit by bit; of references that they are there."""
    if isinstance(result, tuple):
        return f"({', '.join(_shown(one) for one in result)})"
    if isinstance(result, np.ndarray):
        return f"{result.dtype}{result.shape} {result.tobytes().hex()}"
    if isinstance(result, float):
        return struct.pack("<d", result).hex()
    return repr(result) if isinstance(result, int) else type(result).__name__


def _text(error: Exception) -> str:
    return _IN_USE.sub("", f"{type(error).__name__}: {error}")


def _check_error(error: Exception, in_call: bool) -> None:
    """An error of a running program says where; none says that the machine's memory is gone."""
    text = str(error)
    if not text or "machine has no" in text or "no more memory" in text:
        raise Broken(f"{type(error).__name__}: {text or 'no message'}") from error
    anywhere = isinstance(error, CallerError) or text.startswith("result ")  # what a call gives is looked at behind it
    if in_call and not anywhere and not error.chain:  # type: ignore[attr-defined]
        raise Broken(f"{type(error).__name__} does not say where: {text}") from error


def _check_leaks(device: Device) -> None:
    """Threads let go of submitted work a moment later; cycles, which bytecode can make, are collected."""
    device.executables.clear()
    state, end = device.device_state, time.monotonic() + SLACK
    state.collect()
    if state.owned or device.leaks:
        gc.collect()
        state.collect()
    while state.owned and time.monotonic() < end:
        time.sleep(0.001)
        gc.collect()
        state.collect()
    if device.leaks or state.owned or state.open_shares != 1:
        raise Broken(f"{len(state.owned)} objects are left on the device: {device.leaks}")
    device.close()
