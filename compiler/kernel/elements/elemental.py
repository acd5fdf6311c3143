"""The elemental emitter: one element of a tensor value as scalar code, through all ops between it and the inputs.

A rule computes one element of the result of an op. It is a generator: it yields `(value, index)` for each operand
element that it needs, is sent the scalar, and returns its own scalar. The driver below keeps waiting rules on an
explicit stack, so that the depth of a program does not matter. It remembers emitted elements by value and index, as far
as the open regions of the builder allow. That is all of fusion.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Operation, OpResult, Value
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.scalars.emitter import UnsupportedScalar

from .encodings import ENCODINGS, load
from .index import Index
from .indexing import INDEXING
from .loops import Scalars
from .reductions import HEROES
from .rules import RULES, Requests, Rule

#: op name -> its rule
ELEMENT_RULES: dict[str, Rule] = RULES | INDEXING | ENCODINGS | HEROES


@dataclass(slots=True)
class _Frame:
    """A waiting rule: its op, and the key under which its element is remembered."""

    op: Operation
    key: Hashable
    rule: Requests


class Elemental:
    """Emits elements into a builder. `inputs`: loaded value -> binding. `bound`: values whose elements the schedule
    provides.
    """

    def __init__(self, builder: KernelBuilder, inputs: Mapping[Value, Value]) -> None:
        self.builder = builder
        self.inputs = inputs
        self.bound: dict[Value, Callable[[Index], Value]] = {}

    def element(self, value: Value, at: Index) -> Value:
        """The element of a tensor value at an index. It is emitted unless it exists."""

        def only() -> Scalars:
            return [(yield value, at)]

        return self.run(only())[0]

    def run(self, wanted: Scalars) -> list[Value]:
        """Runs a generator, emits each element that it requests, and returns its result."""
        b, outer = self.builder, self.builder.loc
        frames: list[_Frame] = []
        answer: Value | None = None
        while True:
            # A generator is started by being sent None, and goes on by being sent what it asked for.
            try:
                value, at = self._go_on(frames, wanted, answer)
            except StopIteration as done:
                if not frames:
                    b.loc = outer
                    results: list[Value] = done.value
                    return results
                answer = done.value
                b.memo.set(frames.pop().key, done.value)
                b.loc = frames[-1].op.loc if frames else outer
                continue
            key = (value, at.key)
            answer = b.memo.get(key)
            if answer is None:
                answer = self._start(value, at, key, frames)

    def _go_on(self, frames: list[_Frame], wanted: Scalars, answer: Value | None) -> tuple[Value, Index]:
        if not frames:
            return wanted.send(answer)  # type: ignore[arg-type]
        frame = frames[-1]
        try:
            return frame.rule.send(answer)  # type: ignore[arg-type]
        except UnsupportedScalar as error:
            raise CompileError([Diagnostic(str(error), frame.op.loc, frame.op.name)]) from error

    def _start(self, value: Value, at: Index, key: Hashable, frames: list[_Frame]) -> Value | None:
        """Returns a bound or loaded element at once. Pushes the rule of any other value and returns None."""
        if value in self.bound:
            return self.bound[value](at)
        binding = self.inputs.get(value)
        if binding is not None:
            loaded = load(self.builder, binding, value, at)
            self.builder.memo.set(key, loaded)
            return loaded
        assert isinstance(value, OpResult), f"{value} has neither an element nor an op that makes it"
        op = value.owner
        frames.append(_Frame(op, key, ELEMENT_RULES[op.name](self.builder, op, value.index, at)))
        self.builder.loc = op.loc
        return None


@dataclass(slots=True)
class ElementalCode:
    """Code of a kernel that computes elements: the base of classes that emit it."""

    elemental: Elemental

    @property
    def builder(self) -> KernelBuilder:
        """The builder of the kernel."""
        return self.elemental.builder
