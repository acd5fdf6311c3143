"""Calls whose results stay on the device: `function.on_device(x, y, donate=(0,))` gives `DeviceArray`s.

- A result lies in memory that an earlier result of the function had, if nobody refers to that any more (`spares.py`),
  or in that of a donated argument where the export aliases the two. So a loop that feeds results back allocates nothing
  after its first two steps, and copies nothing.
- A donated array is consumed once the arguments were found right: also by a call that fails then, since the program may
  have written over it.
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
from .errors import PUBLIC, CallerTypeError, CallerValueError, public
from .spares import Spares
from .statistics import totals

if TYPE_CHECKING:
    from orchestrion.hal.device import Device
    from orchestrion.hal.statistics import Statistics

    from .context import Context
    from .exports import Export

#: numbers or names of arguments
Donated = Iterable[int | str] | int | str


def places_of(donate: Donated, names: Sequence[str], what: str) -> tuple[int, ...]:
    """The numbers of the arguments that are donated. `CallerError`: there is none of this number or name."""
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
    """A result: the argument whose memory it may take over, or a number that none has."""

    alias: int
    dtype: DType
    spares: Spares


class ResidentFunction(Protocol):
    """A function whose results may stay on the device. See `function.py`."""

    context: Context
    name: str
    export: Export

    @property
    def device(self) -> Device: ...

    @property
    def statistics(self) -> Statistics: ...

    def operands(self, arguments: Sequence[Any]) -> list[BufferView]:
        """The views to pass for arguments."""

    def result_shapes(self) -> list[tuple[int, ...] | None]:
        """After `operands`: the shape of each result; None where only the program knows it."""

    def note_results(self, views: Sequence[BufferView]) -> None:
        """Hear what the results were, for `result_shapes` of the next call."""

    def run(self, passed: Sequence[BufferView | None]) -> tuple[Any, ...]:
        """The results of the program, when its work is over."""

    def checked(self, place: int, result: Any) -> BufferView:
        """A result of the right type. `Trap` for any other."""

    def what(self, place: int) -> str:
        """An argument in messages."""

    def log(self, started: float, before: tuple[int, ...]) -> None:
        """Note a call that is over."""


class Residents:
    """What the calls of one function share whose results stay on the device."""

    def __init__(self, function: ResidentFunction) -> None:
        self._places = DonatedPlaces([value.name for value in function.export.arguments], repr(function.name))
        export = function.export
        rows = zip(export.aliases, export.results, strict=True)
        self._rows = [_Row(alias, value.dtype, Spares()) for alias, value in rows]
        for row in self._rows:
            function.context.on_memory_pressure(row.spares.drop)

    def close(self) -> None:
        """The function's context is being closed."""
        for row in self._rows:
            row.spares.close()

    def call(self, function: ResidentFunction, arguments: Sequence[Any], donate: Donated) -> tuple[DeviceArray, ...]:
        """The results. Errors as those of `Function.__call__`."""
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
                    results = self._settled(function, results, targets)
                    break
            function.log(started, before)
            return tuple([DeviceArray(view, context) for view in results])
        except PUBLIC as error:
            raise public(error) from error

    def _donated(
        self, places: Sequence[int], arguments: Sequence[Any], function: ResidentFunction
    ) -> dict[int, DeviceArray]:
        """The donated arguments that are on the device. `CallerError` if one is an argument twice."""
        count = len(arguments)
        found = {place: arguments[place] for place in places if place < count and type(arguments[place]) is DeviceArray}
        if found and len(set(map(id, arguments))) < count:
            for place, x in found.items():
                others = [number for number, other in enumerate(arguments) if other is x and number != place]
                if others:
                    raise CallerValueError(
                        f"{function.what(place)}: donated, and given as {function.what(others[0])} too"
                    )
        return found

    def _targets(
        self, function: ResidentFunction, operands: Sequence[BufferView], donated: dict[int, DeviceArray]
    ) -> list[BufferView | None]:
        """Memory for each result; None where only the program knows its shape."""
        targets: list[BufferView | None] = []
        buffers = [operand.buffer for operand in operands] if donated else []
        is_distinct = len(set(map(id, buffers))) == len(buffers)
        for (alias, dtype, spares), shape in zip(self._rows, function.result_shapes()):  # noqa: B905  one per result
            array = donated.get(alias)
            if shape is None:
                targets.append(None)
            elif array is not None and array.view.shape == shape and _is_reusable(array, is_distinct, buffers):
                targets.append(array.view)
            else:
                buffer = spares.take(function.device, dtype.itemsize * prod(shape))
                targets.append(BufferView(buffer, dtype, shape))
        return targets

    def _settled(
        self, function: ResidentFunction, results: Sequence[Any], targets: Sequence[BufferView | None]
    ) -> tuple[BufferView, ...]:
        """The results of a program that put them where it liked, in memory of their own: where they are may be an
        argument, or a constant.
        """
        views = [function.checked(place, result) for place, result in enumerate(results)]
        function.note_results(views)
        found = []
        for place, (view, target) in enumerate(zip(views, targets, strict=True)):
            if view is not target:
                buffer = self._rows[place].spares.take(function.device, view.nbytes)
                array, view = view.read(), BufferView(buffer, view.dtype, view.shape)
                view.write(array)
            found.append(view)
        return tuple(found)


def _is_reusable(array: DeviceArray, is_distinct: bool, buffers: list[Buffer]) -> bool:
    """Whether a result may be written over a donated argument: nobody else sees its memory. `buffers`: of all
    arguments, which compare by identity; `is_distinct`: none is there twice.
    """
    buffer = array.view.buffer
    return not array.is_shared and bool(buffer.rights & WRITABLE) and (is_distinct or buffers.count(buffer) == 1)
