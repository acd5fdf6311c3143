"""Bodies of initializers and functions in C: blocks, branches, host numbers, and calls of recordings.

Values of the runtime are known while the code is written: a buffer is a place, a recording a function. Only numbers,
and buffers that a block takes, are variables. They are declared first, so that a `goto` skips no initialisation in C++.
A branch whose condition is known is followed, and blocks that nothing reaches are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.sequencer import ll_seq

from .memory import Place
from .sizes import size_text

if TYPE_CHECKING:
    from .program import ProgramText

#: predicate of an assertion -> operator of C
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_NUMBERS = {"i32": "int32_t ", "i64": "int64_t "}


def refused(op: Operation, why: str, style: str) -> CompileError:
    """The error for an op that a style has no C for."""
    return CompileError([Diagnostic(f"style {style}: {why}", op.loc, op.name)])


class Code:
    """The statements of an initializer or a function. `values`: value -> a `Place`, the text of a number, a number that
    is known, or an object of `ProgramText`; `sizes`: symbol -> the variable that holds it.
    """

    def __init__(self, program: ProgramText) -> None:
        self.program = program
        self.values: dict[Value, Any] = {}
        self.sizes: dict[str, str] = {}
        self.declared: list[str] = []
        self.lines: list[str] = []
        self._labels: dict[Block, str] = {}
        self._variables: dict[Value, str] = {}
        self._wanted: list[Block] = []

    def region(self, region: Region) -> None:
        """Writes the blocks that are reached, in order."""
        blocks = list(region.blocks)
        self._labels = {block: f"block_{number}" for number, block in enumerate(blocks)}
        self._wanted = blocks[:1]
        for block in blocks:
            if block in self._wanted:
                if block is not blocks[0]:
                    self.lines.append(f"{self._labels[block]}:;")
                for op in block:
                    self.op(op)
        self._drop_needless_jumps()

    def _drop_needless_jumps(self) -> None:
        """A jump to the next line, and labels without a jump, are left out."""
        kept: list[str] = []
        for number, line in enumerate(self.lines):
            following = self.lines[number + 1] if number + 1 < len(self.lines) else ""
            if not (line.strip().startswith("goto ") and following == f"{line.strip()[5:-1]}:;"):
                kept.append(line)
        jumps = "\n".join(kept)
        self.lines = [line for line in kept if not line.endswith(":;") or f"goto {line[:-2]};" in jumps]

    def line(self, text: str) -> None:
        """Appends a statement."""
        self.lines.append(f"  {text}")

    def number(self, value: Value) -> str:
        """A host number as an operand."""
        return str(self.values[value])

    def size(self, size: Size) -> str:
        return size_text(size, self.sizes)

    def place(self, value: Value) -> Place:
        """The place of a buffer."""
        found = self.values[value]
        assert isinstance(found, Place)
        return found

    def op(self, op: Operation) -> None:
        match op:
            case util.Constant():
                self.values[op.out] = op.value.value
            case util.DimValue():
                self.values[op.out] = f"(int32_t){self.size(op.size)}"
            case util.Add():
                x, y = self.number(op.lhs), self.number(op.rhs)
                self._set(op.out, f"(int32_t)((uint32_t){x} + (uint32_t){y})")
            case util.CompareLt():
                self._set(op.out, f"{self.number(op.lhs)} < {self.number(op.rhs)}")
            case util.Branch() | util.CondBranch() | util.Switch():
                self._branch(op)
            case util.Assert():
                self._assert(op)
            case ll_seq.Execute() | ll_seq.Enqueue():
                buffers = [self.place(value) for value in op.slots]
                self.line(self.program.call(self.values[op.recording], buffers, self.sizes))
            case ll_seq.Read():
                place = self.place(op.buffer)
                at = place.moved(op.offset.value, "").text
                self._set(op.output, f"read_{op.type.value}({at})")
            case ll_seq.CacheLoad():
                self.values[op.output] = 0
            case ll_seq.CacheSave() | util.Return():
                pass
            case ll_seq.Size():
                self.values[op.output] = self.size(op.value)
            case ll_seq.Storage():
                self.values[op.output] = self.values[op.view]
            case _:
                self.program.make(op, self)

    def _set(self, value: Value, text: str) -> None:
        """Assigns a variable for a number."""
        self.line(f"{self._variable(value)} = {text};")
        self.values[value] = self._variables[value]

    def _variable(self, value: Value) -> str:
        if value not in self._variables:
            self._variables[value] = name = f"n{len(self._variables)}"
            self.declared.append(f"  {self._type(value)}{name};")
            self.values[value] = self.program.place(name, ("any",)) if value.type == ll_seq.BUFFER else name
        return self._variables[value]

    def _type(self, value: Value) -> str:
        """The type of a variable, and what stands between it and its name."""
        if value.type == ll_seq.BUFFER:
            return self.program.buffer_type
        type = _NUMBERS.get(str(value.type))
        if type is None:
            assert value.parent_block is not None
            style = self.program.style
            raise refused(value.parent_block.end, f"a block takes a value of type {value.type}", style)
        return type

    # branches

    def _branch(self, op: util.BranchOp) -> None:
        edges = op.edges
        if isinstance(op, util.Branch):
            self._jump(edges[0], "")
            return
        given = self.values[op.operands[0]]
        if isinstance(given, int):
            last = len(edges) - 1
            taken = (0 if given else 1) if isinstance(op, util.CondBranch) else given if 0 <= given <= last else last
            self._jump(edges[taken], "")
            return
        for number, edge in enumerate(edges[:-1]):
            test = str(given) if isinstance(op, util.CondBranch) else f"{given} == {number}"
            self.line(f"if ({test}) {{")
            self._jump(edge, "  ")
            self.line("}")
        self._jump(edges[-1], "")

    def _jump(self, edge: util.Edge, indent: str) -> None:
        names = [self._variable(argument) for argument in edge.target.arguments]
        texts = [v.text if isinstance(v := self.values[value], Place) else str(v) for value in edge.values]
        pairs = [(name, text) for name, text in zip(names, texts, strict=True) if name != text]
        targets = {name for name, _ in pairs}
        for number, (_, text) in enumerate(pairs):
            if text in targets:
                value = edge.values[texts.index(text)]
                self.declared.append(f"  {self._type(value)}t{len(self.declared)};")
                saved = f"t{len(self.declared) - 1}"
                self.line(f"{indent}{saved} = {text};")
                pairs[number] = (pairs[number][0], saved)
        for name, text in pairs:
            self.line(f"{indent}{name} = {text};")
        self.line(f"{indent}goto {self._labels[edge.target]};")
        if edge.target not in self._wanted:
            self._wanted.append(edge.target)

    def _assert(self, op: util.Assert) -> None:
        lhs, rhs = self.size(op.lhs.sizes[0]), self.size(op.rhs.sizes[0])
        message = op.message.value
        for number, size in enumerate(op.numbers.sizes):
            message = message.replace(f"{{{number}}}", str(size))
        code = self.program.interface.error_of(f"condition not met: {message}")
        self.line(f"if (!({lhs} {_COMPARE[op.predicate.value]} {rhs}))")
        self.line(f"  return {code};")


def indented(lines: Sequence[str], by: str = "  ") -> list[str]:
    """Lines with a deeper indentation."""
    return [by + line for line in lines]
