"""Straight-line functions as one Python function each: no frame, no dispatch between instructions.

A sequencer's run function is mostly of this kind: constants, loads of globals, calls of native functions, one return.
Such a function is translated when it is called again and again (`Code.straight`); every other one stays with the
interpreter, and a first call always does. The meaning is that of the ops it replaces:

- Registers become Python variables, and constants are written where they are used. What is known to be the same
  register holds until something writes it: there are no branches.
- What `call.cached` finds kept is taken. What is not kept only the interpreter makes, from the function's start again,
  so in front of a `call.cached` stands nothing that may not run twice (`NativeFunction.pure`).
- What a native function leaves for a later one to find (`NativeFunction.alone`), only the interpreter looks for.
- Refs given to native functions are compared with their classes, as `ops/imports.py` does, by the same slow half.
- The text that is compiled holds names made here and integers from verified operands, nothing else of the module.
- A line holds one instruction, so that the line of a traceback gives the pc.
"""

from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import Any

from orchestrion.schema.encoding import Decoded
from orchestrion.schema.isa import MOVE_BIT, Effect
from orchestrion.schema.signature import NUMBER_TYPES

from .native import NativeFunction, class_of
from .operands import constant
from .ops.imports import Check

#: (globals of the context, the call, arguments) -> results
Straight = Callable[[list[Any], Any, Sequence[Any]], tuple[Any, ...]]

_FIRST_LINE = 3
#: instructions, and bytes of code, of a function worth translating: Python's compiler takes its time, and no limit of a
#: context ends it
_LONGEST, _MOST_BYTES = 2000, 32_000


class Translation:
    """A translated function, and the pc behind each line of its text."""

    __slots__ = ("_code", "_pcs", "run")

    def __init__(self, run: Straight, code: CodeType, pcs: tuple[int, ...]) -> None:
        self.run = run
        self._code = code
        self._pcs = pcs

    def pc(self, traceback: TracebackType | None) -> int:
        """The instruction that failed, from the traceback of its error."""
        while traceback is not None:
            if traceback.tb_frame.f_code is self._code:
                return self._pcs[traceback.tb_lineno - _FIRST_LINE]
            traceback = traceback.tb_next
        return self._pcs[0]


def translate(
    decoded: Sequence[Decoded],
    parameters: Sequence[int],
    zeros: Sequence[Any],
    imports: Sequence[NativeFunction | None],
) -> Translation | None:
    """The translation of a function, or None when it is not straight, long, or uses an op that has no text here."""
    if len(decoded) > _LONGEST or decoded[-1].pc > _MOST_BYTES:
        return None
    return _Translator(parameters, zeros, imports).translate(decoded)


class _Translator:
    def __init__(
        self, parameters: Sequence[int], zeros: Sequence[Any], imports: Sequence[NativeFunction | None]
    ) -> None:
        self.parameters = parameters
        self.imports = imports
        self.known = {register: repr(zero) for register, zero in enumerate(zeros) if register not in parameters}
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"type": type}
        self.repeatable = True  #: what was translated so far may run twice

    def translate(self, decoded: Sequence[Decoded]) -> Translation | None:
        for instruction in decoded:
            line = self.line(instruction)
            if line is None:
                return None
            self.lines.append(line)
        if decoded[-1].row.effect is not Effect.RETURN:
            return None
        unpacked = "".join(f"r{register}, " for register in self.parameters)
        text = "\n ".join(
            ["def run(globals, call, arguments):", f"{unpacked}= arguments" if unpacked else "pass", *self.lines]
        )
        exec(compile(text, "<straight>", "exec"), self.names)
        run = self.names["run"]
        return Translation(run, run.__code__, tuple(instruction.pc for instruction in decoded))

    def line(self, decoded: Decoded) -> str | None:
        """The text of one instruction; None when there is none."""
        operands: Any = decoded.operands
        match decoded.row.effect:
            case Effect.CONSTANT:
                self.known[operands[-1]] = self.constant(constant(decoded))
                return "pass"
            case Effect.NULL:
                return f"{self.written(operands[0])} = None"  # lets go of what the register held
            case Effect.LOAD:
                return f"{self.written(operands[1])} = globals[{int(operands[0])}]"
            case Effect.STORE if not operands[0] & MOVE_BIT:
                self.repeatable = False
                return f"globals[{int(operands[1])}] = {self.read(operands[0])}"
            case Effect.COPY if not operands[0] & MOVE_BIT:
                source = self.read(operands[0])
                return f"{self.written(operands[1])} = {source}"
            case Effect.NATIVE:
                return self.native(*operands)
            case Effect.CACHED:
                return self.kept(*operands)
            case Effect.RETURN:
                return f"return ({''.join(f'{self.read(register & ~MOVE_BIT)}, ' for register in operands[0])})"
            case _:
                return None

    def native(self, ordinal: int, args: tuple[int, ...], results: tuple[int, ...]) -> str | None:
        function = self.imports[ordinal]
        if function is None or len(results) > 1 or not function.alone:
            return None
        types = function.signature.expand(len(args))
        assert types is not None
        self.repeatable = self.repeatable and function.pure
        values = [self.read(register & ~MOVE_BIT) for register in args]
        place = len(self.lines)
        self.names[f"f{place}"] = function.function
        checks = self.checks(place, types, values)
        if checks:
            self.names[f"check{place}"] = Check(function, types)
            checks = f"{checks} and check{place}(({', '.join(values)},)); "
        call = f"f{place}(call{''.join(f', {value}' for value in values)})"
        if function.inline is not None:
            condition, value = function.inline(*values)
            call = f"{value} if {condition} else {call}"
        moved = [register & ~MOVE_BIT for register in args if register & MOVE_BIT]
        for register in moved:
            self.known[register] = "None"
        dropped = "".join(f"; r{register} = None" for register in moved if register not in results)
        return checks + (f"{self.written(results[0])} = {call}" if results else call) + dropped

    def kept(self, function: int, args: tuple[int, ...], results: tuple[int, ...]) -> str | None:
        if not self.repeatable:
            return None
        arguments = "".join(f"{self.read(register)}, " for register in args)
        given = "".join(f"{self.written(register)}, " for register in results)
        call = f"call.context.kept.get({int(function)}, ({arguments}), call)"
        return f"{given}= {call}" if results else call

    def checks(self, place: int, types: Sequence[str], values: Sequence[str]) -> str:
        """True when an argument needs the slow half: it is null, or of another class."""
        tests = []
        for position, (wanted, value) in enumerate(zip(types, values, strict=True)):
            if wanted == "any":
                tests.append(f"{value} is None")
            elif wanted not in NUMBER_TYPES:
                self.names[f"class{place}_{position}"] = class_of(wanted)
                tests.append(f"type({value}) is not class{place}_{position}")
        return f"({' or '.join(tests)})" if tests else ""

    def constant(self, value: int | float) -> str:
        if isinstance(value, int):
            return repr(value)
        name = f"number{len(self.names)}"
        self.names[name] = value
        return name

    def read(self, register: int) -> str:
        return self.known.get(register, f"r{register}")

    def written(self, register: int) -> str:
        self.known.pop(register, None)
        return f"r{register}"
