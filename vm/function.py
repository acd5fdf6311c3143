"""An export as Python callers see it: arrays in, arrays out, over fixed slots in device memory.

- Host arguments are copied into input slots and results come back from output slots. Slots are made at the first call
  of a context and stay, so a driver meets the same buffers in every call. Device arrays are used where they are.
- Everything about the arguments is checked before anything runs; nothing is cast.
- Calls of one context take turns, submitted ones (`submit.py`) too, which use the same slots. The common case (arrays
  of the right type, results as new arrays) goes through `__call__` without a detour; whatever is different is looked
  at in `_argument` and `_destinations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from orchestrion.hal.allocator import padded_size
from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.schema.dtypes import DType

from .array import Array, DeviceArray
from .call import Call
from .code import Code
from .context import Context
from .errors import PUBLIC, CallerError, DeviceLost, DeviceOutOfMemory, MemoryExceeded, Trap, public
from .fence import Future
from .interop import IMPORT_BYTES, import_array, is_foreign
from .statistics import Log, totals
from .submit import submit
from .tensors import as_array, describe, describe_array, fits

_Target = TypeVar("_Target")


class Value(NamedTuple):
    """An argument or result: what the module says of it. `expressions` say what its dynamic dimensions, of -1, are."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    expressions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return describe(self.dtype, self.shape, self.expressions)


class Slot(NamedTuple):
    """Device memory for one argument or result, and its elements where the driver maps them."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    elements: Array | None
    buffer: Buffer
    view: BufferView
    nbytes: int


def slot_over(view: BufferView) -> Slot:
    """The slot that a view is."""
    return Slot(view.dtype.numpy, view.shape, view.map(), view.buffer, view, view.nbytes)


def is_readable(slot: Slot) -> bool:
    """Whether a result is read through the mapping of its slot."""
    return slot.elements is not None and slot.buffer.host_cached


class Export(NamedTuple):
    """The signature of an exported function, the same in all programs of a module.

    `aliases` has, for each result, the number of the argument whose memory it may take over, or a number that none has.
    """

    name: str
    doc: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    aliases: tuple[int, ...]

    @property
    def is_sized(self) -> bool:
        """Whether sizes come with each call."""
        return any([-1 in value.shape for value in (*self.arguments, *self.results)])

    @property
    def slot_bytes(self) -> int:
        """Device memory that the slots of a context take for it, as far as shapes are static."""
        found = 0
        for value in (*self.arguments, *self.results):
            if -1 not in value.shape:
                found += padded_size(value.dtype.itemsize * prod(value.shape))
        return found

    def __str__(self) -> str:
        arguments = ", ".join(f"{value.name}: {value}" for value in self.arguments)
        return f"{self.name}({arguments}) -> ({', '.join(map(str, self.results))})"


class Staged:
    """A submitted call's arguments, checked: arrays are copies, views on the device are the caller's.

    `outs` is what the caller gave per result, `targets` the views of those that are on the device. Once it is its turn,
    `destinations` are the views for all results, and `passed` are all views that the program was given.
    """

    __slots__ = ("before", "destinations", "operands", "outs", "passed", "started", "targets")

    def __init__(
        self,
        operands: list[Array | BufferView],
        outs: tuple[Any, ...] | None,
        targets: tuple[BufferView | None, ...],
    ) -> None:
        self.operands = operands
        self.outs = outs
        self.targets = targets
        self.destinations: tuple[BufferView | None, ...] = ()
        self.passed: list[BufferView | None] = []
        self.before: tuple[int, ...] = ()
        self.started = 0.0


class Function:
    """An export in one context: `function(x, y, out=None)`, and `function.submit(x, y)` for a future of the same."""

    __slots__ = (
        "_call",
        "_inputs",
        "_log",
        "_outputs",
        "_plain",
        "_ready",
        "_statistics",
        "_targets",
        "code",
        "context",
        "export",
        "name",
    )

    def __init__(self, export: Export, code: Code, context: Context, log: Log) -> None:
        assert context.device is not None
        self.export = export
        self.name = export.name
        self.code = code
        self.context = context
        self._log = log.add
        self._call: Any = None  #: to be used again and again, from the first call on
        self._statistics = context.device.statistics
        self._inputs: tuple[Slot, ...] = ()
        self._outputs: tuple[Slot, ...] = ()
        self._targets: tuple[BufferView | None, ...] = ()
        self._plain: Slot | None = None  #: the output, when there is one and its memory is mapped
        self._ready = False

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """Run the function. Gives a new array, a tuple of them for several results, or what `out` holds.

        `out`: an array or device array to receive the result, for several results a sequence of them; None for a new
        array. A device array may be an argument as well where the function donates that argument to the result, which
        is then computed in place. Raises `CallerError` before anything ran, `VmError` and `ModuleError` for what went
        wrong then.
        """
        context = self.context
        with context.lock:
            try:
                started = perf_counter()
                before = totals(self._statistics)
                if not self._ready:
                    self._prepare(arguments)
                inputs = self._inputs
                if len(arguments) != len(inputs):
                    raise self._wrong_count(arguments)
                operands: list[BufferView | None] = []
                copied = 0
                for x, (dtype, shape, elements, buffer, view, nbytes) in zip(arguments, inputs):  # noqa: B905
                    if type(x) is _ndarray and x.dtype is dtype and x.shape == shape and elements is not None:
                        if buffer.submitted:
                            self._write(view, x)
                        else:
                            elements[...] = x
                            copied += nbytes
                        operands.append(view)
                    else:
                        operands.append(self._argument(len(operands), x))
                if copied:
                    self._statistics.host_to_device_bytes += copied
                targets = self._targets
                outs: tuple[Any, ...] | None = None
                if out is not None:
                    outs, targets = self._destinations(out, operands, targets)
                operands += targets
                results = context.run(self._call, self.code, operands)
                if outs is not None:
                    self._await(results)
                    value = self._deliver(results, outs, targets, operands)
                elif self._plain is not None and results[0] is targets[0] and not self._plain.buffer.submitted:
                    value = self._plain.elements.copy()  # type: ignore[union-attr]
                    self._statistics.device_to_host_bytes += self._plain.nbytes
                else:
                    self._await(results)
                    value = self._collect(results, operands)
                after = totals(self._statistics)
                self._log((self.name, started, perf_counter(), before, after, context.constant_bytes))
                context.constant_bytes = 0
                return value
            except PUBLIC as error:
                raise public(error) from error

    def submit(self, *arguments: Any, out: Any = None, wait: Iterable[Any] = (), signal: Any = None) -> Future:
        """Enqueue a call and return at once. The future gives what `__call__` with the same arguments would.

        The call begins when all of `wait` (fences, futures of any program's calls, `pyopencl.Event`s) are reached and
        the calls submitted to the same context before are over; a failure among `wait` ends it with `WaitFailed`.
        `signal` (a fence or a `pyopencl.UserEvent`) is reached when it is over, with its error if it fails; a sequence
        has one, or None, for each result, as `Future.results`. Arguments are copied before this returns, device arrays
        are not; arrays in `out` belong to the call until it is over. Wrong arguments raise `CallerError` at once.
        """
        return submit(self, arguments, out, wait, signal)

    def stage(self, arguments: Sequence[Any], out: Any) -> Staged:
        """Check a submitted call's arguments, in its caller's thread."""
        values = self.export.arguments
        if len(arguments) != len(values):
            raise self._wrong_count(arguments)
        operands: list[Array | BufferView] = []
        for place, (x, value) in enumerate(zip(arguments, values, strict=True)):
            what = f"argument {place} of {self.name!r}"
            if isinstance(x, DeviceArray | BufferView):
                operands.append(self._resident(x, value, what))
            else:
                operands.append(self._copied(as_array(x, value.dtype, value.shape, what), what))
        none = (None,) * len(self.export.results)
        if out is None:
            return Staged(operands, None, none)
        return Staged(operands, *self._destinations(out, operands, none))

    def _copied(self, array: Array, what: str) -> Array:
        """A copy, unless the context's memory has no room for one; an array may be larger than what it is a view of."""
        budget = self.context.memory.budget
        if budget.limit is not None and array.nbytes > budget.limit:
            limit = f"{budget.limit} bytes{budget.origin}"
            raise MemoryExceeded(f"{what}: {array.nbytes} bytes exceed the limit of {limit}")
        try:
            return array.copy()
        except MemoryError:
            raise DeviceOutOfMemory(f"{what}: the machine has no room for a copy of {array.nbytes} bytes") from None

    def enter(self, staged: Staged) -> list[BufferView | None]:
        """The operands of a submitted call whose turn it is."""
        staged.started = perf_counter()
        if not self._ready:
            self._prepare(staged.operands)
        staged.before = totals(self._statistics)
        operands: list[BufferView | None] = []
        for x, slot in zip(staged.operands, self._inputs, strict=True):
            if not isinstance(x, BufferView):
                slot.view.write(x)
            operands.append(x if isinstance(x, BufferView) else slot.view)
        staged.operands.clear()
        staged.destinations = tuple(
            [own if view is None else view for view, own in zip(staged.targets, self._targets, strict=True)]
        )
        staged.passed = [*operands, *staged.destinations]
        return staged.passed

    def leave(self, staged: Staged, results: tuple[Any, ...], ready: Callable[[int, Any], None]) -> Any:
        """What a submitted call that is over gives its caller; `ready` hears of each result."""
        outs = (None,) * len(results) if staged.outs is None else staged.outs
        value = self._deliver(results, outs, staged.destinations, staged.passed, ready)
        after = totals(self._statistics)
        context = self.context
        self._log((self.name, staged.started, perf_counter(), staged.before, after, context.constant_bytes))
        context.constant_bytes = 0
        return value

    def _prepare(self, arguments: Sequence[Any]) -> None:
        """Make the slots: at the first call, since a program may have exports that nobody calls."""
        if self.context.device is None or self.context.closed:
            raise self.context.refusal(f"the program of {self.name!r}")
        self._call = Call(self.context)
        self._inputs = tuple([self._slot(value, MemoryUse.INPUT) for value in self.export.arguments])
        self._outputs = tuple([self._slot(value, MemoryUse.OUTPUT) for value in self.export.results])
        self._targets = tuple([slot.view for slot in self._outputs])
        plain = len(self._outputs) == 1 and is_readable(self._outputs[0])
        self._plain = self._outputs[0] if plain else None
        self._ready = True

    def release(self) -> None:
        """Let go of the slots: the context is being closed."""
        self._inputs = self._outputs = ()
        self._targets, self._plain = (), None
        self._ready = False

    def __del__(self) -> None:
        if hasattr(self, "_ready"):
            self.release()  # before the context goes, which counts what is left

    def _slot(self, value: Value, use: MemoryUse) -> Slot:
        device = self.context.device
        assert device is not None
        nbytes = value.dtype.itemsize
        for dim in value.shape:
            nbytes *= dim
        return slot_over(BufferView(device.allocator.allocate(nbytes, use), value.dtype, value.shape))

    def _wrong_count(self, arguments: Sequence[object]) -> CallerError:
        count = len(self.export.arguments)
        return CallerError(f"{self.name!r} takes {count} argument{'s' * (count != 1)}, got {len(arguments)}")

    def _argument(self, place: int, x: object) -> BufferView:
        """The view to pass for an argument that is no plain array of the right type."""
        value = self.export.arguments[place]
        what = f"argument {place} of {self.name!r}"
        if isinstance(x, DeviceArray | BufferView):
            return self._resident(x, value, what)
        slot = self._inputs[place]
        array = as_array(x, value.dtype, slot.shape, what)
        if array.nbytes >= IMPORT_BYTES and is_foreign(x) and place not in self.export.aliases:
            assert self.context.device is not None
            view = import_array(self.context.device, array, value.dtype)
            if isinstance(view, BufferView):
                return view
        self._write(slot.view, array)
        return slot.view

    def _write(self, view: BufferView, array: Array) -> None:
        """Copy an argument. Work that an earlier call left under way is waited for within the limits of this one."""
        if view.buffer.submitted:
            self.context.cancelled = False
            self._call.begin()
            view.buffer.wait(self._call)
        view.write(array)

    def _await(self, results: Sequence[Any]) -> None:
        """A program may return before its work is over: wait for that as part of the call."""
        for result in results:
            if type(result) is BufferView:
                result.buffer.wait(self._call)

    def _resident(self, x: DeviceArray | BufferView, value: Value, what: str) -> BufferView:
        view = x.view if isinstance(x, DeviceArray) else x
        if view.dtype is not value.dtype or view.shape != value.shape and not fits(view.shape, value.shape):
            raise CallerError(f"{what}: expected {value}, got {describe(view.dtype, view.shape)} on a device")
        device = self.context.device
        assert device is not None
        if view.buffer.device_state is not device.device_state:
            there = view.buffer.device.info.id
            if view.buffer.device_state is not None and view.buffer.device_state.lost is not None:
                raise DeviceLost(f"{what}: the array was on {there} when that was lost; put it again")
            raise CallerError(f"{what}: the array is on {there}, the program on {device.info.id}")
        return view

    def _destinations(
        self, out: Any, operands: Sequence[Array | BufferView | None], targets: tuple[_Target, ...]
    ) -> tuple[tuple[Any, ...], tuple[BufferView | _Target, ...]]:
        """What the caller gave per result, and the view to pass for each: `targets` where it is not on the device."""
        results = self.export.results
        outs: tuple[Any, ...] = tuple(out) if isinstance(out, list | tuple) else (out,)
        if len(outs) != len(results):
            raise CallerError(f"{self.name!r} gives {len(results)} results, out has {len(outs)}")
        taken = [view.buffer if isinstance(view, BufferView) else None for view in operands]
        found: list[BufferView | _Target] = []
        for place, (one, value) in enumerate(zip(outs, results, strict=True)):
            what = f"out {place} of {self.name!r}"
            view: BufferView | _Target
            if isinstance(one, DeviceArray | BufferView):
                view = self._resident(one, value, what)
                self._refuse_shared(place, view.buffer, taken)
                taken.append(view.buffer)
            else:
                view = targets[place]
                _check_out(one, value, what)
            found.append(view)
        return outs, tuple(found)

    def _refuse_shared(self, place: int, buffer: Buffer, taken: Sequence[Buffer | None]) -> None:
        """`taken`: the memory of the arguments, then of the results before this one. One argument may be the same."""
        arguments = self.export.arguments
        for number, other in enumerate(taken):
            if other is buffer and number != self.export.aliases[place]:
                count = len(arguments)
                shared = f"argument {number}, which is not donated to it" if number < count else f"out {number - count}"
                raise CallerError(f"out {place} of {self.name!r} shares its memory with {shared}")

    def _deliver(
        self,
        results: tuple[Any, ...],
        outs: tuple[Any, ...],
        destinations: tuple[BufferView | None, ...],
        passed: Sequence[BufferView | None],
        ready: Callable[[int, Any], None] | None = None,
    ) -> Any:
        """Copy results to where the caller wants them: new arrays for None. `passed`: what the program was given."""
        given = []
        for place, (result, one, destination) in enumerate(zip(results, outs, destinations, strict=True)):
            view = self._checked(place, result)
            if one is None:
                given.append(view.read())
            else:
                given.append(one)
                if isinstance(one, np.ndarray):
                    one[...] = view.read()
                elif view is not destination and destination is not None:
                    destination.write(view.read())
            if ready is not None:
                ready(place, given[-1])
        return given[0] if len(given) == 1 else tuple(given)

    def _collect(self, results: tuple[Any, ...], passed: Sequence[BufferView | None]) -> Any:
        """The results as new arrays."""
        arrays = [self._checked(place, result).read() for place, result in enumerate(results)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _checked(self, place: int, result: Any) -> BufferView:
        """A program may return another view than it was given, but of the right type."""
        value = self.export.results[place]
        if type(result) is not BufferView:
            raise Trap(f"result {place} of {self.name!r}: expected {value}, got null or another reference")
        if result.dtype is not value.dtype or result.shape != value.shape and not fits(result.shape, value.shape):
            got = describe(result.dtype, result.shape)
            raise Trap(f"result {place} of {self.name!r}: expected {value}, got {got}")
        return result

    def __repr__(self) -> str:
        return f"<function {self.export}>"


_ndarray = np.ndarray


def _check_out(out: Any, value: Value, what: str) -> None:
    if out is None:
        return
    if not isinstance(out, np.ndarray):
        raise CallerError(f"{what}: expected an array of {value}, got {type(out).__name__}")
    if out.dtype != value.dtype.numpy or out.shape != value.shape and not fits(out.shape, value.shape):
        raise CallerError(f"{what}: expected {value}, got {describe_array(out)}")
    if not out.flags.writeable:
        raise CallerError(f"{what}: the array is read-only")
