"""Mutators of a module's rows, before they are written: each changes one kind of thing and leaves the rest sound."""

import random
from dataclasses import replace
from typing import Any

from mutate_numbers import Impossible, damaged, edited, replaced, signed, size, unsigned

from orchestrion.schema import writer
from orchestrion.schema.dtypes import DTYPES
from orchestrion.schema.profiles import FEATURES, PROFILES
from orchestrion.schema.rows import Access, InitializerKind
from orchestrion.schema.signature import BUILTIN_REF_TYPES, NUMBER_TYPES

VALUE_TYPES = (*NUMBER_TYPES, *BUILTIN_REF_TYPES, "hal.buffer", "hal.view", "hal.recording", "hal.fence", "hal.none")
Modules = list[writer.Module]


def in_program(choose: random.Random, module: writer.Module, change: Any) -> writer.Module:
    """The module with `change(program)` for the program that the reference device takes."""
    places = [at for at, row in enumerate(module.programs) if row.profile == "reference"]
    if not places:
        raise Impossible
    programs = list(module.programs)
    programs[places[0]] = change(programs[places[0]])
    return replace(module, programs=tuple(programs))


def in_function(choose: random.Random, module: writer.Module, change: Any) -> writer.Module:
    """With `change(program, function)` for one function."""
    return in_program(
        choose,
        module,
        lambda program: replace(
            program, functions=replaced(choose, tuple(program.functions), lambda row: change(program, row))
        ),
    )


def registers(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def change(program: writer.Program, row: writer.Function) -> writer.Function:
        return replace(row, registers=replaced(choose, row.registers, lambda old: unsigned(choose, 16, old)))

    return in_function(choose, module, change)


def signatures(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """Argument and result types of functions."""

    def change(program: writer.Program, row: writer.Function) -> writer.Function:
        name = choose.choice(("arguments", "results"))
        types = tuple(getattr(row, name))
        if choose.random() < 0.3 or not types:
            types = (*types, choose.choice(VALUE_TYPES))
        elif choose.random() < 0.5:
            types = edited(choose, types)
        else:
            types = replaced(choose, types, lambda old: choose.choice(VALUE_TYPES))
        return replace(row, **{name: types})

    return in_function(choose, module, change)


def functions(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """Functions swapped, removed, doubled; other functions behind the exports."""

    def change(program: writer.Program) -> writer.Program:
        if choose.random() < 0.5:
            return replace(program, functions=edited(choose, tuple(program.functions)))
        entries = replaced(choose, tuple(program.entries), lambda old: choose.randrange(len(program.functions) + 1))
        return replace(program, entries=entries)

    return in_program(choose, module, change)


def globals_(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def one(row: writer.Global) -> writer.Global:
        match choose.randrange(3):
            case 0:
                return replace(row, type=choose.choice(VALUE_TYPES), value=0)
            case 1:
                return replace(row, mutable=not row.mutable)
            case _:
                bits = {"i32": 32, "i64": 64}.get(row.type)
                number = choose.choice((float("nan"), float("inf"), -0.0, 1e300, 1e-320))
                return replace(row, value=signed(choose, bits) if bits else number)

    def change(program: writer.Program) -> writer.Program:
        rows = tuple(program.globals)
        return replace(program, globals=edited(choose, rows) if choose.random() < 0.3 else replaced(choose, rows, one))

    return in_program(choose, module, change)


def initializers(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def change(program: writer.Program) -> writer.Program:
        kind = choose.choice(list(InitializerKind))
        row = writer.Initializer(choose.randrange(len(program.functions) or 1), kind)
        rows = tuple(program.initializers)
        if choose.random() < 0.1:
            return replace(program, initializers=rows * choose.choice((2, 1000)))
        if not rows or choose.random() < 0.3:
            return replace(program, initializers=(*rows, row))
        return replace(program, initializers=choose.choice((edited(choose, rows), (*rows[1:], row))))

    return in_program(choose, module, change)


def _dims(choose: random.Random, dims: tuple[int, ...]) -> tuple[int, ...]:
    if choose.random() < 0.3:
        return (*dims, size(choose)) if not dims or choose.random() < 0.7 else dims * choose.choice((2, 40))
    return replaced(choose, dims, lambda old: size(choose, old)) if dims else (size(choose),)


def constants(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def one(row: writer.Constant) -> writer.Constant:
        data = bytes(row.data)
        match choose.randrange(4):
            case 0:
                return replace(row, dtype=choose.choice(DTYPES))
            case 1:
                return replace(row, dims=_dims(choose, tuple(row.dims)))
            case 2:
                return replace(row, data=damaged(choose, data))
            case _:
                return replace(row, data=data[: choose.randrange(len(data) + 1)])

    def change(program: writer.Program) -> writer.Program:
        rows = tuple(program.constants)
        return replace(
            program, constants=edited(choose, rows) if choose.random() < 0.2 else replaced(choose, rows, one)
        )

    return in_program(choose, module, change)


def _entry(choose: random.Random, row: writer.Entry) -> writer.Entry:
    if choose.random() < 0.2:
        return replace(row, parameter_words=unsigned(choose, 32))
    bindings = tuple(row.bindings)
    if choose.random() < 0.4:
        return replace(row, bindings=edited(choose, bindings))

    def binding(old: writer.Binding) -> writer.Binding:
        if choose.random() < 0.5:
            return replace(old, access=choose.choice(list(Access)))
        return replace(old, length=size(choose, old.length))

    return replace(row, bindings=replaced(choose, bindings, binding))


def _variant(choose: random.Random, row: writer.Variant) -> writer.Variant:
    match choose.randrange(5):
        case 0:
            return replace(row, format=choose.choice([profile.format for profile in PROFILES.values()] + ["none"]))
        case 1:
            return replace(row, features=frozenset(choose.sample(list(FEATURES), 2)))
        case 2:
            return replace(row, shared_memory_bytes=unsigned(choose, 32))
        case 3:
            return replace(row, workgroup_sizes=edited(choose, tuple(row.workgroup_sizes)))
        case _:
            sizes = replaced(
                choose,
                tuple(row.workgroup_sizes),
                lambda old: replaced(choose, old, lambda number: unsigned(choose, 32, number)),
            )
            return replace(row, workgroup_sizes=sizes)


def executables(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def one(row: writer.Executable) -> writer.Executable:
        match choose.randrange(4):
            case 0:
                return replace(row, entries=edited(choose, tuple(row.entries)))
            case 1:
                return replace(row, entries=replaced(choose, tuple(row.entries), lambda old: _entry(choose, old)))
            case 2:
                return replace(row, variants=edited(choose, tuple(row.variants)))
            case _:
                return replace(row, variants=replaced(choose, tuple(row.variants), lambda old: _variant(choose, old)))

    def change(program: writer.Program) -> writer.Program:
        rows = tuple(program.executables)
        if choose.random() < 0.2:
            return replace(program, executables=edited(choose, rows))
        return replace(program, executables=replaced(choose, rows, one))

    return in_program(choose, module, change)


def exports(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def value(row: writer.Value) -> writer.Value:
        match choose.randrange(3):
            case 0:
                return replace(row, dtype=choose.choice(DTYPES))
            case 1:
                return replace(row, dims=_dims(choose, tuple(row.dims)))
            case _:
                return replace(row, name=choose.choice(("", "out", row.name * 2)))

    def one(row: writer.Export) -> writer.Export:
        name = choose.choice(("arguments", "results"))
        values = tuple(getattr(row, name))
        if choose.random() < 0.3:
            return replace(row, **{name: edited(choose, values)})
        return replace(row, **{name: replaced(choose, values, value)})

    if choose.random() < 0.1:
        return replace(module, exports=replaced(choose, tuple(module.exports), _odd_name(choose)))
    return replace(module, exports=replaced(choose, tuple(module.exports), one))


def _odd_name(choose: random.Random) -> Any:
    names = ("", "close", "context", "functions", "__class__", "_load", "name", "device", "a b", "\N{SNOWMAN}", "main")
    return lambda row: replace(row, name=choose.choice(names))


def imports(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def one(row: writer.Import) -> writer.Import:
        match choose.randrange(4):
            case 0:
                return replace(row, optional=not row.optional)
            case 1:
                return replace(row, name=choose.choice((*(other.name for other in module.imports), "hal.", "x", "")))
            case 2:
                return replace(row, signature=choose.choice([other.signature for other in module.imports]))
            case _:
                return replace(row, signature=_text(choose, row.signature))

    rows = tuple(module.imports)
    return replace(module, imports=edited(choose, rows) if choose.random() < 0.2 else replaced(choose, rows, one))


def _text(choose: random.Random, text: str) -> str:
    """A word of a signature replaced, a piece removed or doubled."""
    start = choose.randrange(len(text) + 1)
    end = min(len(text), start + choose.randrange(6))
    piece = choose.choice(("", "*", "(", ")", ", ", "->", "any", "i32", "list<any>", text[start:end] * 2))
    return text[:start] + piece + text[end:]


def programs(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    if choose.random() < 0.5:
        return replace(module, programs=edited(choose, tuple(module.programs)))

    def one(row: writer.Program) -> writer.Program:
        if choose.random() < 0.5:
            return replace(row, profile=choose.choice([*PROFILES, "none"]))
        return replace(row, features=frozenset(choose.sample(list(FEATURES), 2)))

    return replace(module, programs=replaced(choose, tuple(module.programs), one))


def attributes(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """Attributes of module, exports and programs, custom segments, constants with digests of their pieces."""
    found = {
        choose.choice(("model.name", "model.version", "", "a")): choose.choice(("7", "-1", "\N{SNOWMAN}", b"\xff", b""))
        for _ in range(choose.randrange(4))
    }
    match choose.randrange(4):
        case 0:
            return replace(module, attributes=found)
        case 1:
            rows = replaced(choose, tuple(module.exports), lambda row: replace(row, attributes=found))
            return replace(module, exports=rows)
        case 2:
            rows = replaced(choose, tuple(module.programs), lambda row: replace(row, attributes=found))
            return replace(module, programs=rows)
    custom = {choose.choice(("a", "", "org.example")): choose.randbytes(choose.choice((0, 5)))}
    module = replace(module, custom=custom)
    return in_program(
        choose,
        module,
        lambda row: replace(row, constants=[replace(constant, chunked=True) for constant in row.constants]),
    )


def versions(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """Versions of bytecode and of variants that are later than they need to be."""

    def change(program: writer.Program) -> writer.Program:
        minor = choose.choice((1, 2, 9, 0xFFFF))
        if choose.random() < 0.3:
            return replace(program, bytecode_minor=minor)

        def one(row: writer.Executable) -> writer.Executable:
            later = replaced(choose, tuple(row.variants), lambda old: replace(old, format_minor=minor))
            return replace(row, variants=later)

        return replace(program, executables=replaced(choose, tuple(program.executables), one))

    return in_program(choose, module, change)


def crossover(choose: random.Random, module: writer.Module, others: Modules) -> writer.Module:
    """Rows of one kind from another module."""
    other = choose.choice(others)
    kind = choose.choice(("imports", "exports", "functions", "globals", "executables", "constants", "initializers"))
    if kind in ("imports", "exports"):
        return replace(module, **{kind: getattr(other, kind)})
    donors = [row for row in other.programs if row.profile == "reference"]
    if not donors:
        raise Impossible

    def change(program: writer.Program) -> writer.Program:
        rows, taken = tuple(getattr(program, kind)), tuple(getattr(donors[0], kind))
        if not taken or not rows:
            raise Impossible
        place = choose.randrange(len(rows))
        return replace(program, **{kind: (*rows[:place], choose.choice(taken), *rows[place + 1 :])})

    return in_program(choose, module, change)
