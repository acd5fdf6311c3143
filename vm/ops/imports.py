"""Calls of native functions. Each is one op, bound to the Python function when the code is built.

The op compares refs with the types of the signature at run time, since the verifier does not know the type of each
register.
"""

from collections.abc import Sequence
from operator import itemgetter

from orchestrion.schema.signature import NUMBER_TYPES
from orchestrion.vm.errors import Trap
from orchestrion.vm.native import NativeFunction, class_of
from orchestrion.vm.refs import type_name

from .table import CALL, Op, Registers


class ArgumentCheck:
    """The slow check of arguments, after the comparison of their classes failed: raises, or accepts a null."""

    __slots__ = ("function", "refs")

    def __init__(self, function: NativeFunction, types: tuple[str, ...]) -> None:
        """`types`: of the arguments, as the function's signature gives them for that number of arguments."""
        shape = function.signature.shape(len(types))
        assert shape is not None
        self.function = function
        self.refs = shape.refs

    def __call__(self, values: Sequence[object]) -> None:
        """`Trap` if a ref is null where the function does not accept null, or of another type."""
        function = self.function
        for position, wanted in self.refs:
            value = values[position]
            if value is None:
                if not function.may_be_null(position):
                    raise Trap(f"argument {position} of {function.name}: expected {wanted}, got null")
            elif wanted != "any" and type(value) is not class_of(wanted):
                got = type_name(value)
                raise Trap(f"argument {position} of {function.name}: expected {wanted}, got {got}")


def call_absent(name: str) -> Op:
    """The op for a call of an optional import that is absent: a trap."""

    def op(regs: Registers) -> None:
        raise Trap(f"optional import {name} is absent")

    return op


def is_present(function: NativeFunction | None, d: int) -> Op:
    """The op that writes 1 if an import is present, else 0."""
    found = 0 if function is None else 1

    def op(regs: Registers) -> None:
        regs[d] = found

    return op


def call_native(
    function: NativeFunction, types: tuple[str, ...], args: tuple[int, ...], results: tuple[int, ...]
) -> Op:
    """The op for a call. `types`: of the arguments. `args`, `results`: registers of arguments and results."""
    check = ArgumentCheck(function, types)
    if len(results) > 1:
        return _several(function, check, args, results)
    if not args:
        return _nullary(function, results)
    wanted = class_of(types[0])
    if wanted is not None and all([name in NUMBER_TYPES for name in types[1:]]):
        return _one_ref(function, check, args, results, wanted)
    return _general(function, check, types, args, results)


def _several(function: NativeFunction, check: ArgumentCheck, args: tuple[int, ...], results: tuple[int, ...]) -> Op:
    target = function.function

    def op(regs: Registers) -> None:
        values = tuple([regs[register] for register in args])
        check(values)
        for register, value in zip(results, target(regs[CALL], *values), strict=True):
            regs[register] = value

    return op


def _nullary(function: NativeFunction, results: tuple[int, ...]) -> Op:
    target = function.function
    if not results:

        def op(regs: Registers) -> None:
            target(regs[CALL])

        return op
    d = results[0]

    def op_result(regs: Registers) -> None:
        regs[d] = target(regs[CALL])

    return op_result


def _one_ref(
    function: NativeFunction, check: ArgumentCheck, args: tuple[int, ...], results: tuple[int, ...], wanted: type
) -> Op:
    """The op for a function whose first argument is its only ref, as for most functions."""
    target = function.function
    first, rest = args[0], args[1:]
    d = results[0] if results else None
    if not rest:

        def unary(regs: Registers) -> None:
            x = regs[first]
            if type(x) is not wanted:
                check((x,))
            y = target(regs[CALL], x)
            if d is not None:
                regs[d] = y

        return unary
    get = itemgetter(*args)

    def op(regs: Registers) -> None:
        values = get(regs)
        if type(values[0]) is not wanted:
            check(values)
        y = target(regs[CALL], *values)
        if d is not None:
            regs[d] = y

    return op


def _general(
    function: NativeFunction,
    check: ArgumentCheck,
    types: tuple[str, ...],
    args: tuple[int, ...],
    results: tuple[int, ...],
) -> Op:
    """The op for any other function. Compares all classes at once; `check` decides if they differ (null, `any`)."""
    target = function.function
    numbers: dict[str, type] = {"i32": int, "i64": int, "f32": float, "f64": float}
    wanted = [numbers.get(name) or class_of(name) for name in types]
    d = results[0] if results else None
    first = args[0]
    get = itemgetter(*args) if len(args) > 1 else lambda regs: (regs[first],)

    def op(regs: Registers) -> None:
        values = get(regs)
        if [*map(type, values)] != wanted:
            check(values)
        y = target(regs[CALL], *values)
        if d is not None:
            regs[d] = y

    return op
