"""The code of one program of a module: its functions as values, and what generated code calls things.

Names come from the program: functions, globals, executables, arguments and results. The code of a program is what all
devices run; `Code.key` is equal for programs whose code is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from orchestrion.compiler.errors import CompileError
from orchestrion.schema.decoder import initial_value
from orchestrion.schema.dtypes import BY_CODE, DType
from orchestrion.schema.module import Module
from orchestrion.schema.rows import Argument, Executable, Program, Result, SegmentKind
from orchestrion.schema.rows import Constant as ConstantRow

from .sizes import is_natural, use_floor_divisions
from .ssa import Constant, Function, Op, Parameter, Value, drop_unused, read_function
from .ssa import Result as OpResult
from .text import Names, identifier

#: type of the VM -> type in generated code
TYPES: Final = {
    "i32": "int",
    "i64": "int",
    "hal.view": "BufferView",
    "hal.buffer": "Buffer",
    "hal.executable": "Executable",
    "hal.recording": "CommandBuffer",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An argument or result of an export: its name in generated code and in the module, and its type. `shape`: sizes,
    or the texts of dynamic ones.
    """

    name: str
    source: str
    dtype: DType
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return "x".join((*map(str, self.shape), self.dtype.name))


@dataclass(frozen=True, slots=True)
class Export:
    """An exported function. `aliases`: per result the argument whose memory it may use, or None."""

    name: str
    source: str
    doc: str
    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    aliases: tuple[Tensor | None, ...]


def exports_of(module: Module) -> list[Export]:
    """The exports of a module. All its programs have them."""
    methods = Names(("close", "create", "refusal", "device"))
    found = []
    for row in module.exports:
        names = Names()
        arguments = [_tensor(module, at, names) for at in module.arguments[row.arguments_start : row.arguments_end]]
        rows = module.results[row.results_start : row.results_end]
        results = [_tensor(module, at, names) for at in rows]
        aliases = [arguments[at.alias] if at.alias < len(arguments) else None for at in rows]
        source = module.strings[row.name]
        name = methods.unique(identifier(source).lstrip("_") or "main", "submit_")
        found.append(Export(name, source, module.strings[row.doc], tuple(arguments), tuple(results), tuple(aliases)))
    return found


def _tensor(module: Module, at: Argument | Result, names: Names) -> Tensor:
    dims = module.dims[at.dims_start : at.dims_end]
    shape = tuple([dim if dim >= 0 else module.strings[module.expressions[-1 - dim]] for dim in dims])
    source = module.strings[at.name]
    return Tensor(names.unique(identifier(source).lstrip("_") or "value"), source, BY_CODE[at.dtype], shape)


class Code:
    """The functions of program `ordinal` of a module."""

    def __init__(self, module: Module, ordinal: int, exports: list[Export]) -> None:
        self.module, self.ordinal, self.exports = module, ordinal, exports
        self.row: Program = module.programs[ordinal]
        self.name = module.strings[self.row.name]
        row = self.row
        self.executables: list[Executable] = [*module.executables[row.executables_start : row.executables_end]]
        self.constants: list[ConstantRow] = [*module.constants[row.constants_start : row.constants_end]]
        self.executable_names = _unique([module.strings[at.name] for at in self.executables])
        #: a parameter has the name that its values are given by
        self.constant_names = _unique([module.strings[at.name] for at in self.constants])
        for place, at in enumerate(self.constants):
            if self.is_parameter(at):
                self.constant_names[place] = module.strings[at.name]
        self._functions: dict[int, Function] = {}
        own = ("lock", "resources", "set_up", "own", "executable", "constant", "control_flow")
        names = Names((*own, *[f"add_{export.name}" for export in exports]))
        self.globals = [
            f"_{names.unique(module.strings[at.name])}" for at in module.globals[row.globals_start : row.globals_end]
        ]
        self._setups = self._setup_ordinals()
        #: functions that are methods -> their names
        self.methods = {
            at: f"_{names.unique(self.function(at).name)}"
            for at in dict.fromkeys((*[function.ordinal for function in self.initializers], *self._setups))
        }
        #: setups -> the attributes that keep what they returned
        self.caches = {at: f"_{names.unique(f'{self.methods[at]}_results'.lstrip('_'))}" for at in self._setups}

    def is_parameter(self, row: ConstantRow) -> bool:
        """Whether the values of a constant are not in the module."""
        return self.module.segments[row.segment].kind == SegmentKind.Parameter

    @property
    def entries(self) -> list[Function]:
        return [self.function(at) for at in self.module.entries[self.row.entries_start : self.row.entries_end]]

    @cached_property
    def initializers(self) -> list[Function]:
        """Those of the program, then those of a context."""
        rows = self.module.initializers[self.row.initializers_start : self.row.initializers_end]
        return [self.function(at.function) for kind in (0, 1) for at in rows if at.kind == kind]

    def function(self, ordinal: int, natural_parameters: bool = False) -> Function:
        """A function. `natural_parameters`: whether all that is passed to it is 0 or more, for its first use."""
        found = self._functions.get(ordinal)
        if found is None:
            found = self._functions[ordinal] = read_function(self.module, self.row, ordinal)
            use_floor_divisions(found, natural_parameters)
            drop_unused(found)
        return found

    def _setup_ordinals(self) -> list[int]:
        """The functions whose results calls keep, in the order of their first call."""
        found: dict[int, None] = {}
        work = [*self.entries, *self.initializers]
        for function in work:
            for op in function.ops():
                if op.name == "call.cached" and op.operands[0] not in found:
                    found[op.operands[0]] = None
                    work.append(self.function(op.operands[0], self._passes_naturals(work, op.operands[0])))
        return [*found]

    def _passes_naturals(self, callers: list[Function], callee: int) -> bool:
        """Whether all calls of a setup pass numbers that are 0 or more."""
        calls = [op for caller in callers for op in caller.ops() if op.name == "call.cached"]
        return all(is_natural(value, False) for op in calls if op.operands[0] == callee for value in op.arguments())

    @property
    def setups(self) -> list[Function]:
        return [self.function(at) for at in self._setups]

    def kept(self, setup: Function) -> list[int]:
        """The places of a setup's results that are not its own parameters."""
        values = [[*op.values()] for op in setup.ops() if op.name == "return"]
        return [
            place
            for place in range(len(setup.results))
            if len(values) != 1 or not isinstance(values[0][place], Parameter)
        ]

    @cached_property
    def number_globals(self) -> dict[str, int]:
        """Attributes that hold numbers -> their first values."""
        module, row = self.module, self.row
        found = {}
        for attribute, at in zip(self.globals, module.globals[row.globals_start : row.globals_end], strict=True):
            value = initial_value(module.strings[module.types[at.type]], at.value)
            if isinstance(value, float):
                raise CompileError(f"program {self.name}: global {attribute[1:]} is a float, which HAL code cannot say")
            if value is not None:
                found[attribute] = value
        return found

    @cached_property
    def global_values(self) -> dict[int, list[Value]]:
        """The values that are stored into each global."""
        found: dict[int, list[Value]] = {}
        for function in (*self.initializers, *self.setups, *self.entries):
            for op in function.ops():
                if op.name.startswith("global.store"):
                    found.setdefault(op.operands[1], []).append(op.operands[0])
        return found

    def origin(self, value: Value) -> Op | None:
        """The op that made a value, through a global that is stored once."""
        if not isinstance(value, OpResult):
            return None
        if value.op.name.startswith("global.load"):
            stored = self.global_values.get(value.op.operands[0], [])
            return self.origin(stored[0]) if len(stored) == 1 else None
        return value.op

    def executable_of(self, value: Value) -> int | None:
        """The ordinal of an executable; None if it is not known."""
        op = self.origin(value)
        if op is None or op.name != "hal.executable.create":
            return None
        (ordinal,) = op.arguments()
        return ordinal.number if isinstance(ordinal, Constant) else None

    @cached_property
    def slot_names(self) -> dict[Op, list[str]]:
        """The op that makes a recording -> the names of the buffers that calls put into its slots."""
        found: dict[Op, list[str]] = {}
        for export, entry in zip(self.exports, self.entries, strict=True):
            tensors = [*export.arguments, *export.results]
            for op in entry.ops():
                if op.name not in ("hal.execute", "hal.enqueue"):
                    continue
                recording, *buffers = op.arguments()
                made = self._recording(recording)
                names = [_buffer_name(value, tensors) for value in buffers]
                if made is not None and found.setdefault(made, names) != names:
                    found[made] = [a if a == b else "" for a, b in zip(found[made], names, strict=False)]
        return found

    def _recording(self, value: Value) -> Op | None:
        """The op that makes a recording, also if a setup returns it."""
        op = self.origin(value)
        if op is None or op.name != "call.cached" or not isinstance(value, OpResult):
            return op
        setup = self.function(op.operands[0])
        returned = [made for made in setup.ops() if made.name == "return"]
        return self.origin([*returned[0].values()][value.place]) if len(returned) == 1 else None


def _unique(texts: list[str]) -> list[str]:
    names = Names()
    return [names.unique(text) for text in texts]


def _buffer_name(value: Value, tensors: list[Tensor]) -> str:
    """The argument or result that a buffer belongs to; empty if it is another one."""
    while isinstance(value, OpResult) and value.op.name.startswith("hal.view."):
        value = value.op.arguments()[0]
    return tensors[value.place].name if isinstance(value, Parameter) and value.place < len(tensors) else ""
