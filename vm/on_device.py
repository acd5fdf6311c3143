"""Calls whose results stay on the device: `function.on_device(x, y, donate=(0,))` returns `DeviceArray`s.

- A result is computed in a buffer of an earlier result that nobody refers to any more (`buffer_pool.py`), or in the
  memory of a donated argument if the export aliases the two. So a loop that passes results back as arguments allocates
  nothing after its first two iterations, and copies nothing.
- A donated array is consumed when all arguments are verified, even if the call fails afterwards: the program may have
  overwritten it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from math import prod
from operator import index
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from orchestrion.hal.buffer import WRITABLE, Buffer, BufferView
from orchestrion.schema.dtypes import DType

from .array import DeviceArray
from .buffer_pool import BufferPool
from .call_checks import argument_label, checked_result
from .errors import HAL_ERRORS, CallerTypeError, CallerValueError, from_hal_error
from .statistics import totals

if TYPE_CHECKING:
    from orchestrion.hal.device import Device
    from orchestrion.hal.statistics import Statistics

    from .context import Context
    from .exports import Export

#: the argument `donate`: numbers or names of arguments
Donated = Iterable[int | str] | int | str


def places_of(donate: Donated, names: Sequence[str], what: str) -> tuple[int, ...]:
    """The numbers of the donated arguments. `names`: of all arguments. `what`: the function in messages.

    `CallerError` for a number or name that no argument has.
    """
    wanted = [donate] if isinstance(donate, str) or not isinstance(donate, Iterable) else list(donate)
    found = []
    for one in wanted:
        if isinstance(one, str):
            if one not in names:
                raise CallerTypeError(f"{what}: donate names {one!r}; the arguments are {', '.join(names) or 'none'}")
            found.append(list(names).index(one))
            continue
        try:
            place = index(one)
        except TypeError:
            kind = type(one).__name__
            raise CallerTypeError(f"{what}: donate holds numbers and names of arguments, not {kind}") from None
        if not -len(names) <= place < len(names):
            raise CallerValueError(f"{what}: donate has argument {place}; there are {len(names)}")
        found.append(place % len(names))
    return tuple(found)


class DonatedPlaces:
    """`places_of` for one function. Answers for tuples are cached."""

    def __init__(self, names: Sequence[str], what: str) -> None:
        self._places = partial(places_of, names=names, what=what)
        self._cached = lru_cache(64)(self._places)

    def find(self, donate: Donated) -> tuple[int, ...]:
        """Errors as `places_of`."""
        return self._cached(donate) if type(donate) is tuple else self._places(donate)


class _Row(NamedTuple):
    """A result. `alias`: the argument whose memory it may use, or a number that no argument has."""

    alias: int
    dtype: DType
    pool: BufferPool


class OnDeviceFunction(Protocol):
    """A function whose results can stay on the device. See `function.py`."""

    context: Context
    name: str
    export: Export

    @property
    def device(self) -> Device: ...

    @property
    def statistics(self) -> Statistics: ...

    def operands(self, arguments: Sequence[Any]) -> list[BufferView]:
        """The views to pass to the program for arguments."""

    def result_shapes(self) -> list[tuple[int, ...] | None]:
        """The shape of each result; None if only the program knows it. Called after `operands`."""

    def note_results(self, views: Sequence[BufferView]) -> None:
        """Note the shapes of results, for `result_shapes` of the next call."""

    def run(self, passed: Sequence[BufferView | None]) -> tuple[Any, ...]:
        """Run the program, wait for its work, and return its results."""

    def log(self, started: float, before: tuple[int, ...]) -> None:
        """Log a call that has ended. `started`: seconds of the clock. `before`: the counters at its start."""


class OnDeviceCalls:
    """The calls of one function whose results stay on the device."""

    def __init__(self, function: OnDeviceFunction) -> None:
        self._places = DonatedPlaces([value.name for value in function.export.arguments], repr(function.name))
        export = function.export
        rows = zip(export.aliases, export.results, strict=True)
        self._rows = [_Row(alias, value.dtype, BufferPool()) for alias, value in rows]
        for row in self._rows:
            function.context.on_memory_pressure(row.pool.release)

    def close(self) -> None:
        """Release all buffers: the function's context is closed."""
        for row in self._rows:
            row.pool.close()

    def call(self, function: OnDeviceFunction, arguments: Sequence[Any], donate: Donated) -> tuple[DeviceArray, ...]:
        """Call the function. Gives its results; raises what `Function.__call__` raises."""
        context = function.context
        donated = self._donated(self._places.find(donate), arguments, function)
        try:
            started, before = perf_counter(), totals(function.statistics)
            operands = function.operands(arguments)
            targets = self._targets(function, operands, donated)
            for array in donated.values():
                array.consume(function.name)
            results = function.run([*operands, *targets])
            for place, target in enumerate(targets):
                if results[place] is not target or target is None:
                    results = self._copied_results(function, results, targets)
                    break
            function.log(started, before)
            return tuple([DeviceArray(view, context) for view in results])
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error

    def _donated(
        self, places: Sequence[int], arguments: Sequence[Any], function: OnDeviceFunction
    ) -> dict[int, DeviceArray]:
        """The donated device arrays, by argument. `CallerError` if one of them is passed for two arguments."""
        count = len(arguments)
        found = {place: arguments[place] for place in places if place < count and type(arguments[place]) is DeviceArray}
        if found and len(set(map(id, arguments))) < count:
            for place, x in found.items():
                others = [number for number, other in enumerate(arguments) if other is x and number != place]
                if others:
                    label, other = (argument_label(function.export, number) for number in (place, others[0]))
                    raise CallerValueError(f"{label}: donated, and given as {other} too")
        return found

    def _targets(
        self, function: OnDeviceFunction, operands: Sequence[BufferView], donated: dict[int, DeviceArray]
    ) -> list[BufferView | None]:
        """A view for each result; None if only the program knows its shape."""
        targets: list[BufferView | None] = []
        buffers = [operand.buffer for operand in operands] if donated else []
        is_distinct = len(set(map(id, buffers))) == len(buffers)
        for (alias, dtype, pool), shape in zip(self._rows, function.result_shapes()):  # noqa: B905  one per result
            array = donated.get(alias)
            if shape is None:
                targets.append(None)
            elif array is not None and array.view.shape == shape and _is_reusable(array, is_distinct, buffers):
                targets.append(array.view)
            else:
                buffer = pool.take(function.device, dtype.itemsize * prod(shape))
                targets.append(BufferView(buffer, dtype, shape))
        return targets

    def _copied_results(
        self, function: OnDeviceFunction, results: Sequence[Any], targets: Sequence[BufferView | None]
    ) -> tuple[BufferView, ...]:
        """The results of a program that did not use all targets. Results in other memory are copied to buffers of the
        pool, since that memory may belong to an argument or a constant.
        """
        views = [checked_result(function.export, place, result) for place, result in enumerate(results)]
        function.note_results(views)
        found = []
        for place, (view, target) in enumerate(zip(views, targets, strict=True)):
            if view is not target:
                buffer = self._rows[place].pool.take(function.device, view.nbytes)
                array, view = view.read(), BufferView(buffer, view.dtype, view.shape)
                view.write(array)
            found.append(view)
        return tuple(found)


def _is_reusable(array: DeviceArray, is_distinct: bool, buffers: list[Buffer]) -> bool:
    """Whether a result may overwrite a donated argument: nothing else may use its memory. `buffers`: those of all
    arguments. `is_distinct`: whether no two of them are the same.
    """
    buffer = array.view.buffer
    return not array.is_shared and bool(buffer.rights & WRITABLE) and (is_distinct or buffers.count(buffer) == 1)
