"""Checks of a call against the signature of its export: arguments, destinations of results, and results.

Wrong arguments and destinations raise `CallerError`, before anything runs. A wrong result raises `Trap`.
"""

from __future__ import annotations

from collections.abc import Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrion.hal.buffer import Buffer, BufferView

from .array import Array, DeviceArray
from .errors import CallerError, CallerTypeError, CallerValueError, DeviceLost, Trap
from .exports import Export, Value
from .tensors import check_out, describe, fits, mismatch

if TYPE_CHECKING:
    import inspect

    from orchestrion.hal.device import Device

_Target = TypeVar("_Target")


def python_signature(export: Export) -> inspect.Signature:
    """The signature for `inspect.signature`: with the names of the arguments, if Python allows all of them."""
    import inspect  # few programs ask for it

    names = [value.name for value in export.arguments]
    is_named = all(name.isidentifier() and name != "out" and not iskeyword(name) for name in names)
    if is_named and len(set(names)) == len(names):
        arguments = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    else:
        numbers = range(len(names))
        arguments = [inspect.Parameter(f"arg{place}", inspect.Parameter.POSITIONAL_ONLY) for place in numbers]
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    return inspect.Signature([*arguments, out])


def by_place(export: Export, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by place. `CallerError` if one is missing, given twice or unknown."""
    names = [value.name for value in export.arguments]
    rest = dict(named)
    found = list(arguments)
    for name in names[len(arguments) :]:
        if name not in rest:
            raise CallerTypeError(f"{export.name!r}: argument {name!r} is missing")
        found.append(rest.pop(name))
    if rest:
        name = next(iter(rest))
        problem = "given twice" if name in names else "unknown"
        raise CallerTypeError(f"{export.name!r}: argument {name!r} is {problem}")
    return tuple(found)


def argument_label(export: Export, place: int) -> str:
    """The name of an argument in messages: its path in a tree, or its number."""
    if export.trees:
        return export.arguments[place].name
    return f"argument {place} of {export.name!r}"


def wrong_count(export: Export, arguments: Sequence[object]) -> CallerError:
    """The error of a call with too many or too few arguments."""
    count = len(export.arguments)
    return CallerTypeError(f"{export.name!r} takes {count} argument{'s' * (count != 1)}, got {len(arguments)}")


def resident(device: Device, x: DeviceArray | BufferView, value: Value, what: str) -> BufferView:
    """The view of a device array that is an argument or a destination. `value`: its type in the signature.

    `CallerError` if it has another type or is on another device, `DeviceLost` if its device was lost.
    """
    view = x.view if isinstance(x, DeviceArray) else x
    if view.dtype is not value.dtype or view.shape != value.shape and not fits(view.shape, value.shape):
        message = f"{what}: expected {value}, got {describe(view.dtype, view.shape)} on a device"
        raise mismatch(message, view.dtype is not value.dtype)
    if view.buffer.device_state is not device.device_state:
        there = view.buffer.device.info.id
        if view.buffer.device_state is not None and view.buffer.device_state.lost is not None:
            raise DeviceLost(f"{what}: the array was on {there} when that was lost; put it again")
        way = f"of another load; vm.load(..., device=program.device) puts programs on one {there}"
        words = way if there == device.info.id else f"on {there}, the program on {device.info.id}"
        raise CallerValueError(f"{what}: the array is {words}")
    return view


def destinations(
    export: Export,
    device: Device,
    out: Any,
    operands: Sequence[Array | BufferView | None],
    targets: tuple[_Target, ...],
) -> tuple[tuple[Any, ...], tuple[BufferView | _Target, ...]]:
    """The caller's destination of each result, and the view to pass for it: that of a device array, or else the one in
    `targets`. `out`: as for `Function.__call__`. `operands`: the arguments of the call, as views or arrays.
    """
    outs: tuple[Any, ...] = tuple(out) if isinstance(out, list | tuple) else (out,)
    if len(outs) != len(export.results):
        raise CallerTypeError(f"{export.name!r} gives {len(export.results)} results, out has {len(outs)}")
    taken = [view.buffer if isinstance(view, BufferView) else None for view in operands]
    found: list[BufferView | _Target] = []
    for place, (one, value) in enumerate(zip(outs, export.results, strict=True)):
        what = f"out {place} of {export.name!r}"
        view: BufferView | _Target
        if isinstance(one, DeviceArray | BufferView):
            view = resident(device, one, value, what)
            _refuse_shared(export, place, view.buffer, taken)
            taken.append(view.buffer)
        else:
            view = targets[place]
            check_out(one, value.dtype, value.shape, what, value)
        found.append(view)
    return outs, tuple(found)


def _refuse_shared(export: Export, place: int, buffer: Buffer, taken: Sequence[Buffer | None]) -> None:
    """`CallerError` if a destination shares its memory with another destination, or with an argument that is not
    donated to the result. `taken`: the buffers of the arguments, then of earlier results.
    """
    count = len(export.arguments)
    for number, other in enumerate(taken):
        if other is buffer and number != export.aliases[place]:
            shared = f"argument {number}, which is not donated to it" if number < count else f"out {number - count}"
            raise CallerValueError(f"out {place} of {export.name!r} shares its memory with {shared}")


def checked_result(export: Export, place: int, result: Any) -> BufferView:
    """A result, which may be another view than the target. `Trap` unless it has the type of the signature."""
    value = export.results[place]
    if type(result) is not BufferView:
        raise Trap(f"result {place} of {export.name!r}: expected {value}, got null or another reference")
    if result.dtype is not value.dtype or result.shape != value.shape and not fits(result.shape, value.shape):
        got = describe(result.dtype, result.shape)
        raise Trap(f"result {place} of {export.name!r}: expected {value}, got {got}")
    return result
