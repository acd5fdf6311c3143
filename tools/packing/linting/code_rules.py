"""The lint rules about code: what runs, what it may access, whether it is valid. Each yields a line per violation."""

from collections.abc import Iterator

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.hal.errors import HalError
from orchestrion.hal.reference.executable import Code, ReferenceExecutable
from orchestrion.hal.vulkan import spirv_check, spirv_limits
from orchestrion.schema import tensor_bytecode
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.profiles import FORMATS, PROFILES
from orchestrion.schema.tensor_encoding import decode
from orchestrion.schema.tensor_template import decode_template, is_template
from orchestrion.schema.versions import BYTECODE_MINOR, FORMAT_MINORS, needs
from orchestrion.tools.packing.module_parts import all_variants, entries_of
from orchestrion.vm.verifier import verify

from .subject import LintSubject


def digests(subject: LintSubject) -> Iterator[str]:
    yield from subject.damaged.values()
    for row in subject.module.container.attachments:
        try:
            row.verified()
        except ModuleError as error:
            yield str(error)


def complete(subject: LintSubject) -> Iterator[str]:
    if not subject.programs:
        names = ", ".join(subject.module.strings[row.name] for row in subject.module.programs)
        yield f"no program has all of its segments in this file; the module has {names or 'none'}"


def bytecode(subject: LintSubject) -> Iterator[str]:
    """Verifies all programs, because bytecode is in the root and is never removed."""
    module = subject.module
    for ordinal, row in enumerate(module.programs):
        if row.bytecode_minor > BYTECODE_MINOR:
            yield f"program {module.strings[row.name]}: {needs('bytecode', row.bytecode_minor, BYTECODE_MINOR)}"
            continue
        try:
            verify(module, ordinal)
        except ModuleError as error:
            yield f"program {module.strings[row.name]}: {error}"


def device_code(subject: LintSubject) -> Iterator[str]:
    module = subject.module
    for _, name, program in subject.programs:
        for executable, variant in all_variants(module, program):
            format = module.strings[variant.format]
            if format not in _CHECKERS or not subject.has(variant.payload):
                continue
            place = f"program {name}, executable {module.strings[executable.name]}"
            if variant.format_minor > FORMAT_MINORS[format]:
                yield f"{place}: {needs(format, variant.format_minor, FORMAT_MINORS[format])}"
                continue
            try:
                _CHECKERS[format](module.segment(variant.payload), entries_of(module, executable, variant))
            except (ModuleError, HalError) as error:
                yield f"{place}: {error}"


def _check_spirv(payload: memoryview, entries: tuple[Entry, ...]) -> None:
    spirv_limits.check_limits(np.frombuffer(payload[: payload.nbytes // 4 * 4], "<u4"))
    spirv_check.verify(payload, entries)


def _check_tensor_bytecode(payload: memoryview, entries: tuple[Entry, ...]) -> None:
    """Code with library calls is only decoded, because its functions may exist on other machines only."""
    if not _library_calls(payload):
        ReferenceExecutable(Code(payload, _never), entries)


def _never() -> None:
    """The poll function: nothing runs here, so nothing is interrupted."""


_CHECKERS = {"spirv": _check_spirv} | dict.fromkeys(tensor_bytecode.FORMATS, _check_tensor_bytecode)


def native_code(subject: LintSubject) -> Iterator[str]:
    """Checks the profile of a program as well as the format of its code. Formats and profiles of other packages count
    as native, because devices that get the module may not have these packages.
    """
    module = subject.module
    confined = {row.name for row in FORMATS.values() if row.confined}
    for _, name, program in subject.programs:
        profile = PROFILES.get(module.strings[program.profile])
        there = [row for _, row in all_variants(module, program) if not module.missing(row.payload)]
        formats = {module.strings[variant.format] for variant in there}
        native = sorted(formats - confined)
        if native:
            yield f"program {name} holds {', '.join(native)}"
        elif profile is None or profile.format not in confined:
            yield f"program {name} is for profile {module.strings[program.profile]}, whose code is not confined"


def imports(subject: LintSubject) -> Iterator[str]:
    module = subject.module
    for row in module.imports:
        if module.strings[row.name] not in subject.profile.imports:
            yield f"{module.strings[row.name]} {module.strings[row.signature]}"


def library_calls(subject: LintSubject) -> Iterator[str]:
    module = subject.module
    for _, name, program in subject.programs:
        for executable, variant in all_variants(module, program):
            if module.strings[variant.format] not in tensor_bytecode.FORMATS or not subject.has(variant.payload):
                continue
            try:
                found = _library_calls(module.segment(variant.payload))
            except ModuleError:  # the rule `device-code` reports it
                continue
            for function in sorted(found):
                yield f"program {name}, executable {module.strings[executable.name]} calls {function}"


def _library_calls(payload: memoryview) -> set[str]:
    """The names of the library functions that tensor bytecode calls. Raises ModuleError if it is malformed."""
    code = decode_template(payload).payload if is_template(payload) else payload
    row = tensor_bytecode.LIBRARY_CALL
    place = [kind for _, kind in row.attributes].index("function")
    return {one.attributes[place] for entry in decode(code).entries for one in entry.instructions if one.row is row}
