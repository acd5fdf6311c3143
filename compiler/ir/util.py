"""The util dialect: globals, initializers and branches, used by every phase from flow to ll_seq.

An immutable global is a constant with a value, or an initializer stores to it exactly once before any function runs.
Functions only load it. A mutable global is a variable of each context, which functions load and store; it may have an
initial value. A parameter is a constant whose value lies outside the module (`ir/parameters.py`).

Branches end the blocks of a function and pass the arguments of their target blocks, of any type. A block may also use
each value whose definition dominates it.

Values of type i32 live on the host. They count the iterations of loops of known length, which no device needs to know.
`constant`, `dim`, `add` and `compare_lt` compute them, in every phase alike.

Dynamic sizes are symbols of a function and occur in its types (`compiler/ir/dims.py`). The attribute `dims` of the
function defines each symbol: {name, least, greatest, value}. The value is a size over symbols defined before and over
`argI_J`, the size of axis J of argument I. The parameters of an executable's entry are listed the same way, without
values. `assert` states a condition that the caller must meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from .attributes import ArrayAttr, DenseArray, DenseElements, DictAttr, IntegerAttr, StringAttr, SymbolRef, UnitAttr
from .core import Block, Operation, Trait, Value
from .declare import attr, operand, operands, optional, region, result, results, successor, successors
from .dialect import Dialect, ops_in
from .dims import Size
from .parameters import problem
from .symbols import SymbolTables
from .types import I32, FunctionType, Type

#: kind of initializer -> when it runs
KINDS: Final[dict[str, str]] = {
    "program": "once per loaded program: executables and constants, shared by all contexts",
    "context": "once per context: arena and recordings",
}


class Global(Operation):
    """A constant, a value that an initializer computes, or a variable; see the docstring of the module."""

    name = "util.global"
    sym_name = attr(StringAttr)
    type = attr(Type)
    mutable = optional(UnitAttr)
    value = optional(DenseElements)
    parameter = optional(DictAttr)
    traits = frozenset({Trait.SYMBOL})

    @property
    def is_constant(self) -> bool:
        """Whether nothing stores to the global: it has an initial value, or is a parameter."""
        return self.mutable is None and (self.value is not None or self.parameter is not None)

    def check(self) -> Iterator[str]:
        if self.parameter is None:
            return
        if self.value is not None or self.mutable is not None:
            yield "is a parameter, which has no value here and is never stored to"
        if found := problem(self.parameter):
            yield found


class GlobalLoad(Operation):
    """The value of a global."""

    name = "util.global_load"
    ref = attr(SymbolRef)
    value = result()
    traits = frozenset({Trait.PURE})

    def check_symbols(self, tables: SymbolTables) -> Iterator[str]:
        variable = tables.lookup(self, self.ref)
        if not isinstance(variable, Global):
            yield f"{self.ref} is not a global"
        elif variable.properties.get("type", self.value.type) != self.value.type:  # one without a type reports that
            yield f"{self.ref} is of type {variable.type}, loaded as {self.value.type}"


class GlobalStore(Operation):
    """Stores the value of a global."""

    name = "util.global_store"
    ref = attr(SymbolRef)
    value = operand()


class _LifetimeCode(Operation):
    """Base class of code that runs once per program or once per context; see `KINDS`."""

    kind = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED})

    def check(self) -> Iterator[str]:
        if self.kind.value not in KINDS:
            yield f"kind {self.kind} is none of {', '.join(KINDS)}"


class Initializer(_LifetimeCode):
    """Code that runs before any function."""

    name = "util.initializer"


class Finalizer(_LifetimeCode):
    """Code that runs when the program or a context ends: releases, in reverse order, what its initializer stored."""

    name = "util.finalizer"
    traits = frozenset({Trait.ISOLATED, Trait.ONE_BLOCK})


class GlobalRelease(Operation):
    """Releases the object that a global holds."""

    name = "util.global_release"
    ref = attr(SymbolRef)


class Return(Operation):
    """Ends an initializer or a finalizer."""

    name = "util.return"
    traits = frozenset({Trait.TERMINATOR})


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge to another block, and the operands of the terminator that become its arguments.

    `values[i]` is operand number `start + i` of the terminator and becomes argument number i of `target`.
    """

    target: Block
    start: int
    values: tuple[Value, ...]


class BranchOp(Operation):
    """Base class of terminators with successors."""

    #: number of operands that select the edge; those behind them become block arguments
    choosing: ClassVar[int] = 1
    traits = frozenset({Trait.TERMINATOR})

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of operands for each successor: the property `counts`, unless a class knows better."""
        counts = self.get_as("counts", DenseArray)
        return counts.ints if counts is not None else ()

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges in the order of the successors."""
        found, start = [], self.choosing
        for target, size in zip(self.successors, self.sizes, strict=True):
            found.append(Edge(target, start, tuple(self.operands[start : start + size])))
            start += size
        return tuple(found)

    def check(self) -> Iterator[str]:
        sizes, travelling = self.sizes, len(self.operands) - self.choosing
        if len(sizes) != len(self.successors) or min(sizes) < 0 or sum(sizes) != travelling:
            yield f"counts {list(sizes)} do not fit {len(self.successors)} successors and {travelling} arguments"
            return
        for index, edge in enumerate(self.edges):
            given = [value.type for value in edge.values]
            taken = [argument.type for argument in edge.target.arguments]
            if given != taken:
                yield f"gives {_types(given)} to successor {index}, which takes {_types(taken)}"


def _types(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"


class Branch(BranchOp):
    """Continues in another block."""

    name = "util.branch"
    arguments = operands()
    to = successor()
    choosing = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        return (len(self.operands),)


class CondBranch(BranchOp):
    """Continues in `then` if the condition is not 0, else in `otherwise`. `counts`: number of arguments of each.

    In `hl_seq` the condition may be a counter, a resource of four bytes: its last byte decides. The counter is negative
    until it reaches 0.

    `kernel_loop`: the block is the header of a loop that becomes one kernel (pass `mark-kernel-loops`); its number of
    iterations, 0 if that is unknown. `batch`: the block is the header of a loop of which the host submits
    several iterations at once, at most so many.
    """

    name = "util.cond_branch"
    kernel_loop = optional(IntegerAttr)
    batch = optional(IntegerAttr)
    condition = operand()
    arguments = operands()
    then = successor()
    otherwise = successor()
    counts = attr(DenseArray)


class Switch(BranchOp):
    """Continues in target number `index`, or in the last one if there is none. `counts`: arguments of each."""

    name = "util.switch"
    index = operand()
    arguments = operands()
    targets = successors()
    counts = attr(DenseArray)

    def check(self) -> Iterator[str]:
        if not self.successors:
            yield "needs a target"
        else:
            yield from super().check()


class ImportedCall(Operation):
    """Calls a function of another module, over values: the function `callee`, named `module.function`."""

    name = "util.imported_call"
    callee = attr(StringAttr)
    arguments = operands()
    outputs = results()


class ImportedCallBranch(BranchOp):
    """Calls a function of another module over the memory of mutable globals, then continues in another block.

    `arguments` are globals that the function reads, `results` those that it writes completely. All are distinct.
    """

    name = "util.imported_call_branch"
    callee = attr(StringAttr)
    function_type = attr(FunctionType)
    arguments = attr(ArrayAttr)
    outputs = attr(ArrayAttr)
    to = successor()
    choosing = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        return (0,)

    @property
    def globals(self) -> list[SymbolRef]:
        """The globals of the arguments, then of the results."""
        return [ref for ref in (*self.arguments, *self.outputs) if isinstance(ref, SymbolRef)]

    def check(self) -> Iterator[str]:
        yield from super().check()
        wanted = len(self.function_type.inputs) + len(self.function_type.results)
        if len(self.globals) != wanted or len(self.arguments) != len(self.function_type.inputs):
            yield f"names {len(self.globals)} globals for a function of type {self.function_type}"
        if len(set(self.globals)) != len(self.globals):
            yield "names a global twice"


class Constant(Operation):
    """A number on the host."""

    name = "util.constant"
    value = attr(IntegerAttr)
    out = result(I32)
    traits = frozenset({Trait.PURE, Trait.CONSTANT})

    def check(self) -> Iterator[str]:
        if self.value.type != I32 or not -(1 << 31) <= self.value.value < 1 << 31:
            yield f"value {self.value} is no i32"


class Add(Operation):
    """The sum of two numbers on the host, modulo 2^32."""

    name = "util.add"
    lhs = operand(I32)
    rhs = operand(I32)
    out = result(I32)
    traits = frozenset({Trait.PURE, Trait.COMMUTATIVE})


class CompareLt(Operation):
    """1 when the first of two numbers on the host is less than the second, as signed numbers, else 0."""

    name = "util.compare_lt"
    lhs = operand(I32)
    rhs = operand(I32)
    out = result(I32)
    traits = frozenset({Trait.PURE})


class DimValue(Operation):
    """A size as a number on the host."""

    name = "util.dim"
    value = attr(DenseArray)
    out = result(I32)
    traits = frozenset({Trait.PURE})

    @property
    def size(self) -> Size:
        return self.value.sizes[0]

    def check(self) -> Iterator[str]:
        if len(self.value) != 1:
            yield f"value {self.value} is not one size"


#: predicate of an assertion -> what it says of `lhs` and `rhs`
PREDICATES: Final[dict[str, str]] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_PLACE: Final = re.compile(r"\{([0-9]{1,3})\}")


class Assert(Operation):
    """Raises an error of the caller unless `lhs` and `rhs` compare as the predicate says.

    `{i}` in the message is number i of `numbers`.
    """

    name = "util.assert"
    predicate = attr(StringAttr)
    lhs = attr(DenseArray)
    rhs = attr(DenseArray)
    numbers = attr(DenseArray)
    message = attr(StringAttr)

    def check(self) -> Iterator[str]:
        if self.predicate.value not in PREDICATES:
            yield f"predicate {self.predicate} is none of {', '.join(PREDICATES)}"
        if len(self.lhs) != 1 or len(self.rhs) != 1:
            yield f"compares {self.lhs} with {self.rhs}, which are not one size each"
        missing = [place for place in _PLACE.findall(self.message.value) if int(place) >= len(self.numbers)]
        if missing:
            yield f"the message names number {missing[0]}, of which there are {len(self.numbers)}"


#: ops that compute on the host
HOST_OPS: Final = (Constant, DimValue, Add, CompareLt)

DIALECT = Dialect("util", ops_in(globals()))
