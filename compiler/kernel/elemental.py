"""The elemental emitter: one element of a tensor value as scalar code, whatever stands between it and the inputs.

A rule says how one element of an op's result is computed. It is a generator: it yields `(value, index)` for each
operand element it needs, is sent the scalar, and returns its own. The driver below keeps waiting rules on a stack of
its own, so that the depth of a program does not matter, and remembers what it has made, by value and index, as far as
the builder's open regions allow. Fusion is nothing else.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Operation, OpResult, Value

from .builder import KernelBuilder
from .emitter import UnsupportedScalar
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
    """A rule under way: the op whose element it computes, and under which key that element is remembered."""

    op: Operation
    key: Hashable
    rule: Requests


class Elemental:
    """Emits elements into a builder. `inputs` says which binding holds a value that is loaded; `bound`: values whose
    elements a schedule has at hand.
    """

    def __init__(self, builder: KernelBuilder, inputs: Mapping[Value, Value]) -> None:
        self.builder = builder
        self.inputs = inputs
        self.bound: dict[Value, Callable[[Index], Value]] = {}

    def element(self, value: Value, at: Index) -> Value:
        """The element of a tensor value at an index, emitted unless it was already."""

        def only() -> Scalars:
            return [(yield value, at)]

        return self.run(only())[0]

    def run(self, wanted: Scalars) -> list[Value]:
        """Emits what the generator asks for and what it makes of that; gives what it returns."""
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
        """Takes what is at hand and loads an input at once; pushes the rule of anything else."""
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
