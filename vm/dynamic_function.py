"""An export with dynamic dimensions, as Python callers see it.

`DynamicFunction` is a `Function` with slots for each set of argument shapes. The slots of the shapes that were used
last are cached: a call with these shapes finds its input slots, and the views that held its results the last time.
Result shapes are not computed here: a program returns a view for each result, and the view has the shape.

On devices with indirect dispatch, recordings serve many shapes, and so does the memory of the slots
(`growable_buffers.py`). Slots of several shapes are then views of the same buffers, since only one call at a time uses
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import BufferView
from orchestrion.schema.lru_cache import LruCache

from .array import Array, DeviceArray
from .call import Call
from .call_checks import argument_label, checked_result, wrong_count
from .code import Code
from .context import Context
from .errors import CallerValueError
from .exports import Export, Value
from .function import Function
from .growable_buffers import GrowableBuffer, ResultBuffers, declared_bytes
from .memo_cache import MAX_ENTRIES
from .result_memory import ResultMemory
from .slots import Slot, is_readable, slot_over
from .statistics import Log
from .tensors import as_array, describe, describe_array, fits

#: the shape of each argument
Shapes = tuple[tuple[int, ...], ...]


class _Slots:
    """The slots of calls with the same argument shapes. An output slot is None until a call has returned its view.
    `memory`: that of large results, as in `Function`, as soon as the shapes of all results are known.
    """

    __slots__ = ("inputs", "memory", "outputs", "shapes")

    def __init__(self, inputs: tuple[Slot, ...], results: int) -> None:
        self.inputs = inputs
        self.outputs: list[Slot | None] = [None] * results
        self.shapes: list[tuple[int, ...] | None] = [None] * results  #: shapes of results that stayed on the device
        self.memory: tuple[ResultMemory | None, ...] | None = None

    def close(self) -> None:
        """Release the memory of results that no caller has."""
        for memory in self.memory or ():
            if memory is not None:
                memory.close()


class DynamicFunction(Function):
    """An export with dynamic dimensions in one context."""

    __slots__ = ("__weakref__", "_argument_buffers", "_result_buffers", "_shapes", "_slot_cache", "_slots")

    def __init__(self, export: Export, code: Code, context: Context, log: Log) -> None:
        super().__init__(export, code, context, log)
        self._slot_cache: LruCache[Shapes, _Slots] = LruCache()
        self._shapes: Shapes | None = None  #: of the arguments of the last call
        self._slots: _Slots | None = None  #: for `_shapes`
        self._argument_buffers: list[GrowableBuffer] | None = None
        self._result_buffers: ResultBuffers | None = None
        if context.device is not None and context.device.indirect_dispatch:
            self._argument_buffers = [
                GrowableBuffer(declared_bytes(value), MemoryUse.INPUT) for value in export.arguments
            ]
            self._result_buffers = ResultBuffers(export.results)
        context.on_memory_pressure(self.release_slots)

    def release(self) -> None:
        super().release()
        self._clear_slots()
        self._shapes = self._slots = None
        self._argument_buffers = self._result_buffers = self.context.result_buffers = None

    def release_slots(self, busy: bool) -> bool:
        """Release the cached slots. True if there were any. For `Context.on_memory_pressure`.

        `busy`: a call is under way, and the slots of the shapes that were used last stay.
        """
        if not busy:
            self._shapes = self._slots = self._mapped_output = None
            self._inputs, self._targets, self._result_memory = (), (), ()
        others = [shapes for shapes in self._slot_cache if shapes != self._shapes]
        for shapes in others:
            self._slot_cache.pop(shapes).close()
        for memory in self._result_memory:
            if memory is not None:
                memory.release()
        buffers: tuple[GrowableBuffer | ResultBuffers, ...] = ()
        if not busy and self._argument_buffers is not None and self._result_buffers is not None:
            buffers = (*self._argument_buffers, self._result_buffers)
        released = [one.release() for one in buffers]
        return bool(others) or any(released)

    def _prepare(self, arguments: Sequence[Any]) -> None:
        """Set the slots for the shapes of these arguments. Called before each call, since `_ready` stays False."""
        if self._shapes is not None and len(arguments) == len(self._shapes):
            for x, shape in zip(arguments, self._shapes):  # noqa: B905
                if type(x) is not np.ndarray or x.shape != shape:
                    break
            else:
                self._offer_result_buffers()
                return
        if self.context.device is None:
            raise self.context.refusal(f"the program of {self.name!r}")
        if self._call is None:
            self._call = Call(self.context)
        if len(arguments) != len(self.export.arguments):
            raise wrong_count(self.export, arguments)
        shapes = tuple([x.shape if type(x) is np.ndarray else self._shape(at, x) for at, x in enumerate(arguments)])
        if shapes == self._shapes:
            self._offer_result_buffers()
            return
        found = self._slot_cache.use(shapes)
        if found is None:
            found = self._make_slots(arguments, shapes)
            for _, evicted in self._slot_cache.put(shapes, found, MAX_ENTRIES):
                evicted.close()
        self._shapes, self._slots, self._inputs = shapes, found, found.inputs
        self._set_targets(found)
        self._offer_result_buffers()

    def _offer_result_buffers(self) -> None:
        """Let the call allocate results from `_result_buffers`, if some results have no slot yet."""
        if self._result_buffers is not None and None in self._targets:
            self.context.result_buffers = self._result_buffers.begin()

    def result_shapes(self) -> list[tuple[int, ...] | None]:
        self.context.result_buffers = None
        assert self._slots is not None
        rows = zip(self._slots.shapes, self._slots.outputs, strict=True)
        return [slot.shape if shape is None and slot is not None else shape for shape, slot in rows]

    def note_results(self, views: Sequence[BufferView]) -> None:
        if self._slots is not None:
            self._slots.shapes = [view.shape for view in views]

    def _set_targets(self, slots: _Slots) -> None:
        self._targets = tuple([None if slot is None else slot.view for slot in slots.outputs])
        known = [slot for slot in slots.outputs if slot is not None]
        if slots.memory is None and len(known) == len(slots.outputs):
            slots.memory = self._lendable_results(known)
        self._result_memory = slots.memory or ()
        only = slots.outputs[0] if len(slots.outputs) == 1 else None
        is_mapped = only is not None and is_readable(only) and not self._result_memory
        self._mapped_output = only if is_mapped else None

    def _shape(self, place: int, x: Any) -> tuple[int, ...]:
        """The shape of an argument that is not a NumPy array."""
        if isinstance(x, DeviceArray | BufferView):
            return x.shape
        value = self.export.arguments[place]
        return as_array(x, value.dtype, value.shape, argument_label(self.export, place)).shape

    def _make_slots(self, arguments: Sequence[Any], shapes: Shapes) -> _Slots:
        """Slots for new shapes. `CallerError` if the signature does not allow them."""
        values: list[Value] = []
        for place, (x, shape, value) in enumerate(zip(arguments, shapes, self.export.arguments, strict=True)):
            if not fits(shape, value.shape):
                got = describe_array(x) if isinstance(x, np.ndarray) else describe(value.dtype, shape)
                raise CallerValueError(f"{argument_label(self.export, place)}: expected {value}, got {got}")
            values.append(value._replace(shape=shape))
        inputs = self._input_slots(values)
        return _Slots(inputs, len(self.export.results))

    def _input_slots(self, values: Sequence[Value]) -> tuple[Slot, ...]:
        if self._argument_buffers is None:
            return tuple(
                [self._importing(place, self._slot(value, MemoryUse.INPUT)) for place, value in enumerate(values)]
            )
        device = self.context.device
        assert device is not None
        found = []
        for place, (growable, value) in enumerate(zip(self._argument_buffers, values, strict=True)):
            size = value.dtype.itemsize * prod(value.shape)
            buffer = growable.find(size)
            if buffer is None:
                self._clear_slots()  # cached slots refer to the buffer that is released
                self._shapes = self._slots = None
                self._inputs = ()
                buffer = growable.grow(device, size)
            found.append(self._importing(place, slot_over(BufferView(buffer, value.dtype, value.shape))))
        return tuple(found)

    def _clear_slots(self) -> None:
        for slots in self._slot_cache.values():
            slots.close()
        self._slot_cache.clear()

    def _collect(
        self, results: tuple[Any, ...], passed: Sequence[BufferView | None], lent: dict[BufferView, Array]
    ) -> Any:
        self.context.result_buffers = None
        found = super()._collect(results, passed, lent)
        self._adopt(results, passed)
        return found

    def _deliver(
        self,
        results: tuple[Any, ...],
        outs: tuple[Any, ...],
        destinations: tuple[BufferView | None, ...],
        passed: Sequence[BufferView | None],
        ready: Callable[[int, Any], None] | None = None,
    ) -> Any:
        self.context.result_buffers = None
        for place, (result, one) in enumerate(zip(results, outs, strict=True)):
            if isinstance(one, np.ndarray) and one.shape != checked_result(self.export, place, result).shape:
                wanted = describe(result.dtype, result.shape)
                raise CallerValueError(f"out {place} of {self.name!r}: expected {wanted}, got {describe_array(one)}")
        found = super()._deliver(results, outs, destinations, passed, ready)
        self._adopt(results, passed)
        return found

    def _adopt(self, results: tuple[Any, ...], passed: Sequence[BufferView | None]) -> None:
        """Use the views that the program returned as output slots of the next calls with these shapes.

        A view that shares its memory with an argument or with another result is not used.
        """
        slots = self._slots
        if slots is None or None not in slots.outputs:
            return
        taken = [view.buffer for view in passed if view is not None]
        for place, view in enumerate(results):
            if slots.outputs[place] is None and view.buffer not in taken and not view.offset:
                slots.outputs[place] = slot_over(view)
                taken.append(view.buffer)
        if self._result_buffers is not None and self._result_buffers.has_grown:
            self._result_buffers.has_grown = False
            shapes = self._shapes
            is_cached = shapes is not None and self._slot_cache.pop(shapes, None) is slots
            self._clear_slots()  # slots of other shapes refer to buffers that were released
            if shapes is not None and is_cached:
                self._slot_cache.put(shapes, slots, MAX_ENTRIES)
        self._set_targets(slots)
