"""Renders a program of the phase `executables` as C that calls Vulkan.

A recording is a function that finds, or records, the command buffer for its slots and sizes, and adds it to the next
submission. A function is the static function `execute`, over ranges of buffers of the device; `run` and `submit` call
it. Numbers that the host reads end a submission.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Final

from orchestrion.compiler.codegen.c.code import Code, refused
from orchestrion.compiler.codegen.c.interface import Export, Field
from orchestrion.compiler.codegen.c.language import comment
from orchestrion.compiler.codegen.c.memory import Place, Recorded
from orchestrion.compiler.codegen.c.program import FunctionCode, Kernel, ProgramText, Recording, RecordingText
from orchestrion.compiler.codegen.c.sizes import rounded_up
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.sequencer.arena import ALIGNMENT
from orchestrion.compiler.targets.target import target

from .interface import ERRORS, range_parameters
from .shaders import Shaders

#: command buffers of a recording, for different slots or sizes
TABLES: Final = 4
#: most bytes from which a pattern is copied that no fill of words makes
_PATTERN_BYTES: Final = 4096
_WORD: Final = 4


class DevicePlace(Place):
    """A place in a buffer of the device; `root` is an expression of type `range`."""

    @property
    def text(self) -> str:
        parts = [self.text_of_start, str(self.start) if self.start else ""]
        return f"at({self.root}, {' + '.join(filter(None, parts))})" if any(parts) else self.root


@dataclass(slots=True)
class Tables:
    """The command buffers of a recording; `layouts`: of each descriptor set, the numbers of bindings and of words."""

    slots: int
    sizes: int
    layouts: list[tuple[int, int]]

    @property
    def count(self) -> int:
        """How many there are: one, if all calls have the same."""
        return TABLES if self.slots or self.sizes else 1


class VulkanProgram(ProgramText):
    """The text of a program."""

    style: ClassVar[str] = "vulkan"
    alignment: ClassVar[int] = ALIGNMENT
    weights_root: ClassVar[str] = "context->weights"
    memory_root: ClassVar[str] = "context->arena"
    errors: ClassVar[Sequence[tuple[str, str]]] = ERRORS
    memory_parameters: ClassVar[str] = "VkDeviceSize *device_bytes, VkDeviceSize *host_bytes"
    buffer_type: ClassVar[str] = "range "

    def __init__(self, program: hl_seq.Program, name: str) -> None:
        self.shaders = Shaders(target(program.profile))
        self.numbers: dict[str, int] = {}  #: name of a kernel -> its number
        self.tables: list[Tables] = []
        self.rehearsed: list[Export] = []  #: exports whose calls are recorded in `init`
        super().__init__(program, name)

    def place(self, root: str, base: tuple[object, ...], start: int = 0, text: str = "") -> Place:
        return DevicePlace(root, base, start, text)

    def argument(self, kind: str, field: Field) -> str:
        return f"{kind}->{field.name}.range"

    def initializer_code(self) -> Code:
        return DeviceCode(self)

    def function_code(self, function: ll_seq.Function, export: Export) -> FunctionCode:
        return DeviceFunctionCode(self, function, export)

    def recording_text(self, recorded: Recorded, code: Code) -> RecordingText:
        return DeviceRecording(self, recorded, code)

    def memory_lines(self, needed: str, code: FunctionCode, export: Export) -> Iterator[str]:
        yield f"*device_bytes = {self.name}_DEVICE_BYTES + (VkDeviceSize){needed} - {self.allocations.size}u;"
        total = "0"
        for _, row in export.fields:
            total = f"size_add({total}, {rounded_up(code.size(prod(row.type.shape) * row.itemsize), ALIGNMENT)})"
        yield f"*host_bytes = (VkDeviceSize){total};"

    @property
    def host_bytes(self) -> int:
        """Bytes of mapped memory for a call of any export without dynamic sizes."""
        most = 0
        for export in self.interface.exports:
            if not export.is_dynamic:
                rows = [prod(row.type.static_shape) * row.itemsize for _, row in export.fields]
                most = max(most, sum(ceildiv(size, ALIGNMENT) * ALIGNMENT for size in rows))
        return most

    # recordings

    def call(self, recording: Recording, buffers: Sequence[Place], sizes: object) -> str:
        text = super().call(recording, buffers, sizes)  # type: ignore[arg-type]
        return checked(self.name, text.removesuffix(";"))

    def recording_function(self, recording: Recording, parameters: Sequence[str], inner: RecordingText) -> str:
        assert isinstance(inner, DeviceRecording)
        n, number = self.name, len(self.tables)
        self.tables.append(Tables(len(recording.slots), len(recording.symbols), inner.layouts))
        names = [parameter.split()[-1] for parameter in parameters]
        sizes, slots = names[: len(recording.symbols)], names[len(recording.symbols) :]
        head = f"static int {recording.name}({', '.join([f'{n}_context *context', *parameters])})"
        declared = []
        for type, name, given in (("range", "slots", slots), ("int64_t", "sizes", sizes)):
            if given:
                declared += [f"  {type} {name}[{len(given)}];"]
        filled = [f"  {kind}[{at}] = {one};" for kind, given in (("slots", slots), ("sizes", sizes))
                  for at, one in enumerate(given)]  # fmt: skip
        lines = [
            *declared, "  recorder r;", "  int status;", *filled,
            f"  status = find(context, {number}, {'slots' if slots else 'NULL'}, {'sizes' if sizes else 'NULL'}, &r);",
            f"  if (status != {n}_OK)", "    return status;",
            "  if (r.is_new) {", *(f"  {line}" for line in inner.lines), "  }", "  return finish(&r);",
        ]  # fmt: skip
        return "\n".join([f"{head}\n{{", *lines, "}\n"])

    def number_of(self, kernel: Kernel, executable: str) -> int:
        if kernel.name not in self.numbers:
            found = self._executables[executable]
            self.numbers[kernel.name] = self.shaders.add(found, kernel.entry.sym_name.value, kernel.signature)
        return self.numbers[kernel.name]

    # functions

    def _function(self, function: ll_seq.Function, export: Export) -> None:
        code = self.function_code(function, export)
        if not export.is_dynamic:
            code.check_overlap()
        code.region(function.body)
        if not export.is_dynamic and not any(isinstance(op, ll_seq.Read) for op in function.walk()):
            self.rehearsed.append(export)
        code.drop_unused()
        unused = [f"  (void){name};" for name in ("context", *export.kinds)]
        declared = ["  int status;", *code.declared, "  (void)status;"]
        head = f"static int execute{export.suffix}({range_parameters(self.name, export)})"
        self.functions.append("\n".join([f"{head}\n{{", *declared, *unused, *code.lines, "}\n"]))
        if export.is_dynamic:
            self.functions.append(self._sizes_function(function, export))


class DeviceCode(Code):
    """What initializers and functions do otherwise than in plain C."""

    def op(self, op: Operation) -> None:
        if isinstance(op, ll_seq.Read):
            place = self.place(op.buffer).moved(op.offset.value, "")
            name, size = self._variable(op.output), ll_seq.READ_BYTES[op.type.value]
            self.line(checked(self.program.name, f"read_number(context, {place.text}, {size}, &{name})"))
            self.values[op.output] = name
        else:
            super().op(op)


class DeviceFunctionCode(DeviceCode, FunctionCode):
    """The statements of an exported function."""

    def overlap_data(self, sizes: Sequence[str], may: str) -> tuple[str, list[str]]:
        lines = [
            f"range places[{len(sizes)}];",
            f"int64_t bytes[{len(sizes)}];",
            f"static const int may[] = {{{may}}};",
        ]
        for number, ((kind, field), size) in enumerate(zip(self.export.fields, sizes, strict=True)):
            lines += [f"places[{number}] = {kind}->{field.name}.range;", f"bytes[{number}] = {size};"]
        return "places", lines


class DeviceRecording(RecordingText):
    """The statements that record commands. `layouts`: of each descriptor set, its bindings and parameter words."""

    def __init__(self, program: VulkanProgram, recorded: Recorded, code: Code) -> None:
        super().__init__(program, recorded, code)
        self.layouts: list[tuple[int, int]] = []

    def _command(self, op: Operation) -> None:
        match op:
            case ll_seq.Copy():
                source, target = self._at(op.source, op.source_offset), self._at(op.target, op.target_offset)
                self._line(f"copy_bytes(&r, {target.text}, {source.text}, {self._size(op.length)});")
            case ll_seq.Barrier():
                self._line("barrier(&r);")
            case ll_seq.Loop() | ll_seq.Branch():
                raise refused(op, "a recording of Vulkan has no control flow", self.program.style)
            case _:
                super()._command(op)

    def _fill(self, op: ll_seq.Fill) -> None:
        """Words are filled; the bytes behind the last one, and other patterns, are copied from constants."""
        data = bytes(op.value.data)
        target, length = self._at(op.target, op.offset), self._size(op.length)
        word = (data * _WORD)[:_WORD]
        aligned = not is_dynamic(op.offset) and op.offset % _WORD == 0
        if not aligned or word * 2 != (data * 8)[:8]:
            most = _PATTERN_BYTES if is_dynamic(op.length) else min(op.length, _PATTERN_BYTES)
            count = ceildiv(most, len(data))
            start = self._constant(data * count)
            self._line(f"repeat(&r, {target.text}, {start}, {len(data) * count}, {length});")
            return
        whole = f"{length} / 4 * 4" if is_dynamic(op.length) else str(op.length // _WORD * _WORD)
        if whole != "0":
            self._line(f"fill(&r, {target.text}, {int.from_bytes(word, 'little')}u, {whole});")
        if is_dynamic(op.length) or op.length % _WORD:
            rest = target.moved(op.length // _WORD * _WORD if not is_dynamic(op.length) else op.length, f"({whole})")
            self._line(f"repeat(&r, {rest.text}, {self._constant(word)}, {_WORD}, {length} - {whole});")

    def _constant(self, data: bytes) -> str:
        """A place with these bytes."""
        weights = self.program.weights
        start = weights.add_bytes(DenseElements(TensorType((len(data),), scalar("ui8")), data))
        return self.program.place(self.program.weights_root, ("weights",), start).text

    def _launch(self, op: ll_seq.Dispatch, kernel: Kernel, head: str) -> None:
        program = self.program
        assert isinstance(program, VulkanProgram)
        bindings = op.device_bindings(kernel.entry)
        words = list(map(self._size, op.words(kernel.entry)))
        words += ["0"] * (kernel.signature.parameters - len(words))
        number = program.number_of(kernel, op.entry.root)
        if not head.startswith("else"):
            self.layouts.append((len(bindings), kernel.signature.parameters))
        elif self.layouts[-1] != (len(bindings), kernel.signature.parameters):
            raise refused(op, "an entry for small sizes has other bindings", program.style)
        self._line(head)
        self._line(f"  range places[{len(bindings)}];")
        self._line(f"  int64_t bytes[{len(bindings)}];")
        if words:
            self._line(f"  uint32_t words[{len(words)}];")
        for at, (memory, offset, length) in enumerate(bindings):
            program.shaders.need("maxStorageBufferRange", length)
            self._line(f"  places[{at}] = {self._at(memory, offset).text};")
            self._line(f"  bytes[{at}] = {self._size(length)};")
        for at, text in enumerate(words):
            self._line(f"  words[{at}] = (uint32_t){text};")
        given = "words" if words else "NULL"
        self._line(f"  /* {comment(kernel.entry.sym_name.value)} */")
        self._line(f"  launch(&r, {number}, places, bytes, {given}, {self._size(kernel.groups)});")
        self._line("}")


def checked(n: str, call: str) -> str:
    """The statement that calls a function, and returns its error."""
    return f"if ((status = {call}) != {n}_OK)\n    return status;"
