"""Style hal: a Python module that calls the HAL's public interface and no VM. Beside it lie the code of executables and
the constants, a file each.

The text comes from the bytecode of a module, of any version and producer. It is the same for the same module.
"""

from __future__ import annotations

import ast
from keyword import iskeyword
from typing import Final

from orchestrion.compiler.codegen.styles import Files, Options
from orchestrion.compiler.codegen.subject import Subject
from orchestrion.compiler.errors import CompileError
from orchestrion.schema.dtypes import DTYPES, DType
from orchestrion.schema.module import Module

from .calls import dtype_name
from .code import Code, exports_of
from .payloads import Payloads
from .program import ProgramText
from .support import CALL, CONSTANT, CONTROL_FLOW, HELPERS, PROGRAM, UPLOAD, VARIANT, selected, with_needs
from .text import Names, docstring, identifier, layout, plain, quoted, sequence

#: modules and the names that generated code may import; the ones that it does not use are left out
_IMPORTS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("collections.abc", ("Callable", "Mapping", "Sequence")),
    ("contextlib", ("ExitStack",)),
    ("pathlib", ("Path",)),
    ("threading", ("Lock",)),
    ("typing", ("Any", "ClassVar", "Final", "Generic", "NamedTuple", "Protocol", "Self", "TypeVar")),
    ("", ()),
    ("numpy as np", ()),
    ("numpy.typing as npt", ()),
    ("", ()),
    ("orchestrion.hal", ("host_control_flow",)),
    ("orchestrion.hal.backend", ("DeviceInfo", "Entry", "MemoryUse")),
    ("orchestrion.hal.buffer", ("Buffer", "BufferView")),
    ("orchestrion.hal.command_buffer", ("CommandBuffer",)),
    ("orchestrion.hal.device", ("Device",)),
    ("orchestrion.hal.errors", ("HalError", "InvalidArgument", "Unsupported")),
    ("orchestrion.hal.executable", ("Executable",)),
    ("orchestrion.hal.host_control_flow", ("HostControlFlow",)),
    ("orchestrion.hal.semaphore", ("Fence",)),
    ("orchestrion.schema.dtypes", ("BY_NAME", "DType")),
    ("orchestrion.schema.errors", ("ModuleError",)),
)
_TYPES: Final = '''
class Releasable(Protocol):
    """Memory, code or a recording of a device."""

    def release(self) -> None:
        """End its use."""


Resource = TypeVar("Resource", bound=Releasable)
'''


def generate(subject: Subject, name: str, options: Options) -> Files:
    """The Python module `NAME.py`, and the files of its code and constants.

    Raises CompileError for what HAL code cannot say, ModuleError for a damaged module.
    """
    module = subject.module()
    try:
        return _generate(module, subject, name)
    except RecursionError:
        raise CompileError(f"{subject.source}: branches or numbers are nested too deep for HAL code") from None


def _generate(module: Module, subject: Subject, name: str) -> Files:
    exports = exports_of(module)
    codes = [Code(module, ordinal, exports) for ordinal in _chosen(module, subject)]
    payloads = Payloads(module, name)
    imported = [one for _, names in _IMPORTS for one in names]
    classes = Names((*imported, *map(dtype_name, DTYPES)))
    title = classes.unique(f"{_camel(name)}Program" if iskeyword(_camel(name)) else _camel(name))
    texts, dtypes, helpers = _programs(codes, title, payloads, classes)
    head = _head(subject.source, module, name, codes)
    body = _support(module, name, sorted(dtypes, key=lambda dtype: dtype.code), helpers, "\n".join(texts)) + texts
    text = "\n\n\n".join(part.strip("\n") for part in body)
    return {f"{name}.py": f"{head}\n{_imports(text)}\n{text}\n", **payloads.files}


def _chosen(module: Module, subject: Subject) -> list[int]:
    """The ordinals of the programs to render."""
    names = [module.strings[row.profile] for row in module.programs]
    found = [at for at, profile in enumerate(names) if subject.targets is None or profile in subject.targets]
    if not found:
        wanted = "any target" if subject.targets is None else f"target {', '.join(subject.targets)}"
        raise CompileError(f"{subject.source}: has no program for {wanted}, only for {', '.join(names) or 'none'}")
    for at in found:
        if module.programs[at].devices != 1:
            program = module.strings[module.programs[at].name]
            raise CompileError(f"program {program}: wants {module.programs[at].devices} devices, HAL code has one")
    return found


def _programs(
    codes: list[Code], title: str, payloads: Payloads, classes: Names
) -> tuple[list[str], set[DType], set[str]]:
    """The text of each class, the element types and the helpers that they use."""
    several = len(codes) > 1
    rendered = [ProgramText(code, payloads) for code in codes]
    names = [title] if not several else [classes.unique(title + _camel(code.name)) for code in codes]
    texts = [rendered[0].interface(title)] if several else []
    first: dict[str, str] = {}
    for text, name in zip(rendered, names, strict=True):
        base = first.setdefault(text.body, name)
        texts.append(text.whole(name, title if several else "Program", None if base == name else base, not several))
    if several:
        texts.append(_choice(title, names, any(text.takes_parameters for text in rendered)))
    helpers = set().union(*[text.helpers for text in rendered])
    return texts, set().union(*[text.dtypes for text in rendered]), helpers


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in identifier(name).split("_"))


def _choice(title: str, names: list[str], parameters: bool) -> str:
    programs = "\n".join(layout("PROGRAMS: Final = ", sequence(names)))
    return f'''\
{programs}


def create(device: Device{", parameters: Parameters" * parameters}) -> {title}:
    """The first program that runs on a device. Raises Unsupported, with a reason per program, if none does."""
    reasons = []
    for program in PROGRAMS:
        reason = program.refusal(device.info)
        if not reason:
            return program.create(device{", parameters" * parameters})
        reasons.append(f"{{program.NAME}} ({{reason}})")
    info = device.info
    raise Unsupported(f"no program of {{NAME}} runs on device {{info.id}} ({{info.name}}): {{'; '.join(reasons)}}")'''


def _head(source: str, module: Module, name: str, codes: list[Code]) -> str:
    digest = module.container.digest.hex()
    programs = ", ".join(plain(code.name, 60) for code in codes)
    paragraphs = [
        f"{name}, written by vm-codegen --style=hal from {plain(source, 100)} (module {digest[:16]}).",
        f"It runs the program{'s' * (len(codes) > 1)} {programs} through the HAL, without the VM. The files beside it "
        "hold the code of executables and the constants. Changes are lost when it is generated again.",
        "The code that Orchestrion contributes is licensed under the Apache License, Version 2.0 "
        "(SPDX-License-Identifier: Apache-2.0). Code and weights of the model have the licence of the model.",
    ]
    return "\n".join(docstring(paragraphs, 0)) + "\n"


def _support(module: Module, name: str, dtypes: list[DType], helpers: set[str], classes: str) -> list[str]:
    """Everything before the classes."""
    constants = [f"NAME: Final = {quoted(name)}", "FOLDER: Final = Path(__file__).parent"]
    digest = module.container.digest.hex()
    constants += ["#: SHA-256 of the module's root, by which devices know whether its native code is trusted"]
    constants += layout("MODULE: Final = ", f"bytes.fromhex({quoted(digest)})")
    constants += ["#: recordings in one submission", "MOST_RECORDINGS: Final = 1024"]
    if "Recent" in helpers:
        constants += ["#: sizes for which recordings are kept", "MOST_SIZES: Final = 8"]
    constants += [f"{dtype_name(dtype)}: Final = BY_NAME[{quoted(dtype.name)}]" for dtype in dtypes]
    types = _TYPES + ('Made = TypeVar("Made")\n' if "Recent" in helpers else "")
    program = PROGRAM + (CONSTANT if "self._constant(" in classes else "")
    program += CONTROL_FLOW if "self._control_flow(" in classes else ""
    takes_parameters = "    PARAMETERS = " in classes
    program = selected(program, takes_parameters)
    types += "#: name -> values\nParameters = Mapping[str, npt.NDArray[Any]]\n" * takes_parameters
    parts = ["\n".join(constants), types, UPLOAD, *[HELPERS[helper] for helper in with_needs(helpers)]]
    return [*parts, VARIANT, CALL, program]


def _imports(text: str) -> str:
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    lines = ["import hashlib"]
    for module, names in _IMPORTS:
        found = [name for name in names if name in used]
        if found:
            lines += layout(f"from {module} import ", ", ".join(found))
        elif not names and (not module or module.rpartition(" ")[2] in used):
            lines.append(f"import {module}" if module else "")
    return "\n".join(lines) + "\n"
