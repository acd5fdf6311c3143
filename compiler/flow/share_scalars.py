"""share-scalars: executables that differ only in scalar constants become equal. The constants become arguments.

A driver compiles each kernel separately. A program of 400 scaled sums becomes one kernel with 400 values of an
argument. The values lie in constant globals of rank 0, which the function loads for each dispatch.

A constant becomes an argument only if code generators cannot use its value: a float that is not zero, one, infinite or
NaN, of either sign, and that only basic arithmetic reads. Small groups of executables stay as they are, because an
argument costs each dispatch a binding and a load.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import isfinite
from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.cse import structure
from orchestrion.compiler.ir.types import FunctionType
from orchestrion.compiler.ir.util import Global, GlobalLoad
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant
from orchestrion.schema.dtypes import FLOAT

from .blocks import code_of
from .dialect import Dispatch, Executable
from .groups import MAX_BINDINGS
from .symbols import Names

#: fewest executables that are shared; a smaller group that differs in constants alone stays as it is
MIN_SHARED_EXECUTABLES: Final = 8
#: most constants of one executable that become arguments
MAX_SCALARS: Final = 4
#: ops whose code is the same for every number
ARITHMETIC: Final = frozenset({"stablehlo.add", "stablehlo.divide", "stablehlo.multiply", "stablehlo.subtract"})
#: numbers for which special code may exist
SPECIAL: Final = (0.0, 1.0)

#: an executable and its constants that may become arguments, by their place among the ops of the entry
_Member = tuple[Executable, dict[int, Constant]]


def run(module: Module) -> None:
    """Shares the executables of a module."""
    dispatches = {op.entry.root: op for op in module.walk(Dispatch)}
    alike: dict[tuple[str, ...], list[_Member]] = {}  # of the same ops: only many are compared further
    for executable in module.block:
        if isinstance(executable, Executable) and executable.symbol in dispatches:
            found = _scalars(executable)
            if found:
                alike.setdefault(tuple(op.name for op in executable.walk()), []).append((executable, found))
    groups: dict[Hashable, list[tuple[Executable, list[Constant]]]] = {}
    for executable, found in (
        member for members in alike.values() if len(members) >= MIN_SHARED_EXECUTABLES for member in members
    ):
        masked = _masked_structure(executable, list(found.values()))
        tied = str(dispatches[executable.sym_name.value].tied)
        groups.setdefault((masked, tied, tuple(found)), []).append((executable, list(found.values())))
    scalars = _Scalars(module)
    for members in groups.values():
        values = [[constant.value for constant in constants] for _, constants in members]
        differing = [at for at, column in enumerate(zip(*values, strict=True)) if len(set(column)) > 1]
        if len({tuple(row) for row in values}) < MIN_SHARED_EXECUTABLES or len(differing) > MAX_SCALARS:
            continue
        for executable, constants in members:
            dispatch = dispatches[executable.sym_name.value]
            if len(dispatch.operands) + len(dispatch.results) + len(differing) <= MAX_BINDINGS:
                _take(executable, dispatch, [constants[at] for at in differing], scalars)


def _scalars(executable: Executable) -> dict[int, Constant]:
    """The constants that may become arguments, by their place among the ops of the entry."""
    places = enumerate(executable.entry.body.block)
    return {at: op for at, op in places if isinstance(op, Constant) and op.value.is_splat and _is_any_number(op)}


def _is_any_number(op: Constant) -> bool:
    if dtype_of(op.out).kind != FLOAT or dtype_of(op.out).foreign:
        return False
    number = abs(op.value.scalars()[0])
    return isfinite(number) and number not in SPECIAL and all(map(_is_arithmetic, op.out.users()))


def _is_arithmetic(user: Operation) -> bool:
    if isinstance(user, BroadcastInDim):
        return all(inner.name in ARITHMETIC for inner in user.result.users())
    return user.name in ARITHMETIC


def _masked_structure(executable: Executable, constants: Sequence[Constant]) -> Hashable:
    """The structure of an executable without its name and without the values of some constants."""
    values, name = [op.value for op in constants], executable.sym_name.value
    for op in constants:
        op.value = DenseElements(op.value.type, bytes(op.value.itemsize))
    executable.rename("")
    masked = structure(executable)
    executable.rename(name)
    for op, value in zip(constants, values, strict=True):
        op.value = value
    return masked


class _Scalars:
    """The globals that hold constants, one per value, and their loads in front of dispatches."""

    def __init__(self, module: Module) -> None:
        self._first = next(iter(code_of(module)))
        self._names = Names.of(module)
        self._globals: dict[DenseElements, Global] = {}

    def load(self, dispatch: Dispatch, constant: Constant) -> Value:
        """Loads the global of a constant in front of a dispatch."""
        scalar = DenseElements(constant.value.type.with_shape(()), bytes(constant.value.data))
        known = self._globals.get(scalar)
        if known is None:
            name = self._names.fresh(f"scalar_{len(self._globals)}")
            known = self._globals[scalar] = Builder.before(self._first).build(
                Global, sym_name=name, type=scalar.type, value=scalar, loc=constant.loc
            )
        load = Builder.before(dispatch).build(GlobalLoad, ref=SymbolRef(known.sym_name.value), value=scalar.type)
        return load.result


def _take(executable: Executable, dispatch: Dispatch, constants: Sequence[Constant], scalars: _Scalars) -> None:
    """Turns constants into arguments, behind the others."""
    entry = executable.entry
    dispatch.set_operands([*dispatch.operands, *(scalars.load(dispatch, constant) for constant in constants)])
    for constant in constants:
        given: Value = entry.body.block.add_argument(constant.value.type.with_shape(()), constant.loc)
        if constant.value.type.rank:
            made = Builder.before(constant).build(
                BroadcastInDim, operand_=given, broadcast_dimensions=[], out=constant.out.type
            )
            given = made.out
        constant.out.replace_by(given)
        constant.erase()
    signature = entry.function_type
    inputs = (*signature.inputs, *(constant.value.type.with_shape(()) for constant in constants))
    entry.function_type = FunctionType(inputs, signature.results)
