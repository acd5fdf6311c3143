"""An export whose shapes come with each call, as Python callers see it.

It is `Function` with slots for each set of argument shapes, of which those used last stay: a call with known shapes
finds its slots, and the views that its results took the last time. Nothing here computes shapes: what the results of
new ones are, the program says by the views that it gives. Where recordings serve many sizes, so does the memory of the
slots (`rooms.py`): slots of several shapes are views of the same buffers, since only one call at a time uses them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import BufferView

from .array import DeviceArray
from .call import Call
from .code import Code
from .context import Context
from .errors import CallerValueError
from .exports import Export, Value
from .function import Function, Slot, is_readable, slot_over
from .kept import MOST
from .rooms import ResultRooms, Room, declared_bytes
from .statistics import Log
from .tensors import as_array, describe, describe_array, fits

#: the shape of each argument
Shapes = tuple[tuple[int, ...], ...]


class _Slots:
    """What calls with the same argument shapes share; the output slots once a call has shown what they are."""

    __slots__ = ("inputs", "outputs", "shapes")

    def __init__(self, inputs: tuple[Slot, ...], results: int) -> None:
        self.inputs = inputs
        self.outputs: list[Slot | None] = [None] * results
        self.shapes: list[tuple[int, ...] | None] = [None] * results  #: of results that stayed on the device


class SizedFunction(Function):
    """An export with dynamic dimensions in one context."""

    __slots__ = ("__weakref__", "_kept", "_result_rooms", "_rooms", "_shapes", "_slots")

    def __init__(self, export: Export, code: Code, context: Context, log: Log) -> None:
        super().__init__(export, code, context, log)
        self._kept: OrderedDict[Shapes, _Slots] = OrderedDict()
        self._shapes: Shapes | None = None
        self._slots: _Slots | None = None
        self._rooms: list[Room] | None = None  #: of the arguments
        self._result_rooms: ResultRooms | None = None
        if context.device is not None and context.device.indirect_dispatch:
            self._rooms = [Room(declared_bytes(value), MemoryUse.INPUT) for value in export.arguments]
            self._result_rooms = ResultRooms(export.results)
        context.on_memory_pressure(self.forget)

    def release(self) -> None:
        super().release()
        self._kept.clear()
        self._shapes = self._slots = None
        self._rooms = self._result_rooms = self.context.result_rooms = None

    def forget(self, busy: bool) -> bool:
        """Let go of the slots of all shapes; whether there were any. While a call is under way (`busy`), those of the
        shapes used last stay.
        """
        if not busy:
            self._shapes = self._slots = self._plain = None
            self._inputs, self._targets = (), ()
        others = [shapes for shapes in self._kept if shapes != self._shapes]
        for shapes in others:
            del self._kept[shapes]
        rooms: tuple[Room | ResultRooms, ...] = ()
        if not busy and self._rooms is not None and self._result_rooms is not None:
            rooms = (*self._rooms, self._result_rooms)
        dropped = [room.drop() for room in rooms]
        return bool(others) or any(dropped)

    def _prepare(self, arguments: Sequence[Any]) -> None:
        """Choose the slots for the shapes of these arguments: before each call, since `_ready` is never set."""
        if self._shapes is not None and len(arguments) == len(self._shapes):
            for x, shape in zip(arguments, self._shapes):  # noqa: B905
                if type(x) is not np.ndarray or x.shape != shape:
                    break
            else:
                self._offer()
                return
        if self.context.device is None:
            raise self.context.refusal(f"the program of {self.name!r}")
        if self._call is None:
            self._call = Call(self.context)
        if len(arguments) != len(self.export.arguments):
            raise self._wrong_count(arguments)
        shapes = tuple([x.shape if type(x) is np.ndarray else self._shape(at, x) for at, x in enumerate(arguments)])
        if shapes == self._shapes:
            self._offer()
            return
        found = self._kept.get(shapes)
        if found is None:
            found = self._kept[shapes] = self._made(arguments, shapes)
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(shapes)
        self._shapes, self._slots, self._inputs = shapes, found, found.inputs
        self._use(found)
        self._offer()

    def _offer(self) -> None:
        """Let the program find rooms where it asks memory for results."""
        if self._result_rooms is not None and None in self._targets:
            self.context.result_rooms = self._result_rooms.begin()

    def result_shapes(self) -> list[tuple[int, ...] | None]:
        self.context.result_rooms = None
        assert self._slots is not None
        rows = zip(self._slots.shapes, self._slots.outputs, strict=True)
        return [slot.shape if shape is None and slot is not None else shape for shape, slot in rows]

    def learn(self, views: Sequence[BufferView]) -> None:
        if self._slots is not None:
            self._slots.shapes = [view.shape for view in views]

    def _use(self, slots: _Slots) -> None:
        self._targets = tuple([None if slot is None else slot.view for slot in slots.outputs])
        only = slots.outputs[0] if len(slots.outputs) == 1 else None
        self._plain = only if only is not None and is_readable(only) else None

    def _shape(self, place: int, x: Any) -> tuple[int, ...]:
        """Of an argument that is no plain array."""
        if isinstance(x, DeviceArray | BufferView):
            return x.shape
        value = self.export.arguments[place]
        return as_array(x, value.dtype, value.shape, self.what(place)).shape

    def _made(self, arguments: Sequence[Any], shapes: Shapes) -> _Slots:
        """Slots for new shapes, which are those that the signature allows."""
        values: list[Value] = []
        for place, (x, shape, value) in enumerate(zip(arguments, shapes, self.export.arguments, strict=True)):
            if not fits(shape, value.shape):
                got = describe_array(x) if isinstance(x, np.ndarray) else describe(value.dtype, shape)
                raise CallerValueError(f"{self.what(place)}: expected {value}, got {got}")
            values.append(value._replace(shape=shape))
        inputs = self._input_slots(values)
        return _Slots(inputs, len(self.export.results))

    def _input_slots(self, values: Sequence[Value]) -> tuple[Slot, ...]:
        if self._rooms is None:
            return tuple([self._slot(value, MemoryUse.INPUT) for value in values])
        device = self.context.device
        assert device is not None
        found = []
        for room, value in zip(self._rooms, values, strict=True):
            size = value.dtype.itemsize * prod(value.shape)
            buffer = room.find(size)
            if buffer is None:
                self._kept.clear()  # they keep the memory that is given up
                self._shapes = self._slots = None
                self._inputs = ()
                buffer = room.make(device, size)
            found.append(slot_over(BufferView(buffer, value.dtype, value.shape)))
        return tuple(found)

    def _collect(self, results: tuple[Any, ...], passed: Sequence[BufferView | None]) -> Any:
        self.context.result_rooms = None
        found = super()._collect(results, passed)
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
        self.context.result_rooms = None
        for place, (result, one) in enumerate(zip(results, outs, strict=True)):
            if isinstance(one, np.ndarray) and one.shape != self.checked(place, result).shape:
                wanted = describe(result.dtype, result.shape)
                raise CallerValueError(f"out {place} of {self.name!r}: expected {wanted}, got {describe_array(one)}")
        found = super()._deliver(results, outs, destinations, passed, ready)
        self._adopt(results, passed)
        return found

    def _adopt(self, results: tuple[Any, ...], passed: Sequence[BufferView | None]) -> None:
        """Keep the views that the program made for results, as destinations of the next call with these shapes.

        One that shares memory with what the call was given, or with another, is somebody's.
        """
        slots = self._slots
        if slots is None or None not in slots.outputs:
            return
        taken = [view.buffer for view in passed if view is not None]
        for place, view in enumerate(results):
            if slots.outputs[place] is None and view.buffer not in taken and not view.offset:
                slots.outputs[place] = slot_over(view)
                taken.append(view.buffer)
        rooms = self._result_rooms
        if rooms is not None and rooms.changed:  # slots of other shapes keep memory that was given up
            rooms.changed = False
            self._kept = OrderedDict({shapes: kept for shapes, kept in self._kept.items() if kept is slots})
        self._use(slots)
