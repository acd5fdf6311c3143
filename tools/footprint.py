"""Flash and RAM of a program in C: what each kernel contributes, and the check against the limits of a machine.

Flash holds constants and code. Constants are counted for the first kernel that reads them. Code is known if a compiler
is given: the sizes of its symbols, as `nm` lists them. RAM holds the memory of a context: a kernel contributes what it
writes there. Values share memory, so these rows add up to more than the memory. Inputs, outputs, the stack and the code
of the app are not counted.
"""

import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrion.compiler.codegen.c.memory import MEMORY, WEIGHTS, Range
from orchestrion.compiler.codegen.c.program import ProgramText
from orchestrion.compiler.codegen.styles import Files
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import StringAttr

from .cli import UsageError

#: flags with which the code of a program is measured
FLAGS: Final = ("-std=c99", "-ffp-contract=off", "-c")
_SYMBOL: Final = re.compile(r"[0-9a-fA-F]+ ([0-9a-fA-F]+) ([tTrR]) (\S+)")
_COUNT: Final = re.compile(r"^(\w+): (\d+) instructions$", re.MULTILINE)
#: name, constants, code, memory, instructions, ops
Row = tuple[str, int | str, int | str | None, int | str, int | str, str]
#: contributors that an error names
_NAMED: Final = 3


@dataclass(slots=True)
class Layer:
    """What a kernel contributes, in bytes. `source`: the first op that it computes, and how many more. `instructions`:
    per call, empty if they were not counted.
    """

    kernel: str
    source: str
    constants: int = 0
    code: int = 0
    memory: int = 0
    instructions: int | str = ""

    @property
    def flash(self) -> int:
        return self.constants + self.code


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of a program. `code`: those of all functions, None if no compiler is given."""

    layers: list[Layer]
    constants: int
    memory: int
    code: int | None

    @property
    def flash(self) -> int:
        return self.constants + (self.code or 0)

    def text(self, flash: int, ram: int) -> str:
        """The report: a table of kernels, the sums, and the limits, of which 0 is none."""
        known, counts = self.code is not None, [one.instructions for one in self.layers]
        rows: list[Row] = [("kernel", "constants", "code", "memory", "instructions", "ops")]
        for one in self.layers:
            rows.append(
                (one.kernel, one.constants, one.code if known else "", one.memory, one.instructions, one.source)
            )
        rows.append(("alignment", self.constants - sum(one.constants for one in self.layers), "", "", "", ""))
        if self.code is not None:
            rows.append(("other functions", "", self.code - sum(one.code for one in self.layers), "", "", ""))
        total = "" if "" in counts else sum(map(int, counts))
        rows.append(("program", self.constants, self.code if known else "", self.memory, total, ""))
        widths = [max(len(str(row[at])) for row in rows) for at in range(5)]
        lines = [
            f"{row[0]:<{widths[0]}}  {'  '.join(f'{row[at]!s:>{widths[at]}}' for at in range(1, 5))}  {row[5]}".rstrip()
            for row in rows
        ]
        end = f"flash {self.flash} bytes{_of(flash)}, RAM {self.memory} bytes{_of(ram)}"
        return "\n".join([*lines, "", end]) + "\n"

    def check(self, name: str, flash: int, ram: int) -> None:
        """Raises CompileError if the program needs more than a limit, with the largest contributors."""
        wrong = []
        for kind, needed, limit, of in (("flash", self.flash, flash, "flash"), ("RAM", self.memory, ram, "memory")):
            if limit and needed > limit:
                rows = sorted(self.layers, key=lambda one: -int(getattr(one, of)))[:_NAMED]
                most = ", ".join(f"{one.kernel} {getattr(one, of)} ({one.source})" for one in rows)
                wrong.append(f"{name}: needs {needed} bytes of {kind}, the machine has {limit}; most by {most}")
        if wrong:
            raise CompileError("; ".join(wrong))


def _of(limit: int) -> str:
    return f" of {limit}" if limit else ""


def counts_of(text: str) -> dict[str, int]:
    """Kernel -> instructions, from lines `KERNEL: N instructions`."""
    return {kernel: int(count) for kernel, count in _COUNT.findall(text)}


def footprint_of(program: ProgramText, files: Files, compiler: str | None, counts: Mapping[str, int]) -> Footprint:
    """The footprint of a program and its files. Raises UsageError if the compiler fails."""
    sizes = {} if compiler is None else _symbols(files, program.name, compiler)
    layers: dict[str, Layer] = {}
    counted: set[int] = set()
    for recording in program.recordings:
        for name, ranges in recording.recorded.dispatches:
            made = Layer(name, _source(program, name), code=sizes.get(name, 0), instructions=counts.get(name, ""))
            layer = layers.setdefault(name, made)
            for one in ranges:
                _count(layer, one, program, counted)
    memory = program.allocations.size + program.scratch
    code = None if compiler is None else sum(sizes.values()) - sizes.get("weights_of_program", 0)
    return Footprint(list(layers.values()), program.weights.size, memory, code)


def _count(layer: Layer, one: Range, program: ProgramText, counted: set[int]) -> None:
    start, length = one.place.known_start, one.length
    if start is None or length is None:
        return
    if one.place.base == MEMORY and one.written:
        layer.memory += length
    elif one.place.base == WEIGHTS:
        inside = {at for at, _ in program.weights.values if start <= at < start + length} - counted
        layer.constants += sum(value.nbytes for at, value in program.weights.values if at in inside)
        counted |= inside


def _source(program: ProgramText, name: str) -> str:
    entry = next(kernel.entry for kernel in program.kernels.values() if kernel.name == name)
    ops = [item.value for item in entry.source_ops or () if isinstance(item, StringAttr)]
    return ops[0] + (f" and {len(ops) - 1} more" if ops[1:] else "") if ops else ""


def _symbols(files: Files, name: str, compiler: str) -> Mapping[str, int]:
    """Symbol -> bytes of code or constants, of NAME.c compiled by a command."""
    command = shlex.split(compiler)
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            Path(folder, file).write_bytes(content if isinstance(content, bytes) else content.encode())
        _run([*command, *FLAGS, f"{name}.c", "-o", "program.o"], folder)
        nm = _run([*command[:1], "-print-prog-name=nm"], folder).strip()
        lines = _run([nm, "-S", "program.o"], folder).splitlines()
    found = [match for line in lines if (match := _SYMBOL.fullmatch(line))]
    return {match[3]: int(match[1], 16) for match in found}


def _run(command: list[str], folder: str) -> str:
    """The output of a command. Raises UsageError if it fails."""
    try:
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip().splitlines() if isinstance(error, subprocess.CalledProcessError) else [str(error)]
        reason = next((line for line in said if "error" in line), said[0] if said else "failed")
        raise UsageError(f"--cc: {shlex.join(command)}: {reason}") from None
