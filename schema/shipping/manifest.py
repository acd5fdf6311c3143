"""Manifests: a module's identity and requirements, in a few KB of JSON that an app reads before it downloads the
module.

    {"manifest": "1.0", "model": ..., "file": ..., "format": ..., "programs": [...], ...}

The dataclasses below define the form: a field is a key, a field with a default may be absent. Rules:

- Strict JSON in UTF-8, at most MAX_BYTES: no key twice, no number with a fraction, nothing of another type.
- `manifest` is the version of the form. Another major version is refused. In a manifest of a higher minor version
  unknown keys are ignored; in others they are refused by name, so that misspelt keys are detected. Keys that begin with
  `x-` are for other tools and always ignored.
- `requires` names additions that a reader must know. One that this version does not know is refused by name.

A manifest repeats claims of the module; nothing here proves them. `vm.check` decides whether a device can run it.
"""

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any

from orchestrion.schema.errors import ModuleError

MAJOR, MINOR = 1, 0
MAX_BYTES = 1 << 20
#: the most characters of a text, and rows of a list
MAX_TEXT, MAX_ROWS = 4096, 65536
#: the most hexadecimal digits of a signature set, and segments of a module that a manifest can describe
MAX_HEX, MAX_SEGMENTS = 65536, 1 << 20

_VERSION = re.compile(r"(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{2})+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Model:
    """The module's attributes `model.name` and `model.version`."""

    name: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class File:
    """The module file: `digest` is that of its root, which identifies the module; `sha256` is that of all bytes."""

    bytes: int
    digest: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Format:
    """The least version of the module format that the file needs, and the features that a reader must know, as bits."""

    major: int
    minor: int
    features: int = 0
    producer: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant. `features` are bits of `profiles.FEATURES`; `absent` is the segment that was removed from the file, if
    any.

    `invocations`: the most invocations in a workgroup of an entry.
    """

    format: str
    features: int = 0
    format_minor: int = 0
    shared_memory_bytes: int = 0
    invocations: int = 1
    absent: int | None = None


@dataclass(frozen=True, slots=True)
class Executable:
    """`count` executables with the same variants, best first; `name` is that of the first executable."""

    name: str
    count: int
    variants: tuple[Variant, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """A function of another native module than `hal` that the program calls."""

    name: str
    signature: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Maxima:
    """The greatest values of a program's entries, each with the name of the entry."""

    bindings: int = 0
    bindings_of: str = ""
    binding_bytes: int = 0
    binding_bytes_of: str = ""
    parameter_bytes: int = 0
    parameter_bytes_of: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """One program. `constant_bytes`: bytes of its constants; `absent`: a segment of them that was removed from the
    file.

    `libraries`: the library functions that it calls.
    """

    name: str
    profile: str
    features: int = 0
    bytecode_minor: int = 0
    devices: int = 1
    constant_bytes: int = 0
    absent: int | None = None
    executables: tuple[Executable, ...] = ()
    imports: tuple[Import, ...] = ()
    libraries: tuple[str, ...] = ()
    most: Maxima = Maxima()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that the module reads from another file; `digest` is that of its default, "" if any value is
    accepted.
    """

    name: str
    type: str
    bytes: int
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A declared limit, an attribute `limits.NAME` of the module's root."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Part:
    """An attachment or trailing section of the file, which its root does not name; signatures cover it separately."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a bundle: its role, and the size and digest of its bytes in the archive."""

    name: str
    role: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest. `parameters` may be incomplete; `parameter_count` counts all. `entries` are those of a bundle,
    without the manifest itself.

    `signers`: ids of the signing keys, in hex. `signatures`: the signature sets, in hex. `scopes`: the scopes that the
    signers must cover together. So a trust policy can decide on the manifest as on the module.
    """

    manifest: str
    file: File
    format: Format
    model: Model = Model()
    programs: tuple[Program, ...] = ()
    parameter_count: int = 0
    parameter_bytes: int = 0
    parameters: tuple[Parameter, ...] = ()
    limits: tuple[Limit, ...] = ()
    scopes: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    signers: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    requires: tuple[str, ...] = ()


#: returns the value of a field, or raises ModuleError; the second argument is the path of the field
Reader = Callable[[Any, str], Any]


def _text(value: Any, where: str) -> str:
    if type(value) is not str or len(value) > MAX_TEXT:
        raise ModuleError(f"manifest: {where} is not a text of at most {MAX_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ModuleError(f"manifest: {where} is not UTF-8") from None
    return value


def _number(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ModuleError(f"manifest: {where} is not a whole number from 0 to 2**64 - 1")
    return value


def _flag(value: Any, where: str) -> bool:
    if type(value) is not bool:
        raise ModuleError(f"manifest: {where} is neither true nor false")
    return value


def _digest(value: Any, where: str) -> str:
    if type(value) is not str or not _DIGEST.fullmatch(value):
        raise ModuleError(f"manifest: {where} is not a SHA-256 in 64 hexadecimal digits")
    return value


def _maybe(read: Reader) -> Reader:
    def field(value: Any, where: str) -> Any:
        return None if value is None else read(value, where)

    return field


def _hex(value: Any, where: str) -> str:
    if type(value) is not str or len(value) > MAX_HEX or not _HEX.fullmatch(value):
        raise ModuleError(f"manifest: {where} is not at most {MAX_HEX} hexadecimal digits")
    return value


def _ordinal(value: Any, where: str) -> int | None:
    if value is not None and (type(value) is not int or not 0 <= value < MAX_SEGMENTS):
        raise ModuleError(f"manifest: {where} is not the ordinal of a segment")
    return value


def _digest_or_none(value: Any, where: str) -> str:
    return "" if value == "" else _digest(value, where)


def _rows(read: Reader) -> Reader:
    def field(value: Any, where: str) -> tuple[Any, ...]:
        if type(value) is not list or len(value) > MAX_ROWS:
            raise ModuleError(f"manifest: {where} is not a list of at most {MAX_ROWS} rows")
        return tuple([read(item, f"{where}[{at}]") for at, item in enumerate(value)])

    return field


def _object(kind: type[Any]) -> Reader:
    """Reads a JSON object as a dataclass. Unknown keys are refused, unless they were removed before."""

    def field(value: Any, where: str) -> Any:
        if type(value) is not dict:
            raise ModuleError(f"manifest: {where} is not an object")
        readers = READERS[kind]
        known: dict[str, Any] = {}
        for key, item in value.items():
            if key.startswith("x-"):
                continue
            if key not in readers:
                raise ModuleError(f"manifest: {where or 'it'} has the unknown key {key!r:.80}")
            known[key] = readers[key](item, f"{where}.{key}" if where else key)
        for name in REQUIRED[kind] - known.keys():
            raise ModuleError(f"manifest: {where or 'it'} lacks the key {name!r}")
        return kind(**known)

    return field


#: dataclass -> field -> its reader
READERS: dict[type[Any], dict[str, Reader]] = {
    Model: {"name": _maybe(_text), "version": _maybe(_number)},
    File: {"bytes": _number, "digest": _digest, "sha256": _digest},
    Format: {"major": _number, "minor": _number, "features": _number, "producer": _text},
    Variant: {
        "format": _text,
        "features": _number,
        "format_minor": _number,
        "shared_memory_bytes": _number,
        "invocations": _number,
        "absent": _ordinal,
    },
    Executable: {"name": _text, "count": _number, "variants": _rows(_object(Variant))},
    Import: {"name": _text, "signature": _text, "optional": _flag},
    Maxima: {
        "bindings": _number,
        "bindings_of": _text,
        "binding_bytes": _number,
        "binding_bytes_of": _text,
        "parameter_bytes": _number,
        "parameter_bytes_of": _text,
    },
    Program: {
        "name": _text,
        "profile": _text,
        "features": _number,
        "bytecode_minor": _number,
        "devices": _number,
        "constant_bytes": _number,
        "absent": _ordinal,
        "executables": _rows(_object(Executable)),
        "imports": _rows(_object(Import)),
        "libraries": _rows(_text),
        "most": _object(Maxima),
    },
    Parameter: {"name": _text, "type": _text, "bytes": _number, "digest": _digest_or_none},
    Limit: {"name": _text, "value": _text},
    Part: {"name": _text, "sha256": _digest},
    Entry: {"name": _text, "role": _text, "bytes": _number, "sha256": _digest},
    Manifest: {
        "manifest": _text,
        "file": _object(File),
        "format": _object(Format),
        "model": _object(Model),
        "programs": _rows(_object(Program)),
        "parameter_count": _number,
        "parameter_bytes": _number,
        "parameters": _rows(_object(Parameter)),
        "limits": _rows(_object(Limit)),
        "scopes": _rows(_text),
        "parts": _rows(_object(Part)),
        "signers": _rows(_digest),
        "signatures": _rows(_hex),
        "entries": _rows(_object(Entry)),
        "requires": _rows(_text),
    },
}
REQUIRED: dict[type[Any], set[str]] = {kind: {f.name for f in fields(kind) if f.default is MISSING} for kind in READERS}


def read_manifest(data: bytes | bytearray | memoryview) -> Manifest:
    """Parses a manifest. Raises ModuleError, which states what is invalid or too new."""
    found = _parse(bytes(data[: MAX_BYTES + 1]))
    if type(found) is not dict:
        raise ModuleError("manifest: not a JSON object")
    minor = _check_version(found.get("manifest"))
    requires = _rows(_text)(found.get("requires", []), "requires")
    if requires:
        raise ModuleError(f"the manifest requires {', '.join(requires)[:200]}, which this version does not know")
    made: Manifest = _object(Manifest)(_without_unknown(Manifest, found) if minor > MINOR else found, "")
    _check_entries(made)
    return made


def _check_version(text: Any) -> int:
    """The minor version. Raises ModuleError for another major version."""
    match = _VERSION.fullmatch(text) if type(text) is str else None
    if match is None:
        raise ModuleError("not a manifest: it has no version such as \"1.0\" under the key 'manifest'")
    if int(match[1]) != MAJOR:
        raise ModuleError(f"the manifest has version {text}, this version of the package reads {MAJOR}.{MINOR}")
    return int(match[2])


def _without_unknown(kind: type[Any], value: Any) -> Any:
    """The keys of a newer minor version's object that this version knows."""
    if type(value) is list:
        return [_without_unknown(kind, item) for item in value]
    if type(value) is not dict:
        return value
    inner = NESTED[kind]
    return {
        key: _without_unknown(inner[key], item) if key in inner else item
        for key, item in value.items()
        if key in READERS[kind]
    }


#: dataclass -> field -> the dataclass that it contains
NESTED: dict[type[Any], dict[str, type[Any]]] = {kind: {} for kind in READERS} | {
    Manifest: {
        "file": File, "format": Format, "model": Model, "programs": Program, "parameters": Parameter, "limits": Limit,
        "parts": Part, "entries": Entry,
    },
    Program: {"executables": Executable, "imports": Import, "most": Maxima},
    Executable: {"variants": Variant},
}  # fmt: skip


def _check_entries(made: Manifest) -> None:
    """Rules between fields."""
    if len({entry.name for entry in made.entries}) != len(made.entries):
        raise ModuleError("manifest: two entries have one name")
    if len(made.parameters) > made.parameter_count:
        raise ModuleError(
            f"manifest: {len(made.parameters)} parameters are listed, parameter_count is {made.parameter_count}"
        )


def _parse(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise ModuleError(f"the manifest has more than {MAX_BYTES} bytes")
    try:
        text = data.decode()
        return json.loads(text, object_pairs_hook=_once, parse_float=_refuse, parse_constant=_refuse)
    except RecursionError:
        raise ModuleError("not a manifest: it is nested too deeply") from None
    except ValueError as error:
        raise ModuleError(f"not a manifest: {str(error)[:200]}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text[:40]} is no whole number")


def write_manifest(made: Manifest) -> bytes:
    """The canonical text of a manifest: keys in the order of the fields, without defaults."""
    return (json.dumps(_plain(made), indent=1, ensure_ascii=True) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if type(value) not in READERS:
        return value
    shown = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if field.default is MISSING or item != field.default:
            shown[field.name] = _plain(item)
    return shown
