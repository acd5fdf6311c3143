"""Renders a function: an initializer, a setup, or the body of an export.

Values that are used once, in the block that makes them, are written where they are used. All others get names. The
functions of `hal` are rendered by `calls.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from orchestrion.compiler.errors import CompileError
from orchestrion.schema.isa import Effect

from .code import TYPES, Code, Export, Tensor
from .integers import ATOM, CHOICE, COMPARISON, INTEGERS, NEGATION, OPPOSITES, PRODUCT
from .ssa import Constant, Function, Op, Parameter, Phi, Result, Value
from .structure import Assign, End, If, Jump, Loop, Ops, Statement, structure
from .text import WIDTH, Group, Names, Node, Strings, layout, plain, quoted, sequence

_PLACE: Final = re.compile(r"\{(\d{1,4})\}", re.ASCII)
#: an imported function that reduces its numbers to 32 bits
PARAMETERS: Final = "hal.recording.parameters"
#: division towards 0 -> the helper that does it
_DIVISIONS: Final = {"div_s": "quotient", "rem_s": "remainder"}
#: characters of an expression that is written where it is used
_INLINED: Final = 40
#: characters of one string literal of a message
_LITERAL: Final = 88
#: columns that statements are indented by, and loops inside of each other: CPython parses few more
_MOST_ROOM: Final = 360
_MOST_LOOPS: Final = 20


class Expression(NamedTuple):
    """Python text and the precedence of its outermost operator."""

    text: str
    level: int = ATOM

    def inside(self, level: int) -> str:
        """The text as an operand of an operator with this precedence."""
        return self.text if self.level < level or self.level == ATOM else f"({self.text})"


class Calls(NamedTuple):
    """How instructions and imported functions are rendered: `values` give a value, `statements` everything else."""

    values: Mapping[str, Callable[[Body, Op], Node]]
    statements: Mapping[str, Callable[[Body, Op], None]]


@dataclass
class Body:
    """The text of `function`. `export`: the one whose body it is. `lines`: of the statements so far, at `room` columns.

    Raises CompileError for what HAL code cannot say.
    """

    code: Code
    function: Function
    calls: Calls
    export: Export | None = None

    def __post_init__(self) -> None:
        self.names = Names()
        self.named: dict[Value, str] = {}
        self.lines: list[str] = []
        self.room = 8
        self.words: dict[Value, Sequence[Value]] = {}  #: parameters of the next dispatch of a recording
        self.temporaries: list[str] = []  #: of an initializer, to release at its end
        self.helpers: set[str] = set()
        self.uses_call = False
        self._loops = 0  #: loops around the next statement
        self._numbers = iter(("i", "j", "k"))

    # values

    def expression(self, value: Value) -> Expression:
        """A value as Python text."""
        if value in self.named:
            return Expression(self.named[value])
        if isinstance(value, Constant):
            number = value.number
            return Expression(str(number), PRODUCT if number is not None and number < 0 else ATOM)
        if not isinstance(value, Result):
            raise self.refusal("uses a value before it is made")
        return self.made(value.op)

    def text(self, value: Value, level: int = CHOICE + 1) -> str:
        """A value as an operand of an operator with this precedence; on its own without one."""
        return self.expression(value).inside(level)

    def made(self, op: Op) -> Expression:
        """The result of an op as Python text."""
        if op.row.name in INTEGERS:
            return self._integer(op)
        if op.row.effect is Effect.LOAD:
            return Expression(f"self.{self.code.globals[op.operands[0]]}")
        if op.name in self.calls.values:
            return Expression(str(self.calls.values[op.name](self, op)))
        raise self._unknown(op)

    def _integer(self, op: Op) -> Expression:
        row, values = INTEGERS[op.row.name], [*op.values()]
        if row.operator == "if":
            return self._select(*values)
        if row.operator == "not":
            return Expression(f"not {self.text(values[0], NEGATION)}", NEGATION)
        if row.operator == "":
            return self._wrapped(row.wrap, values[0])
        a, b = values
        if (name := _DIVISIONS.get(op.row.name.partition(".")[2])) is not None:
            self.helpers.add(name)
            return Expression(f"{name}({self.text(a)}, {self.text(b)})")
        if row.operator == "*" and isinstance(b, Constant) and b.number == -1:
            return Expression(f"-{self.text(a, PRODUCT)}", PRODUCT)
        found = Expression(f"{self.text(a, row.level + 1)} {row.operator} {self.text(b, row.level)}", row.level)
        if not row.wrap or self._is_counted(op):
            return found
        self.helpers.add("wrapped")
        return Expression(f"wrapped({found.text}, {row.wrap})")

    def _wrapped(self, bits: int, value: Value) -> Expression:
        if not bits:
            return self.expression(value)
        self.helpers.add("wrapped")
        return Expression(f"wrapped({self.text(value)}, {bits})")

    def _select(self, condition: Value, a: Value, b: Value) -> Expression:
        if isinstance(condition, Result) and condition.op.row.name in ("i64.gt_s", "i64.lt_s"):
            if [*condition.op.values()] == [a, b]:
                name = "max" if condition.op.row.name == "i64.gt_s" else "min"
                return Expression(f"{name}({self.text(a)}, {self.text(b)})")
        test = self.text(condition, CHOICE)
        return Expression(f"{self.text(a, CHOICE)} if {test} else {self.text(b, CHOICE)}", CHOICE)

    def _is_counted(self, op: Op) -> bool:
        """Whether an i32 is `i + n` inside of a loop that runs while `i < most`, so that it does not wrap."""
        phi, step = (*op.values(), None)[:2]
        if op.row.name != "i32.add" or not isinstance(step, Constant) or not isinstance(phi, Phi):
            return False
        for block in self.function.blocks:
            end = block.ends
            if end is None or end.row.name != "br_if" or not isinstance(test := end.operands[0], Result):
                continue
            if test.op.row.name != "i32.lt_s" or not isinstance(most := test.op.operands[1], Constant):
                continue
            number, most_number = step.number or 0, most.number or 0
            fits = test.op.operands[0] is phi and 0 <= number and most_number - 1 + number < 1 << 31
            if fits and phi.block is block and op.block is not block:
                return True
        return False

    # statements

    def emit(self, prefix: str, node: Node = "", suffix: str = "") -> None:
        """Append a statement."""
        self.lines += [" " * (self.room - 8) + line for line in layout(prefix, node, suffix, self.room)]

    def render(self, statements: Sequence[Statement] | None = None) -> list[str]:
        """The lines of the function's statements."""
        for statement in structure(self.function) if statements is None else statements:
            match statement:
                case Ops(ops):
                    for op in ops:
                        self._op(op)
                case Assign(phis, values):
                    self._assign(phis, values)
                case If():
                    self._if(statement, "if")
                case Loop(body):
                    self._loop(body)
                case Jump(text):
                    self.emit(text)
                case End(op):
                    self._end(op)
        return self.lines

    def _loop(self, body: Sequence[Statement]) -> None:
        """A loop. If it begins with `if ...: break`, that is its condition."""
        if self._loops == _MOST_LOOPS:
            raise self.refusal(f"has more than {_MOST_LOOPS} loops inside of each other, which Python does not run")
        self._phis(body)
        self._loops += 1
        self._loop_text(body)
        self._loops -= 1

    def _loop_text(self, body: Sequence[Statement]) -> None:
        first = next((place for place, statement in enumerate(body) if not self._is_silent(statement)), len(body))
        test = body[first] if first < len(body) else None
        if isinstance(test, If) and not test.other and _is_break(test.then) and test.index in (None, 0):
            self.emit(f"while {self.condition(test.condition, 0 if test.index is None else None)}:")
            self._nested(body[first + 1 :])
            return
        self.emit("while True:")
        self._nested(body)

    def _is_silent(self, statement: Statement) -> bool:
        """Whether a statement is ops that are written where they are used."""
        return isinstance(statement, Ops) and all(
            op.row.name in INTEGERS and self._is_inlined(op, op.results[0]) for op in statement.ops
        )

    def _nested(self, statements: Sequence[Statement]) -> None:
        self.room += 4
        if self.room > _MOST_ROOM:
            raise self.refusal("has branches that are nested too deep for Python")
        before = len(self.lines)
        self.render(statements)
        if len(self.lines) == before:
            self.emit("pass")
        self.room -= 4

    def _if(self, statement: If, keyword: str) -> None:
        then, other = statement.then, statement.other
        index = statement.index
        if not _has_text(then) and other and index is None:
            then, other, index = other, [], 0
        self._phis([statement])
        self.emit(f"{keyword} {self.condition(statement.condition, index)}:")
        self._nested(then)
        if len(other) == 1 and isinstance(other[0], If):
            self._if(other[0], "elif")
        elif _has_text(other):
            self.emit("else:")
            self._nested(other)

    def condition(self, value: Value, index: int | None) -> str:
        """The text of `value != 0`, or of `value == index`."""
        if index is None:
            return self.text(value)
        is_test = isinstance(value, Result) and value not in self.named and value.op.row.name in INTEGERS
        if is_test and index == 0 and INTEGERS[value.op.row.name].operator in OPPOSITES:  # type: ignore[attr-defined]
            op: Op = value.op  # type: ignore[attr-defined]
            a, b = op.values()
            return f"{self.text(a, COMPARISON)} {OPPOSITES[INTEGERS[op.row.name].operator]} {self.text(b, COMPARISON)}"
        if index == 0:
            return f"not {self.text(value, NEGATION)}"
        return f"{self.text(value, COMPARISON)} == {index}"

    def _phis(self, statements: Iterable[Statement]) -> None:
        """Name the phis that statements assign."""
        for statement in statements:
            match statement:
                case Assign(phis, values):
                    for phi, value in zip(phis, values, strict=True):
                        self._name_phi(phi, value)
                case If(_, _, then, other):
                    self._phis(then)
                    self._phis(other)
                case Loop(body):
                    self._phis(body)

    def _name_phi(self, phi: Phi, value: Value) -> None:
        if phi not in self.named:
            hint = self.named.get(value, "buffer").rpartition(".")[2] if phi.bank == "ref" else next(self._numbers, "n")
            self.named[phi] = self.names.unique(hint)

    def _assign(self, phis: Sequence[Phi], values: Sequence[Value]) -> None:
        self._phis([Assign([*phis], [*values])])
        texts = [self.text(value) for value in values]
        target = ", ".join(self.named[phi] for phi in phis)
        if len(phis) == 1 and texts[0].startswith(f"{target} + ") and texts[0].count(" ") == 2:
            self.emit(f"{target} += {texts[0].rpartition(' ')[2]}")
            return
        self._values(f"{target} =", values)

    def _op(self, op: Op) -> None:
        if op.name in self.calls.statements:
            self.calls.statements[op.name](self, op)
            return
        if op.row.effect is Effect.STORE:
            self._store(op)
            return
        if len(op.results) != 1:
            raise self._unknown(op)
        (result,) = op.results
        if self._is_inlined(op, result):
            return
        text = self.made(op)
        self.name(result, self._hint(op))
        self.emit(f"{self.named[result]} = ", text.text)

    def name(self, value: Value, hint: str) -> str:
        """Give a value a name of its own."""
        return self.named.setdefault(value, self.names.unique(hint))

    def _is_inlined(self, op: Op, result: Result) -> bool:
        """Whether a value is written where it is used, since nothing changes it in between."""
        if op.row.effect is Effect.LOAD:
            return not any(
                other.name.startswith("global.store") and other.operands[1] == op.operands[0]
                for other in self.function.ops()
            )
        if op.name == "hal.view.buffer":
            return True
        uses = self.function.uses.get(result, [])
        if op.name == "i32.wrap_i64" and all(use is not None and use.name == PARAMETERS for _, use in uses):
            return True
        if op.name == "hal.read":
            last = op.block.ops[-2:] if op.block.ends is not None else op.block.ops[-1:]
            return len(uses) == 1 and uses[0][1] is op.block.ends and op in last
        if op.name == "hal.view.dim":
            return len(uses) == 1 and self.export is None
        return len(uses) == 1 and uses[0][0] is op.block and len(self.made(op).text) <= _INLINED

    def _hint(self, op: Op) -> str:
        if op.name == "hal.view.dim" and self.export is not None:
            tensor, axis = self.dimension(op)
            if tensor is not None:
                size = re.match(r"[A-Za-z_]\w*", str(tensor.shape[axis]), re.ASCII)
                return size[0] if size else f"{tensor.name}_size"
        row = INTEGERS.get(op.row.name)
        if row is not None and row.level == COMPARISON:
            return "fits"
        return "size" if op.results[0].bank == "i64" else "number"

    def dimension(self, op: Op) -> tuple[Tensor | None, int]:
        """The tensor whose size `hal.view.dim` reads, None if it is not known, and the axis."""
        view, axis = op.arguments()
        while isinstance(view, Result) and view.op.name == "hal.view.destination":
            view = view.op.arguments()[0]
        tensors = [*self.export.arguments, *self.export.results] if self.export is not None else []
        tensor = tensors[view.place] if isinstance(view, Parameter) and view.place < len(tensors) else None
        number = axis.number if isinstance(axis, Constant) and axis.number is not None else -1
        if number < 0 or tensor is not None and number >= len(tensor.shape):
            raise self.refusal(f"reads size {number} of a view that has no such size")
        return tensor, number

    def size_name(self, value: Value) -> str:
        """A name for a size that is passed to a setup."""
        made = isinstance(value, Result) and value.op.name == "hal.view.dim"
        return self._hint(value.op) if made else "size"  # type: ignore[attr-defined]

    def _store(self, op: Op) -> None:
        value, attribute = op.operands[0], f"self.{self.code.globals[op.operands[1]]}"
        if self.named.get(value) == attribute:
            return
        text = self.text(value)
        if value.bank == "ref" and self.export is None:
            self.emit(f"{attribute} = ", Group("self._own", [text]))
            self.temporaries = [name for name in self.temporaries if name != text]
        else:
            self.emit(f"{attribute} = {text}")

    def attribute(self, result: Result) -> str | None:
        """The attribute that a new object is stored into where it is made; None for a temporary."""
        stores = [
            op for _, op in self.function.uses.get(result, []) if op is not None and op.row.effect is Effect.STORE
        ]
        if len(stores) != 1 or stores[0].block is not result.block:
            return None
        ordinal = stores[0].operands[1]
        return self.code.globals[ordinal] if len(self.code.global_values[ordinal]) == 1 else None

    def require(self, op: Op) -> None:
        """`require`: raise the caller's error unless a condition holds."""
        condition, values, message = op.operands
        parts = self._message(message, values)
        self.emit(f"if {self.condition(condition, 0)}:")
        self.room += 4
        self.emit("", Group("raise InvalidArgument", [Strings(parts) if len(parts) > 1 else parts[0]]))
        self.room -= 4

    def _message(self, message: str, values: Sequence[Value]) -> list[str]:
        """String literals for a message, in which `{n}` stands for values[n]. They are split behind blanks."""
        found, piece, is_filled = [], "", False
        for word in re.findall(r"\S+\s*|\s+", message):
            text, filled = self._word(word, values)
            if piece and len(piece) + len(text) > _LITERAL:
                found.append((piece, is_filled))
                piece, is_filled = "", False
            piece, is_filled = piece + text, is_filled or filled
        return [
            f"f{quoted(text)}" if filled else quoted(_single(text)) for text, filled in [*found, (piece, is_filled)]
        ]

    def _word(self, word: str, values: Sequence[Value]) -> tuple[str, bool]:
        """A word of a message as the text of an f-string, and whether it has a value."""
        literal, *parts = _PLACE.split(word)
        text, filled = literal.replace("{", "{{").replace("}", "}}"), False
        for place, literal in zip(parts[::2], parts[1::2], strict=True):
            value = values[int(place)] if int(place) < len(values) else None
            filled = filled or value is not None and not isinstance(value, Constant)
            shown = f"{{{{{place}}}}}" if value is None else self.text(value)
            text += shown if value is None or isinstance(value, Constant) else f"{{{shown}}}"
            text += literal.replace("{", "{{").replace("}", "}}")
        return text, filled

    def _end(self, op: Op) -> None:
        if op.name == "fail":
            self.helpers.add("ProgramFailed")
            self.emit("", Group("raise ProgramFailed", [quoted(op.operands[0])]))
            return
        values = [*op.values()]
        if self.export is not None:
            self._values("return", values)
        elif self.function in self.code.setups:
            self._values("return", [values[place] for place in self.code.kept(self.function)])
        elif op.block is not self.function.blocks[-1]:
            self.emit("return")

    def _values(self, prefix: str, values: Sequence[Value]) -> None:
        """Append a statement that ends with values: with brackets if it takes several lines."""
        texts = list(map(self.text, values))
        flat = f"{prefix} {', '.join(texts)}".rstrip()
        if len(flat) + self.room > WIDTH:
            self.emit(f"{prefix} ", sequence(texts))
        else:
            self.emit(flat)

    def blank(self) -> None:
        """Append an empty line, unless there is one or nothing before it."""
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def comment(self, text: str) -> None:
        """Append a comment of one line."""
        if text:
            self.emit(f"# {plain(text, 110 - self.room)}")

    def origin(self, op: Op) -> str:
        """Where an instruction comes from in the source; empty if the module does not say."""
        found = self.code.module.location(self.code.ordinal, self.function.ordinal, op.pc)
        return found or ""

    def refusal(self, what: str) -> CompileError:
        return CompileError(f"program {self.code.name}, function {self.function.name}: {what}")

    def _unknown(self, op: Op) -> CompileError:
        kind = "calls" if op.callee else "has instruction"
        return self.refusal(f"{kind} {op.name}, which HAL code cannot do")


def _is_break(statements: Sequence[Statement]) -> bool:
    found = [statement for statement in statements if _has_text([statement])]
    return len(found) == 1 and isinstance(found[0], Jump) and found[0].text == "break"


def _has_text(statements: Sequence[Statement]) -> bool:
    return any(not isinstance(statement, Ops) or statement.ops for statement in statements)


def _single(text: str) -> str:
    """The text of an f-string without values as a plain string."""
    return text.replace("{{", "{").replace("}}", "}")


def type_of(name: str) -> str:
    """The Python type of a VM type. Raises CompileError for one that generated code does not have."""
    if name not in TYPES:
        raise CompileError(f"a value of type {name}, which HAL code cannot hold")
    return TYPES[name]
