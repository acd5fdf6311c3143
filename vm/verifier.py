"""Verifies a program before it runs. The interpreter relies on the result. Time is linear in the size of the code.

Each function: instructions are complete and known; registers are in range and in the right bank; only refs have move
bits; branch targets are starts of instructions; the last instruction ends the function; ordinals are in range; calls,
imports, returns and globals have the right types; the number of registers is in proportion to the code. The program:
only allowed functions store to a global; initializers have no arguments and results; exports have the signature that
callers see.

The type of a ref is verified if it is known without running the code: a register has a type if everything that is
written to it has that type. Other refs are checked by the instructions at run time. Unsound code is a `ModuleError`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from orchestrion.schema.encoding import Decoded, decode
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import BANKS, INSTRUCTIONS, MAX_REGISTERS, MOVE_BIT, Effect, Instruction
from orchestrion.schema.module import Module
from orchestrion.schema.rows import Function, GlobalFlags, ImportFlags, InitializerKind
from orchestrion.schema.signature import (
    NUMBER_TYPES,
    Shape,
    Signature,
    bank_of,
    is_value_type,
    parse_signature,
    shape_of,
)
from orchestrion.schema.versions import BYTECODE_MINOR, MAJOR

from .fast_verifier import prove
from .native import ImportRow
from .refs import TYPES
from .reftypes import WITHOUT_TYPES, RefTypes

# plain integers: an operation on enums takes longer than the rest of a row
_OPTIONAL, _MUTABLE, _SETUP = int(ImportFlags.Optional), int(GlobalFlags.Mutable), int(InitializerKind.Program)
_REF = BANKS.index("ref")
_ORDINAL = MOVE_BIT - 1
_BANK_OF = {name: bank for bank, name in enumerate(NUMBER_TYPES)}
#: effects of rows whose counted registers are verified with a signature: of the callee, or of the function itself
_WITH_SIGNATURE = frozenset((Effect.CALL, Effect.CACHED, Effect.NATIVE, Effect.RETURN))


class VerifiedFunction(NamedTuple):
    """A sound function."""

    ordinal: int
    name: str
    counts: tuple[int, ...]
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    parameters: tuple[int, ...]  #: register of each argument
    decoded: list[Decoded]
    fast_verified: bool  #: whether `fast_verifier.py` proved it: it is straight-line code that moves no ref


class VerifiedProgram(NamedTuple):
    """A sound program. `imports`: a row for each import of the module; None if the program's code does not use it."""

    functions: list[VerifiedFunction]
    imports: list[ImportRow | None]
    globals: list[tuple[str, bool]]  #: type, mutable


class _Plan(NamedTuple):
    """The checks for the instructions of one row."""

    registers: tuple[tuple[int, int, int], ...]  #: (place of the operand, bank, bits allowed beside the ordinal)
    rest: tuple[tuple[int, str], ...]  #: (place, key in `_CHECKS`) of other operands that are no immediates
    refs: bool  #: whether the row gives the types of its ref operands


def _plan(row: Instruction) -> _Plan:
    registers = []
    rest = []
    refs = False
    for place, spec in enumerate(row.operands):
        if spec.kind in BANKS:
            bank = BANKS.index(spec.kind)
            registers.append((place, bank, MOVE_BIT if bank == _REF and not spec.result else 0))
            refs = refs or bank == _REF
        elif spec.type == "integers":
            rest.append((place, spec.type))
        elif spec.kind == "registers":
            if row.effect not in _WITH_SIGNATURE:
                raise TypeError(f"{row.name}: no rule says what the registers {spec.name} may be")
        elif not spec.kind.startswith("imm_") and spec.kind != "text":
            rest.append((place, spec.kind))
    if row.effect is Effect.RETURN:
        rest.append((0, "results"))
    elif row.effect is Effect.CACHED:
        rest.append((1, "distinct"))
    return _Plan(tuple(registers), tuple(rest), refs and row.effect not in WITHOUT_TYPES)


_PLANS = {row.opcode: _plan(row) for row in INSTRUCTIONS}


def verify(module: Module, ordinal: int) -> VerifiedProgram:
    """Verify program `ordinal` of a module. `ModuleError` names the function and the pc."""
    return _Verifier(module, ordinal).program()


def _refuse_later(functions: Sequence[VerifiedFunction], minor: int) -> None:
    """`ModuleError` for an instruction that is later than the version that the program states: an earlier reader would
    report a damaged module instead of a later version.
    """
    for function in functions:
        for pc, row, _ in function.decoded:
            if row.since > minor:
                where = f"function[{function.ordinal}] pc {pc:#x}"
                came = f"{row.name} came with bytecode {MAJOR}.{row.since}"
                raise ModuleError(f"{where}: {came}, the program states {MAJOR}.{minor}")


class _Verifier:
    def __init__(self, module: Module, ordinal: int) -> None:
        self.module = module
        program = module.programs[ordinal]
        self.row = program
        strings, types = module.strings, module.types
        self.types = [strings[name] for name in types]
        for name in self.types:
            if name not in TYPES and not is_value_type(name):
                raise ModuleError(f"{name!r} is not a value type")
        self.rows = module.functions[program.functions_start : program.functions_end]
        self.signatures = [self._signature(row) for row in self.rows]
        self.globals = [
            (self.types[row.type], bool(row.flags & _MUTABLE))
            for row in module.globals[program.globals_start : program.globals_end]
        ]
        self.constants = program.constants_end - program.constants_start
        self.imports: list[ImportRow | None] = [None] * len(module.imports)
        self.shapes: dict[tuple[int, int], tuple[Shape, Shape]] = {}  #: by import and number of arguments
        self.parsed: dict[int, Signature] = {}  #: by the ordinal of its string, which many imports may share
        self.calls: list[set[int]] = [set() for _ in self.rows]
        self.stores: list[list[tuple[int, int]]] = [[] for _ in self.rows]  #: (pc, global) per function

    def _signature(self, row: Function) -> tuple[tuple[str, ...], tuple[str, ...]]:
        names, values = self.types, self.module.value_types
        return (
            tuple([names[at] for at in values[row.arguments_start : row.arguments_end]]),
            tuple([names[at] for at in values[row.results_start : row.results_end]]),
        )

    def program(self) -> VerifiedProgram:
        functions = [self._function(ordinal, row) for ordinal, row in enumerate(self.rows)]
        if self.row.bytecode_minor < BYTECODE_MINOR:
            _refuse_later(functions, self.row.bytecode_minor)
        self._initializers()
        self._exports()
        return VerifiedProgram(functions, self.imports, self.globals)

    def _function(self, ordinal: int, row: Function) -> VerifiedFunction:
        where = f"function[{ordinal}]"
        arguments, results = self.signatures[ordinal]
        code = self.module.bytecode[row.bytecode_start : row.bytecode_end]
        counts = row[-5:]
        parameters = _parameters(where, counts, arguments, len(code))
        name = self.module.strings[row.name]
        refs = [(register, type) for register, type in zip(parameters, arguments) if type not in _BANK_OF]  # noqa: B905
        proof = prove(self, counts, refs, shape_of(results), code)
        if proof is not None:
            self.stores[ordinal] += proof.stores
            return VerifiedFunction(ordinal, name, counts, arguments, results, parameters, proof.decoded, True)
        decoded = decode(code, where)
        if not decoded or not decoded[-1].row.terminator:
            last = f"ends with {decoded[-1].row.name}" if decoded else "has no instructions"
            raise ModuleError(f"{where} {last}: control would run off its end")
        _Body(self, ordinal, counts, arguments, results, parameters, decoded).check()
        return VerifiedFunction(ordinal, name, counts, arguments, results, parameters, decoded, False)

    def import_row(self, ordinal: int) -> ImportRow:
        found = self.imports[ordinal]
        if found is None:
            row = self.module.imports[ordinal]
            signature = self.parsed.get(row.signature)
            if signature is None:
                signature = self.parsed[row.signature] = parse_signature(self.module.strings[row.signature])
            optional = row.flags & _OPTIONAL != 0
            found = self.imports[ordinal] = ImportRow(self.module.strings[row.name], signature, optional)
        return found

    def call_shape(self, ordinal: int, arguments: int) -> tuple[Shape, Shape]:
        """The shapes of the arguments and of the results of a call of import `ordinal` with `arguments` arguments.

        Raises `LookupError` or `ModuleError` if the import cannot be called that way.
        """
        found = self.shapes.get((ordinal, arguments))
        if found is None:
            signature = (self.imports[ordinal] or self.import_row(ordinal)).signature
            taken = signature.shape(arguments)
            if taken is None:
                raise LookupError
            found = self.shapes[ordinal, arguments] = taken, signature.given
        return found

    def _initializers(self) -> None:
        """`ModuleError` unless immutable globals are stored to by program initializers only, and mutable globals by all
        other functions only.
        """
        program = self.row
        rows = self.module.initializers[program.initializers_start : program.initializers_end]
        for row in rows:
            if self.signatures[row.function] != ((), ()):
                raise ModuleError(f"function[{row.function}] is an initializer: it has arguments or results")
        setup = {row.function for row in rows if row.kind == _SETUP}
        entries = self.module.entries[program.entries_start : program.entries_end]
        used = {row.function for row in rows if row.kind != _SETUP}.union(entries, *self.calls)
        for ordinal in setup & used:
            raise ModuleError(f"function[{ordinal}] is a program initializer: no function may call it")
        before = _reachable(setup, self.calls)
        for ordinal, stores in enumerate(self.stores):
            for pc, place in stores:
                if not self.globals[place][1] and ordinal not in setup:
                    raise ModuleError(f"function[{ordinal}] pc {pc:#x}: global {place} is not mutable")
                if self.globals[place][1] and ordinal in before:
                    raise ModuleError(
                        f"function[{ordinal}] pc {pc:#x}: a program initializer stores to mutable global {place}"
                    )

    def _exports(self) -> None:
        """`ModuleError` unless the function of each export with tensors takes a view for each argument and for each
        destination, and returns a view for each result.
        """
        program = self.row
        entries = self.module.entries[program.entries_start : program.entries_end]
        for export, ordinal in zip(self.module.exports, entries, strict=True):
            arguments = export.arguments_end - export.arguments_start
            results = export.results_end - export.results_start
            if not arguments and not results:
                continue
            wanted = (("hal.view",) * (arguments + results), ("hal.view",) * results)
            if self.signatures[ordinal] != wanted:
                name = self.module.strings[export.name]
                raise ModuleError(
                    f"function[{ordinal}] is behind export {name!r}: "
                    f"expected {arguments + results} hal.view arguments and {results} hal.view results"
                )


def _parameters(where: str, counts: tuple[int, ...], arguments: Sequence[str], length: int) -> tuple[int, ...]:
    """The register of each argument. `ModuleError` for too many registers, or too few for the arguments."""
    total = sum(counts)
    if total > MAX_REGISTERS or total > len(arguments) + length // 2:
        raise ModuleError(f"{where} has {total} registers for {len(arguments)} arguments and {length} bytes of code")
    if not arguments:
        return ()
    bases = [sum(counts[:bank]) for bank in range(5)]
    used = [0, 0, 0, 0, 0]
    found = []
    for name in arguments:
        bank = _BANK_OF.get(name, _REF)
        found.append(bases[bank] + used[bank])
        used[bank] += 1
    for bank, count in enumerate(counts):
        if used[bank] > count:
            raise ModuleError(f"{where} has {used[bank]} {BANKS[bank]} arguments and {count} {BANKS[bank]} registers")
    return tuple(found)


def _reachable(roots: set[int], calls: list[set[int]]) -> set[int]:
    found = set(roots)
    todo = list(roots)
    while todo:
        fresh = calls[todo.pop()] - found
        found |= fresh
        todo += fresh
    return found


class _Body:
    """Verifies the instructions of one function."""

    def __init__(
        self,
        verifier: _Verifier,
        ordinal: int,
        counts: tuple[int, ...],
        arguments: tuple[str, ...],
        results: tuple[str, ...],
        parameters: tuple[int, ...],
        decoded: list[Decoded],
    ) -> None:
        self.verifier = verifier
        self.ordinal = ordinal
        self.results = shape_of(results)
        self.decoded = decoded
        i32, i64, f32, f64, ref = counts
        a, b, c, d = i32, i32 + i64, i32 + i64 + f32, i32 + i64 + f32 + f64
        self.bounds = ((0, a), (a, b), (b, c), (c, d), (d, d + ref))
        self.total = d + ref
        self.banks = [0] * i32 + [1] * i64 + [2] * f32 + [3] * f64 + [4] * ref
        self.starts: set[int] = set()  #: of instructions, once a branch asks for them
        self.pc = 0
        self.refs = RefTypes()
        for name, register in zip(arguments, parameters, strict=True):
            if register >= d:
                self.refs.write(register, name)

    def fail(self, message: str) -> ModuleError:
        return ModuleError(f"function[{self.ordinal}] pc {self.pc:#x}: {message}")

    def check(self) -> None:
        bounds = self.bounds
        for instruction in self.decoded:
            pc, row, operands = instruction
            self.pc = pc
            registers, rest, refs = _PLANS[row.opcode]
            for place, bank, bits in registers:
                low, high = bounds[bank]
                if not low <= operands[place] & ~bits < high:  # type: ignore[operator]
                    raise self._bad_register(operands[place], bank, bits)
            for place, kind in rest:
                _CHECKS[kind](self, row, operands, operands[place])
            if refs:
                self.refs.instruction(instruction)
        self.refs.check(self.ordinal)

    def _bad_register(self, register: Any, bank: int, bits: int) -> ModuleError:
        ordinal = register & ~bits
        if ordinal >= self.total:
            if register & MOVE_BIT and (register & ~MOVE_BIT) < self.total:
                return self.fail(f"register {register & ~MOVE_BIT} must not have a move bit")
            return self.fail(f"register {ordinal} out of range ({self.total} registers)")
        actual = next(name for name, (low, high) in zip(BANKS, self.bounds, strict=True) if low <= ordinal < high)
        return self.fail(f"register {ordinal} is {actual}, expected {BANKS[bank]}")

    def _typed(self, registers: Any, shape: Shape, what: str, reads: bool) -> None:
        """Verify the registers of a call or a return: their number and banks. Note the types of refs.

        `what`: the registers in messages. `reads`: whether they are read, not written.
        """
        banks = self.banks
        try:
            found = [banks[register] for register in registers]
        except IndexError:  # out of range, or with a move bit
            found = None
        if found != shape.banks:
            registers = self._without_moves(registers, shape, what, reads)
        if reads:
            pc, note = self.pc, self.refs.reads.append
            for place, name in shape.refs:
                note((pc, registers[place], name, what))
        else:
            for place, name in shape.refs:
                self.refs.write(registers[place], name)

    def _without_moves(self, registers: Any, shape: Shape, what: str, reads: bool) -> list[int]:
        """The registers without move bits, which only refs that are read may have. `ModuleError` if one is wrong."""
        if len(registers) != len(shape.types):
            raise self.fail(f"{len(registers)} {what}s, expected {len(shape.types)}")
        plain = []
        for register, bank in zip(registers, shape.banks):  # noqa: B905  compared above
            if bank == _REF and reads:
                register &= _ORDINAL
            low, high = self.bounds[bank]
            if not low <= register < high:
                raise self._bad_register(register, bank, 0)
            plain.append(register)
        return plain

    def returns(self, row: Instruction, operands: Any, value: Any) -> None:
        self._typed(value, self.results, "result", True)

    def target(self, row: Instruction, operands: Any, value: Any) -> None:
        if not self.starts:
            self.starts.update(instruction.pc for instruction in self.decoded)
        if value not in self.starts:
            raise self.fail(f"branch target {value:#x} is not the start of an instruction")

    def targets(self, row: Instruction, operands: Any, value: Any) -> None:
        for target in value:
            self.target(row, operands, target)

    def function(self, row: Instruction, operands: Any, value: Any) -> None:
        signatures = self.verifier.signatures
        if value >= len(signatures):
            raise self.fail(f"function {value} out of range ({len(signatures)} functions)")
        arguments, results = signatures[value]
        self._typed(operands[1], shape_of(arguments), "argument", True)
        self._typed(operands[2], shape_of(results), "result", False)
        self.verifier.calls[self.ordinal].add(value)

    def integers(self, row: Instruction, operands: Any, value: Any) -> None:
        """All registers are i32 or i64."""
        for register in value:
            if register >= self.bounds[1][1]:
                raise self._bad_register(register, 1, 0)

    def distinct(self, row: Instruction, operands: Any, value: Any) -> None:
        """No register is both an argument and a result."""
        if not set(value).isdisjoint(operands[2]):
            raise self.fail(f"an argument of {row.name} is also a result")

    def imported(self, row: Instruction, operands: Any, value: Any) -> None:
        rows = self.verifier.imports
        if value >= len(rows):
            raise self.fail(f"import {value} out of range ({len(rows)} imports)")
        callee = rows[value] or self.verifier.import_row(value)
        if row.effect is not Effect.NATIVE:
            return
        _, args, results = operands
        shape = callee.signature.shape(len(args))
        if shape is None:
            raise self.fail(f"{len(args)} arguments do not fit {callee.name} {callee.signature}")
        self._typed(args, shape, "argument", True)
        if results or callee.signature.results:
            self._typed(results, callee.signature.given, "result", False)

    def constant(self, row: Instruction, operands: Any, value: Any) -> None:
        if value >= self.verifier.constants:
            raise self.fail(f"constant {value} out of range ({self.verifier.constants} constants)")

    def global_(self, row: Instruction, operands: Any, value: Any) -> None:
        rows = self.verifier.globals
        if value >= len(rows):
            raise self.fail(f"global {value} out of range ({len(rows)} globals)")
        type_name = rows[value][0]
        stores = row.effect is Effect.STORE
        bank = row.operands[0 if stores else 1].kind
        if bank_of(type_name) != bank:
            raise self.fail(f"global {value} is {type_name}, expected {bank}")
        if stores:
            self.verifier.stores[self.ordinal].append((self.pc, value))
        if bank == "ref" and stores:
            self.refs.reads.append((self.pc, operands[0] & _ORDINAL, type_name, f"value of global {value}"))
        elif bank == "ref":
            self.refs.write(operands[1], type_name)


_CHECKS: dict[str, Any] = {
    "target": _Body.target,
    "targets": _Body.targets,
    "function": _Body.function,
    "import": _Body.imported,
    "constant": _Body.constant,
    "global": _Body.global_,
    "results": _Body.returns,
    "integers": _Body.integers,
    "distinct": _Body.distinct,
}
