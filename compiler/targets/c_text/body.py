"""Renders the ops of `kernel` IR as statements in a language of the C family.

A value is a variable `v<n>`, or an expression at its only use (`BodyText._place`). Constants are written where they are
used. The results of a loop are its carried variables; the results of a branch are variables that are declared in front
of it. A language derives a class and adds the ops on workgroups, vectors and shared memory. `kernel.call` calls a
function of `functions.py`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.methods import methods_of
from orchestrion.schema.dtypes import BOOL, FLOAT, SIGNED, UNSIGNED

from .language import Language

INDENT = "  "

#: most characters of an expression that is written at the use of its value
LONGEST = 60
_NAME = re.compile(r"[a-z]\w*", re.ASCII)


class BodyText:
    """The statements of ops. `kernels`: what messages call the code; `callee`: returns the name of the function of a
    call; `fuses`: whether functions contain `kernel.multiply_add`.
    """

    language: ClassVar[Language]
    kernels: ClassVar[str]
    fuses: ClassVar[bool] = False
    _methods: ClassVar[Mapping[str, Callable[[Any, Any], None]]]

    def __init_subclass__(cls) -> None:
        cls._methods = methods_of(cls)

    def __init__(self, callee: Callable[[k.Call], str]) -> None:
        self.lines: list[str] = []
        #: value -> text: a name, a literal, or an expression
        self.names: MutableMapping[Value, str] = {}
        #: values whose text needs parentheses as an operand
        self.compound: set[Value] = set()
        self.callee = callee
        self.depth = 1
        self.count = 0

    def text(self) -> str:
        """The text of the statements."""
        return "\n".join(self.lines)

    # text

    def operand(self, value: Value) -> str:
        """The text of a value inside an expression."""
        return f"({self.names[value]})" if value in self.compound else self.names[value]

    def line(self, text: str) -> None:
        """Appends a statement."""
        self.lines.append(INDENT * self.depth + text)

    def type(self, value: Value) -> str:
        """The type of a scalar or vector value."""
        lanes, dtype = k.length_of(value), k.dtype_of(value)
        return self.language.types[dtype.name] if lanes == 1 else self.language.vector_type(lanes, dtype)

    def _new(self, value: Value) -> str:
        """A new name for a value."""
        self.names[value] = name = f"v{self.count}"
        self.count += 1
        return name

    def _define(self, value: Value, text: str) -> None:
        self.line(f"const {self.type(value)} {self._new(value)} = {text};")

    def _place(self, value: Value, text: str, compound: bool = True) -> None:
        """Writes a pure value: a short expression at its only use, else a variable."""
        if len(text) > LONGEST or not _stands_alone(value, self.is_by_lanes):
            self._define(value, text)
            return
        self.names[value] = text
        if compound:
            self.compound.add(value)

    def assign(self, targets: Sequence[str], values: Sequence[Value]) -> None:
        """Assigns all values at once. A value that reads another target is saved first."""
        sources = [self.names[value] for value in values]
        for position, source in enumerate(sources):
            if set(_NAME.findall(source)) & set(targets) - {targets[position]}:
                sources[position] = f"t{self.count}"
                self.count += 1
                self.line(f"const {self.type(values[position])} {sources[position]} = {source};")
        for target, source in zip(targets, sources, strict=True):
            if target != source:
                self.line(f"{target} = {source};")

    # ops

    def ops(self, ops: Iterable[Operation]) -> None:
        """Renders ops, in order. Raises CompileError for an op that the language lacks."""
        for op in ops:
            if op.name not in self._methods:
                raise CompileError([Diagnostic(f"{self.kernels} have no such op", op.loc, op.name)])
            self._methods[op.name](self, op)

    def is_by_lanes(self, op: k.Scalar) -> bool:
        """Whether an op on vectors is written lane by lane."""
        raise NotImplementedError

    def lane(self, vector: Value, lane: int) -> str:
        """The text of a lane of a vector."""
        raise NotImplementedError

    def joined(self, vector: Value, lanes: Sequence[str]) -> str:
        """The text of a vector of these lanes."""
        raise NotImplementedError

    def scalar_op(self, op: k.Scalar) -> None:
        types = [k.dtype_of(operand) for operand in op.operands]
        if self.is_by_lanes(op):
            name, result = op.primitive.name, k.dtype_of(op.output)
            lanes = [
                self.language.expression(name, [self.lane(value, lane) for value in op.operands], types, result)
                for lane in range(k.length_of(op.output))
            ]
            self._define(op.output, self.joined(op.output, lanes))
            return
        names = [self.operand(operand) for operand in op.operands]
        text = self.language.expression(op.primitive.name, names, types, k.dtype_of(op.output))
        if _is_product(op):
            self._define(op.output, text)
        else:
            self._place(op.output, text, op.primitive.name not in self.language.called)

    def call(self, op: k.Call) -> None:
        names = [self.names[value] for value in op.values if not isinstance(value.defining_op, k.Constant)]
        self._place(op.output, f"{self.callee(op)}({', '.join(names)})", compound=False)

    def constant(self, op: k.Constant) -> None:
        self.names[op.output] = self.language.literal(op.bits, k.dtype_of(op.output))

    def parameter(self, op: k.Parameter) -> None:
        self.names[op.output] = f"p{op.ordinal.value}"

    def load(self, op: k.Load | k.LoadShared) -> None:
        memory, index = op.operands
        byte = " != 0" if k.dtype_of(op.output).kind == BOOL else ""
        self._define(op.output, f"{self.names[memory]}[{self.names[index]}]{byte}")

    load_shared = load

    def store(self, op: k.Store | k.StoreShared) -> None:
        value, memory, index = (self.names[operand] for operand in op.operands)
        self.line(f"{memory}[{index}] = {value};")

    store_shared = store

    def loop(self, op: k.For) -> None:
        index, *carried = op.body.block.arguments
        targets = []
        for value, start, result in zip(carried, op.start, op.outputs, strict=True):
            targets.append(self._new(value))
            self.names[result] = self.names[value]
            self.line(f"{self.type(value)} {self.names[value]} = {self.names[start]};")
        i = self._new(index)
        lower, upper, step = (self.names[value] for value in (op.lower, op.upper, op.step))
        self.line(f"for ({self.type(index)} {i} = {lower}; {i} < {upper}; {i} += {step}) {{")
        self._arm(op.body.block, targets)
        self.line("}")

    def repeat(self, op: k.While) -> None:
        condition, count = f"c{self.count}", f"n{self.count}"
        self.count += 1
        self.line(f"{self.type(op.start)} {condition} = {self.names[op.start]};")
        self.line(
            f"for ({self.type(op.most)} {count} = 0; {condition} && {count} < {self.names[op.most]}; ++{count}) {{"
        )
        self._arm(op.body.block, [condition])
        self.line("}")

    def branch(self, op: k.If) -> None:
        for result in op.outputs:
            self.line(f"{self.type(result)} {self._new(result)};")
        targets = [self.names[result] for result in op.outputs]
        self.line(f"if ({self.names[op.condition]}) {{")
        self._arm(op.yes.block, targets)
        if op.no.block.first is not op.no.block.last or targets:
            self.line("} else {")
            self._arm(op.no.block, targets)
        self.line("}")

    def _arm(self, block: Block, targets: Sequence[str]) -> None:
        self.depth += 1
        self.ops(block)
        self.assign(targets, k.yielded(block))
        self.depth -= 1

    def nothing(self, op: Operation) -> None:
        """The end of an entry or a region. The op that opened it closes it."""


def _stands_alone(value: Value, is_by_lanes: Callable[[k.Scalar], bool]) -> bool:
    """Whether a value is used once, in its own block, and once in the text of its user.

    Narrow integers always become variables, because C computes them as `int`. So do the operands of `?:`: Clang would
    make branches of longer expressions, and the loop over work items would not be vectorized.
    """
    dtype = k.dtype_of(value)
    if len(value.uses) != 1 or (dtype.kind in (SIGNED, UNSIGNED) and dtype.bits < 32):
        return False
    ((user, position),) = value.uses
    if isinstance(user, k.Lanes) or (isinstance(user, k.For) and value not in user.start) or isinstance(user, k.While):
        return False
    if isinstance(user, k.Scalar) and (is_by_lanes(user) or user.primitive.name == "select" and position > 0):
        return False
    return user.parent is value.parent_block


def _is_product(op: k.Scalar) -> bool:
    """Whether a compiler that contracts within expressions would merge the rounding of this op with that of a sum."""
    return op.primitive.name == "multiply" and k.dtype_of(op.output).kind == FLOAT
