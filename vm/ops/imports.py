"""Calls of native functions: one op each, bound to the Python function when the code is built.

Refs are checked here, at run time, against the types of the signature: a register's type is not always known
statically.
"""

from collections.abc import Sequence
from operator import itemgetter

from orchestrion.schema.signature import NUMBER_TYPES
from orchestrion.vm.errors import Trap
from orchestrion.vm.native import NativeFunction, class_of
from orchestrion.vm.refs import type_name

from .table import CALL, Op, Registers


class Check:
    """The slow half of a check of arguments: says what is wrong, or that a null is welcome."""

    __slots__ = ("function", "refs")

    def __init__(self, function: NativeFunction, types: tuple[str, ...]) -> None:
        """`types`: of the arguments, as the function's signature has them for that many."""
        shape = function.signature.shape(len(types))
        assert shape is not None
        self.function = function
        self.refs = shape.refs

    def __call__(self, values: Sequence[object]) -> None:
        function = self.function
        for position, wanted in self.refs:
            value = values[position]
            if value is None:
                if not function.may_be_null(position):
                    raise Trap(f"argument {position} of {function.name}: expected {wanted}, got null")
            elif wanted != "any" and type(value) is not class_of(wanted):
                got = type_name(value)
                raise Trap(f"argument {position} of {function.name}: expected {wanted}, got {got}")


def absent(name: str) -> Op:
    def op(regs: Registers) -> None:
        raise Trap(f"optional import {name} is absent")

    return op


def present(function: NativeFunction | None, d: int) -> Op:
    """Whether an import is there, as a number."""
    found = 0 if function is None else 1

    def op(regs: Registers) -> None:
        regs[d] = found

    return op


def call_native(
    function: NativeFunction, types: tuple[str, ...], args: tuple[int, ...], results: tuple[int, ...]
) -> Op:
    """The op for a call with these argument types, argument registers and result registers."""
    check = Check(function, types)
    if len(results) > 1:
        return _several(function, check, args, results)
    if not args:
        return _nullary(function, results)
    wanted = class_of(types[0])
    if wanted is not None and all([name in NUMBER_TYPES for name in types[1:]]):
        return _one_ref(function, check, args, results, wanted)
    return _general(function, check, types, args, results)


def _several(function: NativeFunction, check: Check, args: tuple[int, ...], results: tuple[int, ...]) -> Op:
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
    function: NativeFunction, check: Check, args: tuple[int, ...], results: tuple[int, ...], wanted: type
) -> Op:
    """The first argument is the only ref: most functions are methods of it."""
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
    function: NativeFunction, check: Check, types: tuple[str, ...], args: tuple[int, ...], results: tuple[int, ...]
) -> Op:
    """All types compared at once; what differs (a null, an `any`) is looked at by `check`."""
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
