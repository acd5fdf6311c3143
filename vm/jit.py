"""Translates a function that is called often into one Python function, without a frame or a dispatch per instruction.

Only straight-line code is translated: constants, loads and stores of globals, calls of native functions, one return.
`Code.count_run` counts the runs and asks for the translation; the interpreter runs every other function, and every
first run. A translation means what the ops in `vm/ops/` mean:

- A register becomes a Python variable. A constant is written where it is used. A register that is known to hold a
  constant or a copy stays known until an instruction writes it, since there are no branches.
- `call.cached` takes cached results. If they are not cached, `Uncached` is raised and the interpreter runs the function
  from its start. So every instruction before a `call.cached` may run twice (`NativeFunction.pure`).
- A native function that leaves state for a later call to find (not `NativeFunction.alone`) is not translated.
- Refs passed to native functions are compared with their classes. `ArgumentCheck` (`ops/imports.py`) looks at the rest.
- The compiled text holds only names made here and integers from verified operands.
- A line holds one instruction, so the line number in a traceback gives the pc.
"""

from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import Any

from orchestrion.schema.encoding import Decoded
from orchestrion.schema.isa import MOVE_BIT, Effect
from orchestrion.schema.signature import NUMBER_TYPES

from .native import NativeFunction, class_of
from .operands import constant
from .ops.imports import ArgumentCheck

#: (globals of the context, the call, arguments) -> results
Run = Callable[[list[Any], Any, Sequence[Any]], tuple[Any, ...]]

_FIRST_LINE = 3
#: the largest function that is translated, in instructions and in bytes of code: no limit of a context ends Python's
#: compiler, which is slow
_MAX_INSTRUCTIONS, _MAX_CODE_BYTES = 2000, 32_000


class Translation:
    """A translated function: `run`, and the pc of the instruction in each line of its text."""

    __slots__ = ("_code", "_pcs", "run")

    def __init__(self, run: Run, code: CodeType, pcs: tuple[int, ...]) -> None:
        self.run = run
        self._code = code
        self._pcs = pcs

    def pc(self, traceback: TracebackType | None) -> int:
        """The pc of the instruction that failed, from the traceback of its error."""
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
    """Translate a function. None if it is not straight-line code, is too long, or has an instruction without a text.

    `zeros`: the initial value of each register. `imports`: the function of each import.
    """
    if len(decoded) > _MAX_INSTRUCTIONS or decoded[-1].pc > _MAX_CODE_BYTES:
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
        self.repeatable = True  #: whether the instructions translated so far may run twice

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
        exec(compile(text, "<jit>", "exec"), self.names)
        run = self.names["run"]
        return Translation(run, run.__code__, tuple(instruction.pc for instruction in decoded))

    def line(self, decoded: Decoded) -> str | None:
        """The text of one instruction; None if it cannot be translated."""
        operands: Any = decoded.operands
        match decoded.row.effect:
            case Effect.CONSTANT:
                self.known[operands[-1]] = self.constant(constant(decoded))
                return "pass"
            case Effect.NULL:
                return f"{self.written(operands[0])} = None"  # drops the reference in the register
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
                return self.cached_call(*operands)
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
            self.names[f"check{place}"] = ArgumentCheck(function, types)
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

    def cached_call(self, function: int, args: tuple[int, ...], results: tuple[int, ...]) -> str | None:
        if not self.repeatable:
            return None
        arguments = "".join(f"{self.read(register)}, " for register in args)
        given = "".join(f"{self.written(register)}, " for register in results)
        call = f"call.context.memo_cache.get({int(function)}, ({arguments}), call)"
        return f"{given}= {call}" if results else call

    def checks(self, place: int, types: Sequence[str], values: Sequence[str]) -> str:
        """A condition that is true if an argument is null or of another class, and so needs the slow check."""
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
