"""convert-to-vm: turns programs into `vm.program`s: functions of instructions, executables with payloads, constants.

Each target serializes its executables here. Imports and exports, which the module declares once, come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from orchestrion.compiler.errors import CompileError, TargetsError
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr, SymbolRef, UnitAttr, attribute_of
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region
from orchestrion.compiler.ir.dims import bounds
from orchestrion.compiler.ir.types import Attribute, FunctionType
from orchestrion.compiler.options import Options
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.sequencer.level_code import first_with_payload
from orchestrion.compiler.targets.library_code import code_of
from orchestrion.compiler.targets.target import Payload, Target
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.profiles import FEATURES, Profile

from . import vm
from .body import BodyConverter
from .exports import export_of
from .imports import tensors_of
from .payload import payload_attribute


def run(module: Module, options: Options) -> None:
    programs = hl_seq.programs_of(module)
    imports: set[str] = set()
    payloads = _Payloads(options.target_cpu)
    converted = [
        _Program(program, imports, _distinguishing_features(program, programs[number + 1 :]), payloads).convert()
        for number, program in enumerate(programs)
    ]
    functions = programs[0].body.block.of(ll_seq.Function)
    rows = [vm.Import.build(sym_name=n, signature=row.signature) for n, row in HAL_IMPORTS.items() if n in imports]
    rows += _imported(programs)
    for op in (*rows, *(export_of(function) for function in functions), *converted):
        module.block.append(op)
    for program in programs:
        program.detach()  # it is isolated, so nothing else has a use in it


def _imported(programs: Sequence[hl_seq.Program]) -> list[vm.Import]:
    """One row per called function of another module."""
    found: dict[str, FunctionType] = {}
    for program in programs:
        for op in program.walk(ll_seq.ImportedCall):
            found[op.callee.value] = op.function_type
    return [
        vm.Import.build(sym_name=name, signature=tensors_of(type).signature, function_type=type)
        for name, type in found.items()
    ]


def _distinguishing_features(program: hl_seq.Program, later: Sequence[hl_seq.Program]) -> set[str]:
    """The device feature that identifies the program's machine, if another program for the same target follows: a
    loader takes the first program that fits. Empty if there is no such alternative.
    """
    machine, alternatives = program.machine_name, [other for other in later if other.profile == program.profile]
    return {machine} & FEATURES.keys() if alternatives else set()


class _Payloads:
    """Serializes executables. Those that have all of the code of another one of the first level share its payloads."""

    def __init__(self, target_cpu: tuple[str, ...]) -> None:
        self.target_cpu = target_cpu
        self._made: dict[ll_seq.Executable, Sequence[Payload]] = {}

    def of(self, op: ll_seq.Executable, made_for: Target, profile: Profile) -> Sequence[Payload]:
        """The payloads of an executable. Raises TargetsError if the target refuses it."""
        first = first_with_payload(op)
        try:
            self._made[op] = self._made[first] if first in self._made else made_for.payloads(op, self.target_cpu)
        except CompileError as error:
            raise TargetsError({profile.name: error.diagnostics}) from error
        return self._made[op]


class _Program:
    """Converts one program; its device must have `features` and those that its code needs."""

    def __init__(self, program: hl_seq.Program, imports: set[str], features: set[str], payloads: _Payloads) -> None:
        self.payloads = payloads
        self.program = program
        self.profile = known_profile(program.profile)
        self.imports = imports
        self.block = Block()
        self.features = features
        self.executables: dict[str, ll_seq.Executable] = {}
        self.constants: dict[Operation, int] = {}  #: constant op -> its ordinal, in text order
        self.names = Names.of(program)

    def convert(self) -> Operation:
        for executable in self.program.body.block.of(ll_seq.Executable):
            self._executable(executable)
        for constant in self.program.walk(ll_seq.Constant):
            self._constant(constant)
        for variable in self.program.body.block.of(util.Global):
            self._global(variable)
        for op in self.program.body.block:
            if isinstance(op, util.Initializer):
                self._initializer(op)
            elif isinstance(op, ll_seq.SetupFunc):
                self._setup(op)
            elif isinstance(op, ll_seq.Function):
                self._function(op)
        return vm.Program.build(
            sym_name=self.program.sym_name,
            machine=self.program.machine,
            features=_sorted(self.features),
            body=Region([self.block]),
            loc=self.program.loc,
        )

    def _executable(self, op: ll_seq.Executable) -> None:
        made_for, format = code_of(self.profile, [entry for _, entry in op.entries()])
        payloads = self.payloads.of(op, made_for, self.profile)
        wanted = [payload.features - self.profile.features for payload in payloads]
        if unknown := frozenset[str]().union(*wanted) - FEATURES.keys():
            raise CompileError(
                f"target {self.profile.name} wants feature {', '.join(sorted(unknown))} of the device, which its "
                "profile does not state"
            )
        self.features |= wanted[0].intersection(*wanted)
        first, *others = payloads
        self.executables[op.sym_name.value] = op
        built = vm.Executable.build(
            sym_name=op.sym_name,
            format=format,
            features=_sorted(set(wanted[0])),
            shared_memory=first.shared_memory_bytes,
            entries=[_entry(entry) for _, entry in op.entries()],
            payload=payload_attribute(first.data, format),
            variants=[
                {
                    "features": _sorted(set(features)),
                    "shared_memory": payload.shared_memory_bytes,
                    "payload": payload_attribute(payload.data, format),
                }
                for payload, features in zip(others, wanted[1:], strict=True)
            ]
            or None,
            loc=op.loc,
        )
        self.block.append(built)

    def _constant(self, op: ll_seq.Constant) -> None:
        self.constants[op] = len(self.constants)
        content = {name: op.get(name) for name in ("values", "offsets", "size", "parameter")}
        self.block.append(vm.Constant.build(sym_name=self.names.fresh(op.label.value), **content, loc=op.loc))

    def _global(self, op: util.Global) -> None:
        mutable = UnitAttr() if op.mutable is not None or op.sym_name.value in self._stored_per_context else None
        self.block.append(vm.Global.build(sym_name=op.sym_name, type=op.type, mutable=mutable, loc=op.loc))

    @cached_property
    def _stored_per_context(self) -> set[str]:
        found: set[str] = set()
        for op in self.program.body.block:
            if isinstance(op, util.Initializer) and op.kind.value == "context":
                found.update(store.ref.root for store in op.walk(util.GlobalStore))
        return found

    def _initializer(self, op: util.Initializer) -> None:
        name = self.names.fresh(f"{op.kind.value}_initializer")
        self._func(name, op, FunctionType((), ()))
        self.block.append(vm.Initializer.build(kind=op.kind, function=SymbolRef(name), loc=op.loc))

    def _function(self, op: ll_seq.Function) -> None:
        views = tuple(argument.type for argument in op.body.blocks[0].arguments)
        self._func(op.sym_name.value, op, FunctionType(views, (ll_seq.VIEW,) * len(op.signature.results)))

    def _setup(self, op: ll_seq.SetupFunc) -> None:
        block = op.body.block
        taken, given = (tuple(value.type for value in values) for values in (block.arguments, block.end.operands))
        self._func(op.sym_name.value, op, FunctionType(taken, given))

    def _func(self, name: str, source: Operation, type: FunctionType) -> None:
        body = BodyConverter(source, self.imports, self.executables, self.constants).convert()
        self.block.append(vm.Func.build(sym_name=name, function_type=type, body=body, loc=source.loc))


def _sorted(features: set[str]) -> list[str]:
    return [name for name in FEATURES if name in features]


def _entry(entry: ll_seq.Entry) -> dict[str, object]:
    size = entry.workgroup_size
    assert size is not None, f"{entry.sym_name} was not lowered"
    shared: dict[int, list[int]] = {}  # binding of the device -> the bindings of the entry in it
    places = entry.places()
    for index, (number, _) in enumerate(places):
        shared.setdefault(number, []).append(index)
    types = entry.binding_types
    if types is not None and entry.shared is not None:
        rows = [
            f"{index} {ll_seq.access_of(entry.bindings.items[index])} {type} at {word}"
            for index, ((_, word), type) in enumerate(zip(places, types, strict=True))
        ]
        types = ArrayAttr(
            tuple(
                types.items[of[0]] if len(of) == 1 else StringAttr(" | ".join([rows[index] for index in of]))
                for of in shared.values()
            )
        )
    noted = {"source_ops": entry.source_ops, "binding_types": types}
    known = {name: value for name, value in noted.items() if value is not None}
    words = {"parameters": entry.parameter_words} if entry.parameter_words else {}
    bindings = [_binding([entry.bindings.items[index] for index in of]) for of in shared.values()]
    return {"name": entry.sym_name, "bindings": bindings, "workgroup_size": size, **words, **known}


def _binding(rows: Sequence[Attribute]) -> Attribute:
    """The binding in the module of bindings that share it: a symbolic length is replaced by its lower bound."""
    accesses = {ll_seq.access_of(row) for row in rows}
    least = max(bounds(ll_seq.length_of(row))[0] for row in rows)
    access = accesses.pop() if len(accesses) == 1 else "readwrite"
    return attribute_of({"access": access, "length": max(least, 0)})
