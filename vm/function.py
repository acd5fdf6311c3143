"""An export as Python callers see it: a function from arrays to arrays, with fixed slots in device memory.

- Host arguments are copied into input slots, and results are copied from output slots. Slots are made at the first call
  in a context and stay, so the driver gets the same buffers in every call. Device arrays are used without a copy, and
  so are large arguments and results on a device that works on the host's memory (`interop.py`, `result_memory.py`).
- All arguments are checked before anything runs. Nothing is cast.
- Calls in one context run one after the other. Submitted calls (`submit.py`) use the same slots.
- `__call__` is fast for the common case: NumPy arrays of the right type, and results as new arrays. `_argument` and
  `call_checks.py` handle everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import BufferView

from .array import Array, DeviceArray
from .call import Call
from .call_checks import argument_label, by_place, checked_result, destinations, python_signature, resident, wrong_count
from .code import Code
from .context import Context
from .errors import (
    HAL_ERRORS,
    DeviceOutOfMemory,
    MemoryExceeded,
    from_hal_error,
    no_pickle,
)
from .exports import Export, Value
from .fence import Future
from .interop import IMPORT_BYTES, REPEATED_BYTES, import_array, is_foreign
from .on_device import Donated, OnDeviceCalls
from .result_memory import RESULT_BYTES, ResultMemory
from .slots import ImportSlot, Slot, is_readable, slot_over
from .statistics import Log, totals
from .submit import Staged, submit
from .tensors import as_array

if TYPE_CHECKING:
    import inspect

    from orchestrion.hal.device import Device
    from orchestrion.hal.queue import Work
    from orchestrion.hal.statistics import Statistics

_Target = TypeVar("_Target")


class Function:
    """An export in one context: `function(x, y, out=None)`, or `function.submit(x, y)` for a future."""

    __slots__ = (
        "_call",
        "_import_slots",
        "_inputs",
        "_log",
        "_outputs",
        "_mapped_output",
        "_ready",
        "_result_memory",
        "_on_device_calls",
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
        self._call: Any = None  #: the call object of all blocking calls, made at the first one
        self._statistics = context.device.statistics
        self._inputs: tuple[Slot, ...] = ()
        self._import_slots: dict[int, ImportSlot] = {}  #: by place, of large arguments of blocking calls
        self._outputs: tuple[Slot, ...] = ()
        self._targets: tuple[BufferView | None, ...] = ()
        self._mapped_output: Slot | None = None  #: the output slot, if it is the only one and its memory is mapped
        self._result_memory: tuple[ResultMemory | None, ...] = ()  #: per result, if one is large enough to be lent
        self._ready = False  #: whether slots are made
        self._on_device_calls: OnDeviceCalls | None = None  #: from the first call of `on_device` on

    @property
    def flat(self) -> Function:
        """This function. A `TreeFunction` has another one here."""
        return self

    @property
    def __signature__(self) -> inspect.Signature:
        return python_signature(self.export)

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Call the function, with arguments by place or by name. Returns a new array, or a tuple if it has several
        results, or the arrays of `out`.

        `out`: an array or device array for the result; for several results a sequence of them, where None stands for a
        new array. A device array may also be an argument, if the function donates that argument to the result: the
        result is then computed in place.

        Raises `CallerError` for wrong arguments, before anything runs. Raises other `VmError` and `ModuleError` if the
        call fails.
        """
        context = self.context
        if named:
            arguments = by_place(self.export, arguments, named)
        with context.lock:
            try:
                started = perf_counter()
                before = totals(self._statistics)
                if not self._ready:
                    self._prepare(arguments)
                inputs = self._inputs
                if len(arguments) != len(inputs):
                    raise wrong_count(self.export, arguments)
                operands: list[BufferView | None] = []
                copied = 0
                for x, (dtype, shape, elements, buffer, view, nbytes) in zip(arguments, inputs):  # noqa: B905
                    if elements is not None and type(x) is _ndarray and x.dtype is dtype and x.shape == shape:
                        if buffer.submitted:
                            self._write(view, x)
                        else:
                            elements[...] = x
                            copied += nbytes
                        operands.append(view)
                    else:
                        operands.append(self._argument(len(operands), x, self._import_slots))
                if copied:
                    self._statistics.host_to_device_bytes += copied
                targets = self._targets
                outs: tuple[Any, ...] | None = None
                lent: dict[BufferView, Array] = {}
                if out is not None:
                    outs, targets = destinations(self.export, self.device, out, operands, targets)
                elif self._result_memory:
                    targets, lent = self._lend_results()
                operands += targets
                results = context.run(self._call, self.code, operands)
                if outs is not None:
                    self._await(results)
                    value = self._deliver(results, outs, targets, operands)
                elif (
                    self._mapped_output is not None
                    and results[0] is targets[0]
                    and not self._mapped_output.buffer.submitted
                ):
                    value = self._mapped_output.elements.copy()  # type: ignore[union-attr]
                    self._statistics.device_to_host_bytes += self._mapped_output.nbytes
                else:
                    self._await(results)
                    value = self._collect(results, operands, lent)
                after = totals(self._statistics)
                self._log((self.name, started, perf_counter(), before, after, context.constant_bytes))
                context.constant_bytes = 0
                return value
            except HAL_ERRORS as error:
                raise from_hal_error(error) from error

    def on_device(self, *arguments: Any, donate: Donated = (), **named: Any) -> DeviceArray | tuple[DeviceArray, ...]:
        """Call the function and leave its results on the device. Returns a `DeviceArray`, or a tuple of them.

        The arrays can be arguments of any call on the same device; `np.asarray` copies one to the host. `donate`:
        numbers or names of arguments that the caller needs no more. Device arrays among them are consumed. A result
        that the export aliases with a donated argument (`donate_argnums` of `jax.jit`) is computed in its memory.

        Wrong arguments raise `CallerError` and consume nothing. A call that fails later has consumed donated arrays.
        """
        if named:
            arguments = by_place(self.export, arguments, named)
        with self.context.lock:
            if self._on_device_calls is None:
                self._on_device_calls = OnDeviceCalls(self)
            found = self._on_device_calls.call(self, arguments, donate)
        return found[0] if len(found) == 1 else found

    def submit(self, *arguments: Any, out: Any = None, wait: Iterable[Any] = (), signal: Any = None) -> Future:
        """Submit a call and return at once. The future gives what `__call__` with the same arguments returns.

        `wait`: fences, futures of any program's calls, and `pyopencl.Event`s. The call begins when all of them are
        reached and the calls that were submitted to the same context before have ended. If one fails, the call ends
        with `WaitFailed`. `signal`: a fence or a `pyopencl.UserEvent` that is reached when the call ends, with its
        error if it fails; or a sequence with one of them, or None, for each result, as in `Future.results`.

        Arrays are copied before this returns; device arrays are not. Arrays in `out` belong to the call until it ends.
        Wrong arguments raise `CallerError` at once.
        """
        return submit(self, arguments, out, wait, signal)

    def stage(self, arguments: Sequence[Any], out: Any) -> Staged:
        """Check and copy the arguments of a submitted call. In the caller's thread."""
        values = self.export.arguments
        if len(arguments) != len(values):
            raise wrong_count(self.export, arguments)
        operands: list[Array | BufferView] = []
        for place, (x, value) in enumerate(zip(arguments, values, strict=True)):
            what = argument_label(self.export, place)
            if isinstance(x, DeviceArray | BufferView):
                operands.append(resident(self.device, x, value, what))
            else:
                operands.append(self._copied(as_array(x, value.dtype, value.shape, what), what))
        none = (None,) * len(self.export.results)
        if out is None:
            return Staged(operands, None, none)
        return Staged(operands, *destinations(self.export, self.device, out, operands, none))

    def _copied(self, array: Array, what: str) -> Array:
        """A copy of an array. `MemoryExceeded` if it exceeds the memory limit: a broadcast array may be far larger than
        its memory.
        """
        budget = self.context.memory.budget
        if budget.limit is not None and array.nbytes > budget.limit:
            limit = f"{budget.limit} bytes{budget.origin}"
            raise MemoryExceeded(f"{what}: {array.nbytes} bytes exceed the limit of {limit}")
        try:
            return array.copy()
        except MemoryError:
            raise DeviceOutOfMemory(f"{what}: no host memory left for a copy of {array.nbytes} bytes") from None

    def enter(self, staged: Staged) -> list[BufferView | None]:
        """The operands of a submitted call, which begins now: host arguments are copied into slots."""
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
        """The value that the caller of a submitted call gets. Calls `ready(number, value)` for each result."""
        outs = (None,) * len(results) if staged.outs is None else staged.outs
        value = self._deliver(results, outs, staged.destinations, staged.passed, ready)
        self.log(staged.started, staged.before)
        return value

    # for `on_device.py`; the context's lock is held

    @property
    def device(self) -> Device:
        """The context's share of the device. `CallerError` or `DeviceLost` if the context is closed."""
        if self.context.device is None:
            raise self.context.refusal(f"the program of {self.name!r}")
        return self.context.device

    @property
    def statistics(self) -> Statistics:
        return self._statistics

    def operands(self, arguments: Sequence[Any]) -> list[BufferView]:
        """The views to pass for arguments. Host arguments are copied into their slots."""
        if not self._ready:
            self._prepare(arguments)
        if len(arguments) != len(self._inputs):
            raise wrong_count(self.export, arguments)
        state = self.device.device_state
        found: list[BufferView] = []
        for x, slot in zip(arguments, self._inputs):  # noqa: B905  the lengths were compared
            if type(x) is DeviceArray:
                view = x.view
                if view.shape == slot.shape and view.dtype is slot.view.dtype and view.buffer.device_state is state:
                    found.append(view)
                    continue
            elif type(x) is _ndarray and x.dtype is slot.dtype and x.shape == slot.shape:
                self._write(slot.view, x)
                found.append(slot.view)
                continue
            found.append(self._argument(len(found), x))
        return found

    def result_shapes(self) -> list[tuple[int, ...] | None]:
        """The shape of each result; None if only the program knows it. Called after `operands`."""
        return [view.shape for view in self._targets if view is not None]

    def note_results(self, views: Sequence[BufferView]) -> None:
        """Note the shapes of results, for `result_shapes` of the next call."""

    def run(self, passed: Sequence[BufferView | None]) -> tuple[Any, ...]:
        """Run the program, wait for its work, and return its results."""
        results = self.context.run(self._call, self.code, passed)
        self._await(results)
        return results

    def log(self, started: float, before: tuple[int, ...]) -> None:
        """Log a call that has ended. `started`: seconds of the clock. `before`: the counters at its start."""
        context = self.context
        self._log((self.name, started, perf_counter(), before, totals(self._statistics), context.constant_bytes))
        context.constant_bytes = 0

    def _prepare(self, arguments: Sequence[Any]) -> None:
        """Make the slots. At the first call, since a program may have exports that are never called."""
        if self.context.device is None or self.context.closed:
            raise self.context.refusal(f"the program of {self.name!r}")
        self._call = Call(self.context)
        self._inputs = tuple([self._input(place) for place in range(len(self.export.arguments))])
        self._outputs = tuple([self._slot(value, MemoryUse.OUTPUT) for value in self.export.results])
        self._targets = tuple([slot.view for slot in self._outputs])
        self._result_memory = self._lendable_results(self._outputs)
        for memory in self._result_memory:
            if memory is not None:
                self.context.on_memory_pressure(memory.release)
        is_mapped = len(self._outputs) == 1 and is_readable(self._outputs[0]) and not self._result_memory
        self._mapped_output = self._outputs[0] if is_mapped else None
        self._ready = True

    def warm_up(self) -> list[Work]:
        """Make the slots and find the recordings that calls submit, if all shapes are static. The caller holds the
        context's lock.
        """
        if self.export.is_dynamic:
            return []
        if not self._ready:
            self._prepare(())
        self.code.entry()
        if not self.device.queue.prepares:
            return []
        from .dry_run import dry_run

        return dry_run(self.context, self.code, [*[slot.view for slot in self._inputs], *self._targets])

    def release(self) -> None:
        """Release the slots: the context is closed."""
        self._inputs = self._outputs = ()
        self._import_slots.clear()
        self._targets, self._mapped_output = (), None
        for memory in self._result_memory:
            if memory is not None:
                memory.close()
        self._result_memory = ()
        self._ready = False
        if self._on_device_calls is not None:
            self._on_device_calls.close()
            self._on_device_calls = None

    def __del__(self) -> None:
        if hasattr(self, "_ready"):
            self.release()  # before the context, which counts the memory that is not released

    def _input(self, place: int) -> Slot:
        """The slot of an argument."""
        return self._importing(place, self._slot(self.export.arguments[place], MemoryUse.INPUT))

    def _importing(self, place: int, slot: Slot) -> Slot:
        """The slot of an argument; without elements if `_argument` may import its arrays."""
        return slot._replace(elements=None) if self._imports(place, slot.nbytes, REPEATED_BYTES) else slot

    def _imports(self, place: int, nbytes: int, least: int = IMPORT_BYTES) -> bool:
        """Whether an array is used where it is: a large one that the program only reads, on the host's memory."""
        large = nbytes >= least and place not in self.export.aliases
        return large and self.device.info.limits.uses_host_addresses

    def _lendable_results(self, outputs: Sequence[Slot]) -> tuple[ResultMemory | None, ...]:
        """The memory of each large result, on a device that works on the host's memory. `outputs`: the slots of the
        results. Empty if no result is large. A result that the program may compute in the memory of an argument has
        none.
        """
        if not self.device.info.limits.uses_host_addresses:
            return ()
        found: list[ResultMemory | None] = []
        for slot, alias in zip(outputs, self.export.aliases, strict=True):
            is_lent = slot.nbytes >= RESULT_BYTES and alias not in range(len(self._inputs))
            found.append(ResultMemory(slot.view.dtype, slot.shape) if is_lent else None)
        return tuple(found) if any(found) else ()

    def _lend_results(self) -> tuple[tuple[BufferView | None, ...], dict[BufferView, Array]]:
        """The view of each result for one call, and the arrays of those whose memory the caller gets."""
        targets: list[BufferView | None] = []
        lent: dict[BufferView, Array] = {}
        for memory, own in zip(self._result_memory, self._targets, strict=True):
            row = None if memory is None else memory.take(self.device)
            targets.append(own if row is None else row[0])
            if row is not None:
                lent[row[0]] = row[1]
        return tuple(targets), lent

    def _slot(self, value: Value, use: MemoryUse) -> Slot:
        device = self.context.device
        assert device is not None
        nbytes = value.dtype.itemsize
        for dim in value.shape:
            nbytes *= dim
        return slot_over(BufferView(device.allocator.allocate(nbytes, use), value.dtype, value.shape))

    def _argument(self, place: int, x: object, import_slots: dict[int, ImportSlot] | None = None) -> BufferView:
        """The view to pass for an argument. Handles arguments that are not NumPy arrays of the right type, and large
        ones. `import_slots`: those of a call that reads no argument after its end.
        """
        if import_slots and place in import_slots and (same := import_slots[place].view_again(x)) is not None:
            return same
        value = self.export.arguments[place]
        what = argument_label(self.export, place)
        if isinstance(x, DeviceArray | BufferView):
            return resident(self.device, x, value, what)
        slot = self._inputs[place]
        array = as_array(x, value.dtype, slot.shape, what)
        foreign = is_foreign(x) and array.nbytes >= IMPORT_BYTES and place not in self.export.aliases
        reused = None
        if import_slots is not None and array is x and self._imports(place, array.nbytes, REPEATED_BYTES):
            reused = import_slots.setdefault(place, ImportSlot())
        if foreign or self._imports(place, array.nbytes) or reused is not None and reused.repeats(array):
            importer = import_array if reused is None else reused.import_array
            view = importer(self.device, array, value.dtype)
            if isinstance(view, BufferView):
                return view
        self._write(slot.view, array)
        if reused is not None and reused.is_hopeless:  # from now on it has the fast way of small arguments
            copied = slot._replace(elements=slot.view.map())
            self._inputs = (*self._inputs[:place], copied, *self._inputs[place + 1 :])
        return slot.view

    def _write(self, view: BufferView, array: Array) -> None:
        """Copy an argument into its slot. Waits for earlier work that uses the slot, within the limits of this call."""
        if view.buffer.submitted:
            self.context.cancelled = False
            self._call.begin()
            view.buffer.wait(self._call)
        view.write(array)

    def _await(self, results: Sequence[Any]) -> None:
        """Wait for the work of a program, which may return before its work has ended."""
        for result in results:
            if type(result) is BufferView:
                result.buffer.wait(self._call)

    def _deliver(
        self,
        results: tuple[Any, ...],
        outs: tuple[Any, ...],
        destinations: tuple[BufferView | None, ...],
        passed: Sequence[BufferView | None],
        ready: Callable[[int, Any], None] | None = None,
    ) -> Any:
        """Copy results to the caller's destinations; None stands for a new array. `passed`: the program's operands."""
        given = []
        for place, (result, one, destination) in enumerate(zip(results, outs, destinations, strict=True)):
            view = checked_result(self.export, place, result)
            if one is None:
                given.append(view.read())
            else:
                given.append(one)
                if isinstance(one, np.ndarray):
                    view.read_into(one)
                elif view is not destination and destination is not None:
                    destination.write(view.read())
            if ready is not None:
                ready(place, given[-1])
        return given[0] if len(given) == 1 else tuple(given)

    def _collect(
        self, results: tuple[Any, ...], passed: Sequence[BufferView | None], lent: dict[BufferView, Array]
    ) -> Any:
        """The results as new arrays: those of memory that was lent, and copies of the others."""
        arrays = []
        for place, result in enumerate(results):
            view = checked_result(self.export, place, result)
            array = lent.pop(view, None)
            arrays.append(view.read() if array is None else array)
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def __repr__(self) -> str:
        export = self.export
        arguments = [f"{value.name}: {value}" for value in export.arguments]
        return f"<Function {self.name}({_some(arguments)}) -> ({_some(list(map(str, export.results)))})>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise no_pickle(self.name)


_ndarray = np.ndarray


def _some(texts: Sequence[str], most: int = 12) -> str:
    """The first `most` texts of a list, and the number of those left out."""
    rest = len(texts) - most
    return ", ".join([*texts[:most], f"and {rest} more"] if rest > 0 else texts)
