"""Renders a program of the phase `executables` as C: its initializers, its functions, their recordings and kernels.

A recording is a function whose arguments are its slots. An initializer computes constants once, in `init`. A function
checks its arguments, and executes recordings. A setup function is written where it is called: what it makes costs
nothing in C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import Size, ceildiv, is_dynamic, symbol
from orchestrion.compiler.kernel.signature import Signature, signature_of
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.stablehlo.ops.function_dims import DimDefinition, dim_definitions
from orchestrion.compiler.targets.c_text.functions import Functions
from orchestrion.compiler.targets.library_code import calls_library

from .body import CBody
from .code import Code, indented, refused
from .interface import ERRORS, Export, Field, Interface, export_of
from .kernels import KernelText, pointer_type, used_lines
from .language import identifier, is_reserved
from .memory import MEMORY, WEIGHTS, Allocations, Place, Range, Recorded, bindings_apart
from .sizes import rounded_up, size_text
from .weights import ALIGNMENT, Weights


@dataclass(slots=True)
class Kernel:
    """An entry that is dispatched, and the name of its function."""

    name: str
    entry: ll_seq.Entry
    signature: Signature

    @property
    def groups(self) -> Size:
        """The number of workgroups."""
        sizes = zip(self.entry.workload.sizes, self.signature.workgroup_size, strict=True)
        return prod(ceildiv(size, group) for size, group in sizes)

    def pointer(self, ordinal: int) -> str:
        """The type of a binding."""
        return pointer_type(self.signature.bindings[ordinal])


@dataclass(slots=True)
class Recording:
    """A recording as a function. `symbols`: those that it takes as arguments; `slots`: the slots that it uses."""

    name: str
    symbols: tuple[str, ...]
    slots: tuple[int, ...]
    recorded: Recorded


class ProgramText:
    """The text of a program. `name`: the prefix of public names.

    Style vulkan derives from it what buffers, recordings and functions are.
    """

    style: ClassVar[str] = "c"
    #: bytes to which allocations and constants are aligned
    alignment: ClassVar[int] = ALIGNMENT
    #: expressions for the constants, and for the memory of a context
    weights_root: ClassVar[str] = "(unsigned char *)context->weights"
    memory_root: ClassVar[str] = "context->memory"
    errors: ClassVar[Sequence[tuple[str, str]]] = ERRORS
    #: the type of a variable for a buffer, and what stands between it and its name
    buffer_type: ClassVar[str] = "unsigned char *"
    #: where the function that computes sizes stores the bytes of memory of a call
    memory_parameters: ClassVar[str] = "size_t *memory_bytes"

    def __init__(self, program: hl_seq.Program, name: str) -> None:
        self.name = name
        self.interface = Interface(name, self.errors, self.memory_parameters)
        self.weights = Weights(self.alignment)
        self.allocations = Allocations(self.alignment)
        self.kernels: dict[str, Kernel] = {}
        self.recordings: list[Recording] = []
        self.texts: list[str] = []  #: functions of recordings
        self.functions: list[str] = []
        ops = list(program.body.block)
        self._executables = {op.sym_name.value: op for op in ops if isinstance(op, ll_seq.Executable)}
        self._setups = {op.sym_name.value: op for op in ops if isinstance(op, ll_seq.SetupFunc)}
        self._globals: dict[str, Any] = {}
        self.calls_need_memory = False
        self.scratch = 0  #: bytes that a workgroup of any kernel needs beside the stack; known after `kernel_texts`
        initializers = [op for op in ops if isinstance(op, util.Initializer)]
        initializers.sort(key=lambda op: op.kind.value != "program")
        self.allocations.plan(block for op in initializers for block in op.body.blocks)
        self.init = [self._initializer(op) for op in initializers]
        exported = [op for op in ops if isinstance(op, ll_seq.Function)]
        for function in exported:
            run = identifier(f"run_{function.sym_name.value}", [f"run{one.suffix}" for one in self.interface.exports])
            suffix = "" if len(exported) == 1 else run.removeprefix("run")
            self.interface.exports.append(export_of(function, suffix))
            self._function(function, self.interface.exports[-1])

    # what styles derive

    def place(self, root: str, base: tuple[object, ...], start: int = 0, text: str = "") -> Place:
        """A place in a buffer; see `Place`."""
        return Place(root, base, start, text)

    def argument(self, kind: str, field: Field) -> str:
        """The expression for the buffer of an argument or result; `kind`: inputs or outputs."""
        return f"(unsigned char *){kind}->{field.name}.data"

    def initializer_code(self) -> Code:
        return Code(self)

    def function_code(self, function: ll_seq.Function, export: Export) -> FunctionCode:
        return FunctionCode(self, function, export)

    def recording_text(self, recorded: Recorded, code: Code) -> RecordingText:
        """The commands of a recording that this code makes."""
        return RecordingText(self, recorded, code)

    def memory_lines(self, needed: str, code: FunctionCode, export: Export) -> Iterator[str]:
        """The statements that store the bytes of memory of a call; `needed`: of the context, with what is kept."""
        yield f"*memory_bytes = (size_t){needed} + {self.name}_PART_BYTES;"

    # initializers

    def _initializer(self, op: util.Initializer) -> list[str]:
        code = self.initializer_code()
        code.region(op.body)
        return [*code.declared, *code.lines]

    def make(self, op: Operation, code: Code) -> None:
        """An op that makes or takes an object of the runtime, or stops a function."""
        match op:
            case ll_seq.CreateExecutable():
                if any(calls_library(entry) for _, entry in self._executables[op.executable.root].entries()):
                    raise refused(op, "has no library functions: compile the program with --lapack=loops", self.style)
                code.values[op.output] = op.executable.root
            case ll_seq.Constant():
                start = self.weights.add(op)
                code.values[op.output] = self.place(self.weights_root, WEIGHTS, start)
            case ll_seq.Allocate():
                start = self.allocations.offsets[op]
                code.values[op.output] = self.place(self.memory_root, MEMORY, start)
            case ll_seq.Record():
                code.values[op.output] = self._record(op, code)
            case util.GlobalStore():
                if op.ref.root in self._globals:
                    raise refused(op, f"global {op.ref} is stored to more than once", self.style)
                self._globals[op.ref.root] = code.values[op.value]
            case util.GlobalLoad():
                code.values[op.value] = self._globals[op.ref.root]
            case _:
                raise refused(op, "has no C", self.style)

    # recordings

    def call(self, recording: Recording, buffers: Sequence[Place], sizes: Mapping[str, str]) -> str:
        """The call of a recording with these buffers in its slots."""
        recording.recorded.calls.append(list(buffers))
        given = [*(sizes[name] for name in recording.symbols), *(buffers[slot].text for slot in recording.slots)]
        return f"{recording.name}({', '.join(['context', *given])});"

    def _record(self, op: ll_seq.Record, code: Code) -> Recording:
        users = [user for user in op.output.users() if isinstance(user, util.GlobalStore)]
        base = users[0].ref.root if users else "recording"
        name = identifier(base, [recording.name for recording in self.recordings])
        slots = op.body.block.arguments
        recorded = Recorded(frozenset(map(frozenset, op.alias_pairs)))
        inner = self.recording_text(recorded, code)
        inner.values.update((slot, self.place(f"s{n}", ("slot", n))) for n, slot in enumerate(slots))
        inner.commands(op.body.block)
        text = "\n".join(inner.lines)
        symbols = tuple(name for name, variable in code.sizes.items() if _has(text, variable))
        used = tuple(n for n in range(len(slots)) if _has(text, f"s{n}"))
        self.recordings.append(Recording(name, symbols, used, recorded))
        given = [*(f"int64_t {code.sizes[symbol]}" for symbol in symbols), *(f"{self.buffer_type}s{n}" for n in used)]
        self.texts.append(self.recording_function(self.recordings[-1], given, inner))
        return self.recordings[-1]

    def recording_function(self, recording: Recording, parameters: Sequence[str], inner: RecordingText) -> str:
        given = ", ".join([f"const {self.name}_context *context", *parameters])
        unused = [] if _has("\n".join(inner.lines), "context") else ["  (void)context;"]
        return "\n".join([f"static void {recording.name}({given})\n{{", *unused, *inner.lines, "}\n"])

    def kernel(self, executable: str, entry: str) -> Kernel:
        key = f"{executable}::{entry}"
        if key not in self.kernels:
            found = next(e for _, e in self._executables[executable].entries() if e.sym_name.value == entry)
            taken = [name for kernel in self.kernels.values() for name in (kernel.name, f"{kernel.name}_arguments")]
            self.kernels[key] = Kernel(identifier(f"kernel_{entry}", taken), found, signature_of(found))
        return self.kernels[key]

    def kernel_texts(self) -> list[str]:
        """The shared functions of kernels, and the kernels."""
        apart = bindings_apart(recording.recorded for recording in self.recordings)
        functions = Functions((), lambda lanes: CBody, is_reserved)
        kernels = [
            KernelText(
                kernel.name, kernel.entry.body.block, kernel.signature, functions.callee, apart[kernel.name],
                ", ".join(_strings(kernel.entry.source_ops)) or kernel.entry.sym_name.value,
            )
            for kernel in self.kernels.values()
        ]  # fmt: skip
        texts = [kernel.text() for kernel in kernels]
        self.scratch = max((kernel.scratch for kernel in kernels), default=0)
        return [*("\n".join(used_lines(text.split("\n"))) for text in functions.texts()), *texts]

    # functions

    def _function(self, function: ll_seq.Function, export: Export) -> None:
        code = self.function_code(function, export)
        if not export.is_dynamic:
            code.check_overlap()
        code.region(function.body)
        head = f"int {self.name}_run{export.suffix}({self.interface.parameters(export)})"
        checks = list(self._checks(export))
        code.drop_unused()
        self.functions.append("\n".join([f"{head}\n{{", *code.declared, *checks, *code.lines, "}\n"]))
        if export.is_dynamic:
            self.functions.append(self._sizes_function(function, export))

    def _checks(self, export: Export) -> Iterator[str]:
        """Of the context and of the data of inputs and outputs."""
        n = self.name
        yield "  if (context == NULL || !context->is_ready)"
        yield f"    return {n}_ERROR_CONTEXT;"
        for kind, fields in export.kinds.items():
            yield f"  if ({kind} == NULL)"
            yield f"    return {n}_ERROR_DATA;"
            for field in fields:
                if not field.is_dynamic and not prod(field.type.shape):
                    continue
                at = f"{kind}->{field.name}.data"
                aligned = f" || (uintptr_t){at} % {field.itemsize} != 0" if field.itemsize > 1 else ""
                yield f"  if ({at} == NULL{aligned})"
                yield f"    return {n}_ERROR_DATA;"

    def setup(self, op: ll_seq.CallSetup, code: FunctionCode) -> None:
        """Writes a setup function where it is called."""
        setup = self._setups[op.callee.root]
        inner = list(setup.body.block)
        for argument, name, value in zip(setup.body.block.arguments, _strings(setup.sizes), op.sizes, strict=True):
            code.values[argument] = code.values[value]
            code.sizes[name] = code.number(value)
        code.define_symbols(dim_definitions(setup.dims))
        start = self.allocations.size
        made: list[tuple[str, str]] = []
        for command in inner:
            if isinstance(command, ll_seq.Allocate):
                self.calls_need_memory = True
                at = made[-1][1] if made else str(start)
                name = f"at{len(code.offsets)}"
                code.offsets.append(name)
                made.append((name, f"size_add({name}, {rounded_up(code.size(command.size), self.alignment)})"))
                code.set_size(name, at)
                code.values[command.output] = self.place(self.memory_root, MEMORY, 0, name)
            elif isinstance(command, ll_seq.Return):
                code.values.update(zip(op.outputs, [code.values[value] for value in command.values], strict=True))
            else:
                if made and isinstance(command, ll_seq.Record):
                    code.require_memory(made[-1][1])
                code.op(command)
        if made:
            code.require_memory(made[-1][1])
        code.check_overlap()

    def _sizes_function(self, function: ll_seq.Function, export: Export) -> str:
        """The function that computes the sizes of outputs and the memory of a call."""
        code = self.function_code(function, export)
        calls = [op for op in function.body.blocks[0] if isinstance(op, ll_seq.CallSetup)]
        for op in function.body.blocks[0]:
            if isinstance(op, ll_seq.Measure):
                code.op(op)
        needed = str(self.allocations.size)
        for call in calls:
            setup = self._setups[call.callee.root]
            for name, value in zip(_strings(setup.sizes), call.sizes, strict=True):
                code.sizes[name] = code.number(value)
            code.define_symbols(dim_definitions(setup.dims))
            for op in setup.body.block:
                if isinstance(op, util.Assert):
                    code.op(op)
                elif isinstance(op, ll_seq.Allocate):
                    needed = f"size_add({needed}, {rounded_up(code.size(op.size), self.alignment)})"
        for field in export.outputs:
            for axis, size in enumerate(field.type.shape if field.is_dynamic else ()):
                code.line(f"outputs->{field.name}.sizes[{axis}] = {code.size(size)};")
        for line in self.memory_lines(needed, code, export):
            code.line(line)
        code.drop_unused()
        head = self.interface.sizes_head(export)
        return "\n".join([f"{head}\n{{", *code.declared, *code.lines, f"  return {self.name}_OK;", "}\n"])


class FunctionCode(Code):
    """The statements of an exported function."""

    def __init__(self, program: ProgramText, function: ll_seq.Function, export: Export) -> None:
        super().__init__(program)
        self.export, self.function = export, function
        self.offsets: list[str] = []
        self._needed = str(program.allocations.size)
        arguments = function.body.blocks[0].arguments
        for number, (argument, (kind, field)) in enumerate(zip(arguments, export.fields, strict=True)):
            self.values[argument] = program.place(program.argument(kind, field), ("user", number))

    def set_size(self, name: str, text: str) -> None:
        """Defines a variable of a size."""
        self.declared.append(f"  int64_t {name};")
        self.line(f"{name} = {text};")
        self.sizes.setdefault(name, name)

    def define_symbols(self, rows: Sequence[DimDefinition]) -> None:
        for one, value in rows:
            if value is not None and one.name not in self.sizes:
                self.set_size(one.name, self.size(value))

    def drop_unused(self) -> None:
        """Leaves out sizes that nothing reads."""
        while True:
            text = "\n".join(self.lines)
            unused = [name for name in self.sizes.values() if len(re.findall(rf"\b{re.escape(name)}\b", text)) == 1]
            unused = [name for name in unused if f"  int64_t {name};" in self.declared]
            if not unused:
                return
            self.declared = [line for line in self.declared if line.split()[-1][:-1] not in unused]
            self.lines = [line for line in self.lines if line.split(" = ")[0].strip() not in unused]

    def require_memory(self, text: str) -> None:
        """Ends the call if the memory is too small."""
        self._needed = text
        self.line(f"if ((uint64_t)({text}) > context->call_bytes)")
        self.line(f"  return {self.program.name}_ERROR_MEMORY;")

    def op(self, op: Operation) -> None:
        n = self.program.name
        match op:
            case ll_seq.Check():
                self.values[op.output] = self.values[op.view]
                self._check_sizes(op.view, op.type.shape, [])
            case ll_seq.Measure():
                self.values[op.output] = f"{self._field(op.view)}.sizes[{op.axis.value}]"
            case ll_seq.Destination():
                self.values[op.output] = self.values[op.view]
                self._check_sizes(op.view, op.type.shape, [self.number(value) for value in op.sizes])
            case ll_seq.CallSetup():
                self.program.setup(op, self)
            case ll_seq.Return():
                self.line(f"return {n}_OK;")
            case _:
                super().op(op)

    def _field(self, view: Value) -> str:
        number = self.place(view).base[1]
        assert isinstance(number, int)
        kind, field = self.export.fields[number]
        return f"{kind}->{field.name}"

    def _check_sizes(self, view: Value, shape: Sequence[Size], dynamic: Sequence[str]) -> None:
        """Compares the sizes of a view that has any. `dynamic`: the wanted ones of those that are expressions."""
        given = iter(dynamic)
        for axis, size in enumerate(shape if is_dynamic(*shape) else ()):
            wanted = next(given, None) if is_dynamic(size) else str(size)
            if wanted is not None:
                self.line(f"if ({self._field(view)}.sizes[{axis}] != {wanted})")
                self.line(f"  return {self.program.name}_ERROR_SIZE;")

    def check_overlap(self) -> None:
        """Ends the call if an output overlaps an input that it may not replace, or another output."""
        fields, outputs = self.export.fields, len(self.export.outputs)
        if not outputs or len(fields) < 2:
            return
        sizes = [self.size(prod(field.type.shape) * field.itemsize) for _, field in fields]
        places, lines = self.overlap_data(
            sizes, ", ".join(str(self.export.aliases.get(number, -1)) for number in range(outputs))
        )
        self.line("{")
        for line in lines:
            self.line(f"  {line}")
        self.line(f"  if (overlap({places}, bytes, may, {len(fields) - outputs}, {len(fields)}))")
        self.line(f"    return {self.program.name}_ERROR_OVERLAP;")
        self.line("}")

    def overlap_data(self, sizes: Sequence[str], may: str) -> tuple[str, list[str]]:
        """The array of the places of inputs and outputs, and the declarations of it, of `bytes` and of `may`."""
        data = ", ".join(f"{kind}->{field.name}.data" for kind, field in self.export.fields)
        return "data", [
            f"const void *const data[] = {{{data}}};",
            f"const int64_t bytes[] = {{{', '.join(sizes)}}};",
            f"const int may[] = {{{may}}};",
        ]


class RecordingText:
    """The statements of a recording."""

    def __init__(self, program: ProgramText, recorded: Recorded, code: Code) -> None:
        self.program, self.recorded, self.sizes = program, recorded, code.sizes
        self.values = dict(code.values)
        self.lines: list[str] = []

    def commands(self, block: Block) -> None:
        for op in block:
            self._command(op)

    def _line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def _size(self, size: Size) -> str:
        """A size as an expression. A call has checked its sizes, and that its memory suffices."""
        return size_text(size, self.sizes, saturates=False)

    def _at(self, value: Value, offset: Size) -> Place:
        place = self.values[value]
        assert isinstance(place, Place)
        return place.moved(offset, self._size(offset))

    def _command(self, op: Operation) -> None:
        match op:
            case ll_seq.Dispatch():
                self._dispatch(op)
            case ll_seq.Copy():
                source, target = self._at(op.source, op.source_offset), self._at(op.target, op.target_offset)
                self._line(f"move_bytes({target.text}, {source.text}, {self._size(op.length)});")
            case ll_seq.Fill():
                self._fill(op)
            case ll_seq.Loop():
                self._line(f"while (read_i1({self._at(op.predicate, op.offset.value).text})) {{")
                self._region(op.body.block)
                self._line("}")
            case ll_seq.Branch():
                self._branch(op)
            case ll_seq.Barrier() | ll_seq.End():
                pass  # commands run in order
            case _:
                raise refused(op, "has no C", self.program.style)

    def _region(self, block: Block) -> None:
        outer, self.lines = self.lines, []
        self.commands(block)
        self.lines = [*outer, *indented(self.lines)]

    def _branch(self, op: ll_seq.Branch) -> None:
        given = f"read_{op.type.value}({self._at(op.selector, op.offset.value).text})"
        if op.type.value == "i1":
            self._line(f"if ({given}) {{")
            self._region(op.arms[0].block)
            self._line("} else {")
            self._region(op.arms[1].block)
            self._line("}")
            return
        self._line(f"switch ({given}) {{")
        for number, arm in enumerate(op.arms):
            self._line(f"case {number}:" if number < len(op.arms) - 1 else "default:")
            self._region(arm.block)
            self._line("  break;")
        self._line("}")

    def _fill(self, op: ll_seq.Fill) -> None:
        target, length = self._at(op.target, op.offset).text, self._size(op.length)
        data = bytes(op.value.data)
        if len(set(data)) == 1:
            self._line(f"set_bytes({target}, {data[0]}, {length});")
            return
        suffix = {4: "u", 8: "ull"}.get(len(data), "")
        self._line(f"fill_{len(data)}({target}, {int.from_bytes(data, 'little')}{suffix}, {length});")

    # dispatches

    def _dispatch(self, op: ll_seq.Dispatch) -> None:
        executable, name = op.entry.root, op.entry.nested[0]
        general = self.program.kernel(executable, name)
        closed = False
        for row in ll_seq.specializations_of(general.entry):
            if not is_dynamic(row.size):
                if row.size > row.most:
                    continue
                self._launch(op, self.program.kernel(executable, row.entry), "else {" if closed else "{")
                return
            word = "else if" if closed else "if"
            head = f"{word} ({self._size(row.size)} <= {row.most}) {{"
            self._launch(op, self.program.kernel(executable, row.entry), head)
            closed = True
        self._launch(op, general, "else {" if closed else "{")

    def _launch(self, op: ll_seq.Dispatch, kernel: Kernel, head: str) -> None:
        ranges, texts = [], []
        rows = zip(op.bindings, op.offsets.sizes, kernel.entry.bindings, kernel.signature.bindings, strict=True)
        for number, (memory, offset, binding, use) in enumerate(rows):
            place, length = self._at(memory, offset), ll_seq.length_of(binding)
            known = None if is_dynamic(length) else length
            ranges.append(Range(place, known, use.writable))
            texts.append(f"a.b{number} = ({kernel.pointer(number)})({place.text});")
        self.recorded.dispatches.append((kernel.name, ranges))
        for number, (one, _) in enumerate(dim_definitions(kernel.entry.dims)):
            texts.append(f"a.p{number} = (uint32_t){self._size(symbol(one.name))};")
        self._line(head)
        self._line(f"  {kernel.name}_arguments a;")
        for text in texts:
            self._line(f"  {text}")
        self._line(f"  launch(context, {kernel.name}, &a, (size_t){self._size(kernel.groups)});")
        self._line("}")


def _strings(items: ArrayAttr | None) -> list[str]:
    return [item.value for item in items or () if isinstance(item, StringAttr)]


def _has(text: str, word: str) -> bool:
    """Whether a text uses a name."""
    return re.search(rf"\b{word}\b", text) is not None
