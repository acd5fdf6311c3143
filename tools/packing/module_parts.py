"""Which rows and segments of a module belong to which program, for thinning and the lint rules."""

from collections.abc import Iterator, Sequence

from orchestrion.hal.backend import Entry
from orchestrion.schema.module import Module
from orchestrion.schema.rows import ACCESSES, NONE, Executable, Program, Variant

_ACCESS_NAMES: dict[int, str] = {code: name for name, code in ACCESSES.items()}


def constants_of(module: Module, program: Program) -> set[int]:
    """The segments of the program's constants."""
    return {row.segment for row in module.constants[program.constants_start : program.constants_end]}


def executables_of(module: Module, program: Program) -> Sequence[Executable]:
    return module.executables[program.executables_start : program.executables_end]


def variants_of(module: Module, executable: Executable) -> Sequence[Variant]:
    return module.variants[executable.variants_start : executable.variants_end]


def all_variants(module: Module, program: Program) -> Iterator[tuple[Executable, Variant]]:
    for executable in executables_of(module, program):
        for variant in variants_of(module, executable):
            yield executable, variant


def source_map_of(program: Program) -> set[int]:
    """The segment of the program's debug information, if any."""
    return set() if program.source_map == NONE else {program.source_map}


def entries_of(module: Module, executable: Executable, variant: Variant) -> tuple[Entry, ...]:
    """The entries of a variant, as a device gets them."""
    sizes = module.workgroup_sizes[variant.workgroup_sizes_start : variant.workgroup_sizes_end]
    rows = module.executable_entries[executable.entries_start : executable.entries_end]
    found = []
    for entry, (x, y, z) in zip(rows, sizes, strict=True):
        bindings = module.bindings[entry.bindings_start : entry.bindings_end]
        taken = tuple((_ACCESS_NAMES[row.access], row.length) for row in bindings)
        found.append(Entry(module.strings[entry.name], taken, entry.parameter_words, (x, y, z)))
    return tuple(found)


def is_complete(module: Module, program: Program) -> bool:
    """Whether this file has all constants of a program, and a variant of each of its executables."""
    if any(module.missing(segment) for segment in constants_of(module, program)):
        return False
    return all(
        any(not module.missing(row.payload) for row in variants_of(module, executable))
        for executable in executables_of(module, program)
    )
