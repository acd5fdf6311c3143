"""The values of a program's parameters: found in files, compared with the module, with adapters applied.

If the caller gives no files, they are searched beside the module: `parameters/<SHA-256>.safetensors`, then the file
name that the compiler used. Files are mapped, and read when initializers read the values. Parameters that do not fit
raise one error with all names. See docs/parameters.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import describe, of_numpy
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.parameters import DIGEST_ATTRIBUTE, FILE_ATTRIBUTE, Parameter, parameters_of
from orchestrion.schema.safetensors import TensorFile, open_bytes, open_file, shown
from orchestrion.schema.shipping import archive

from .errors import ParameterError
from .file_part import FilePart
from .linker import LinkedProgram, ParameterValues

if TYPE_CHECKING:
    from orchestrion.schema.module import Module
    from orchestrion.schema.trust.policy import TrustPolicy

    from .adapters import Update
    from .memory import Memory

#: a file, or a part of one
File = str | os.PathLike[str] | FilePart
#: a file, a folder or a bundle of them, or arrays by name
Source = File | Mapping[str, npt.ArrayLike]
FOLDER: Final = "parameters"
SUFFIX: Final = ".safetensors"
#: the signatures of FILE are in FILE.sig
SIGNATURES: Final = ".sig"
#: names of one kind that an error lists
_MAX_LISTED: Final = 8


class TensorSource(NamedTuple):
    """A source of tensors: an open file, or arrays (`file` is None). `label`: its name in messages. `signature`: a file
    of its signatures, or their bytes.
    """

    label: str
    file: TensorFile | None
    signature: str | os.PathLike[str] | bytes | None = None


_ARRAYS: Final = TensorSource("the arrays", None)


class GivenTensor(NamedTuple):
    """A tensor in a source: its type as text, its bytes, and the source."""

    type: str
    data: memoryview
    source: TensorSource


def bind(
    linked: LinkedProgram,
    folder: Path | None,
    parameters: Source | Sequence[Source] | None,
    adapters: Sequence[File],
    extra: bool,
    memory: Memory,
    policy: TrustPolicy | None,
) -> ParameterValues:
    """Find the values of a program's parameters.

    `folder`: the folder of the module's file, None for a module in memory. `parameters`: the sources; None: the files
    beside the module. `extra`: whether the sources may hold tensors that are no parameters of the module. `memory`: is
    charged for parameters that adapters change.

    Raises `ParameterError` for parameters that are missing or do not fit, `OSError`, `ModuleError` for a malformed
    file, and `Untrusted` for a file that the policy refuses.
    """
    module, wanted = linked.module, linked.code.parameters
    given = find(module, wanted, folder, parameters, extra)
    opened = open_adapters(adapters)
    if policy is not None:
        from .parameter_trust import admit

        admit(policy, module, [(row, given[row.name]) for row in wanted], opened)
    updates = updates_of(module, wanted, opened, extra)
    values = {row.segment: _value(row, given[row.name], updates, memory) for row in wanted}
    return ParameterValues(values, [row.name for row in wanted])


def find(
    module: Module,
    wanted: Sequence[Parameter],
    folder: Path | None,
    parameters: Source | Sequence[Source] | None,
    extra: bool,
) -> dict[str, GivenTensor]:
    """The tensors in the sources, by name. There is one for each wanted parameter. Arguments and errors as `bind`."""
    given, problems = _collect(_beside(module, folder) if parameters is None else _listed(parameters))
    problems += _unfit(wanted, given)
    if not extra:
        problems += _unwanted(given, {row.name for row in parameters_of(module)})
    if problems:
        hint = _hint(module) if not given else ""
        raise ParameterError(f"parameters do not fit the module: {'; '.join(problems)}{hint}")
    return given


def open_adapters(files: Sequence[File]) -> list[TensorSource]:
    """Open adapter files. `OSError`, and `ModuleError` for a malformed file."""
    return [_opened(file) for file in files]


def _value(row: Parameter, found: GivenTensor, updates: Mapping[str, list[Update]], memory: Memory) -> memoryview:
    if row.name not in updates:
        return _aligned(found.data, row.dtype.itemsize)
    from .adapters import apply_updates

    memory.charge(len(found.data))
    return apply_updates(found.data, row.dtype, updates[row.name])


def _aligned(data: memoryview, to: int) -> memoryview:
    """The bytes, or a copy if their address is not a multiple of `to`: other tools may write files without
    alignment.
    """
    array = np.frombuffer(data, np.uint8)
    return array.copy().data.toreadonly() if array.ctypes.data % to else data


def _listed(parameters: Source | Sequence[Source]) -> list[Source | TensorSource]:
    one = isinstance(parameters, str | os.PathLike | Mapping | FilePart)
    sources: Iterable[Source] = [parameters] if one else parameters  # type: ignore[assignment,list-item]
    return [part for source in sources for part in _parts(source)]


def _parts(source: Source) -> Sequence[Source | TensorSource]:
    """The files of a folder, sorted by name, or of a bundle; any other source is the only part."""
    if isinstance(source, Mapping | FilePart):
        return [source]
    if os.path.isdir(source):
        return [path for path in sorted(Path(source).iterdir()) if path.suffix == SUFFIX]
    return _bundled(source) if archive.is_archive(source) else [source]


def _bundled(path: str | os.PathLike[str]) -> Sequence[TensorSource]:
    """The parameter files in a bundle, mapped."""
    found = archive.open_archive(path)
    opened = []
    for name, entry in found.entries.items():
        if name.startswith(f"{FOLDER}/") and name.endswith(SUFFIX):
            signatures = found.entries.get(name + SIGNATURES)
            data = None if signatures is None else bytes(found.read(signatures))
            opened.append(TensorSource(f"{os.fspath(path)}/{name}", open_bytes(found.stored(entry)), data))
    return opened


def _beside(module: Module, folder: Path | None) -> Sequence[Source]:
    """The parameter file beside the module, if there is one."""
    if folder is None:
        return []
    places = [folder / name for name in places_of(module)]
    return [place for place in places if place.is_file()][:1]


def places_of(module: Module) -> list[str]:
    """The paths where a module's parameters may be, relative to its folder, from its attributes.

    The attributes are not trusted: names that could lead to another folder are ignored.
    """
    digest, name = module.attribute(DIGEST_ATTRIBUTE), module.attribute(FILE_ATTRIBUTE)
    found = []
    if isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef"):
        found.append(f"{FOLDER}/{digest}{SUFFIX}")
    if isinstance(name, str) and name.endswith(SUFFIX) and not set(name) & set('/\\:*?"<>|') and name.isprintable():
        found.append(name)
    return found


def _hint(module: Module) -> str:
    places = " or ".join(places_of(module))
    beside = f"; {places} would be taken from beside the module" if places else ""
    return f" (none are given: parameters=FILE or --parameters=FILE names a safetensors file{beside})"


def _collect(sources: Sequence[Source | TensorSource]) -> tuple[dict[str, GivenTensor], list[str]]:
    """All tensors of the sources by name, and a problem for each name that two sources have."""
    given: dict[str, GivenTensor] = {}
    problems = []
    for source in sources:
        for name, found in _tensors(source).items():
            if name in given:
                problems.append(f"{shown(name)} is in {given[name].source.label} and in {found.source.label}")
            given[name] = found
    return given, problems


def _tensors(source: Source | TensorSource) -> dict[str, GivenTensor]:
    if isinstance(source, Mapping):
        return {name: _of_array(name, np.asarray(array)) for name, array in source.items()}
    opened = source if isinstance(source, TensorSource) else _opened(source)
    assert opened.file is not None, "only arrays have none"
    return {
        name: GivenTensor(str(row), opened.file.bytes_of(name), opened) for name, row in opened.file.tensors.items()
    }


def _of_array(name: str, array: npt.NDArray[np.generic]) -> GivenTensor:
    row = of_numpy(array.dtype)
    if row is None:
        raise ParameterError(f"parameter {shown(name)}: {array.dtype} is not an element type")
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return GivenTensor(describe(row, array.shape), data.data.toreadonly(), _ARRAYS)


def _opened(file: File) -> TensorSource:
    """Open and map a file. The signatures of FILE are in FILE.sig; a part of a file says where its signatures are."""
    part = file if isinstance(file, FilePart) else FilePart(file, 0, None, f"{os.fspath(file)}{SIGNATURES}")
    label = str(part) if part is file else os.fspath(part.path)
    try:
        return TensorSource(label, open_file(part.path, part.offset, part.length), part.signature)
    except (ModuleError, ValueError) as error:
        raise ModuleError(f"{label}: {error}") from None


def _unfit(wanted: Sequence[Parameter], given: Mapping[str, GivenTensor]) -> list[str]:
    """The problems with wanted parameters: those that are missing, and those of another type."""
    missing = [f"{shown(row.name)} ({row})" for row in wanted if row.name not in given]
    wrong = [
        f"{shown(row.name)} is {found.type} in {found.source.label}, wanted {row}"
        for row in wanted
        if (found := given.get(row.name)) is not None and found.type != str(row)
    ]
    return [*([f"missing {_list(missing)}"] if missing else []), *wrong[:_MAX_LISTED], *_more(wrong)]


def _unwanted(given: Mapping[str, GivenTensor], known: set[str]) -> list[str]:
    """The problems with tensors that are no parameters of the module, one per source."""
    found: dict[str, list[str]] = {}
    for name, tensor in given.items():
        if name not in known:
            found.setdefault(tensor.source.label, []).append(shown(name))
    hint = "extra_parameters=True or --extra-parameters ignores them"
    return [
        f"{source} holds {_list(names)}, which the module does not want ({hint})" for source, names in found.items()
    ]


def _list(names: Sequence[str]) -> str:
    return ", ".join([*names[:_MAX_LISTED], *_more(names)])


def _more(items: Sequence[str]) -> list[str]:
    return [f"and {len(items) - _MAX_LISTED} more"] if len(items) > _MAX_LISTED else []


def updates_of(
    module: Module, wanted: Sequence[Parameter], adapters: Sequence[TensorSource], extra: bool
) -> dict[str, list[Update]]:
    """The updates of each parameter, in the order of the adapters. `ParameterError` for an adapter that
    does not fit.
    """
    found: dict[str, list[Update]] = {}
    if not adapters:
        return found
    from .adapters import parameters_in, update_of

    rows, known = {row.name: row for row in wanted}, {row.name for row in parameters_of(module)}
    for label, file, _ in adapters:
        assert file is not None, "only arrays have none"
        try:
            names = parameters_in(file)
            unknown = [shown(name) for name in names if name not in known]
            if unknown and not extra:
                raise ValueError(f"the module has no parameters {_list(unknown)}")
            for name in [name for name in names if name in rows]:
                found.setdefault(name, []).append(update_of(file, name, rows[name].dtype, rows[name].dims))
        except ValueError as error:
            raise ParameterError(f"adapter {label} does not fit the module: {error}") from None
    return found
