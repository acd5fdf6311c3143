"""The contents of a bundle, and the archive made from them (`schema/shipping/bundle.py` defines the form)."""

from __future__ import annotations

import argparse
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.schema import container
from orchestrion.schema.files import map_file, write_whole
from orchestrion.schema.rows import SegmentKind
from orchestrion.schema.shipping import archive, bundle
from orchestrion.schema.shipping.manifest import Entry, Manifest, write_manifest
from orchestrion.tools import cli

if TYPE_CHECKING:
    from orchestrion.schema.module import Module

#: suffix of the file with the signatures of a file of parameters, in the same folder
SIGNATURES = ".sig"
#: role -> the module's attribute that provides the text if no file is given
ATTRIBUTES = {"licence": "model.licence", "model-card": "model.card"}
_NAMED = "abcdefghijklmnopqrstuvwxyz0123456789-_"


class Item(NamedTuple):
    """A file of a bundle; `role` is one of `bundle.ROLES`."""

    name: str
    role: str
    content: memoryview | bytes


class BundleContents(NamedTuple):
    """What a bundle contains: the module, its manifest without entries, signature sets that are not in the module's
    file, and the other files in order.
    """

    module: Module
    manifest: Manifest
    sets: list[bytes]
    items: tuple[Item, ...]

    @property
    def title(self) -> str:
        """The name of the model; "model" for one without a name."""
        return self.manifest.model.name or "model"


def collect(options: argparse.Namespace) -> BundleContents:
    """Reads all files, once. Raises ModuleError for a damaged module, InputError for an unsuitable file."""
    from orchestrion.schema.decoder import open_module
    from orchestrion.vm.module_manifest import manifest_of

    module = open_module(options.file)
    for ordinal in range(len(module.segments)):
        if module.container.spans[ordinal][0]:
            module.segment(ordinal)
    sets = [] if options.detached is None else [cli.read_bytes(options.detached)]
    return BundleContents(module, manifest_of(module, sets), sets, tuple(_items(module, options)))


def _items(module: Module, options: argparse.Namespace) -> Iterator[Item]:
    for path in options.parameters:
        content = map_file(path)
        name = f"parameters/{sha256(content).hexdigest()}.safetensors"
        yield Item(name, "parameters", content)
        if os.path.exists(path + SIGNATURES):
            yield _signatures(name, path + SIGNATURES)
    for path, role in ((options.licence, "licence"), (options.model_card, "model-card")):
        if path is not None:
            yield Item(role + _suffix(path), role, cli.read_bytes(path))
        elif isinstance(text := module.attribute(ATTRIBUTES[role]), str):
            yield Item(role + ".txt", role, text.encode())
    if options.detached is not None:
        yield _signatures(bundle.MODULE, options.detached)


def _signatures(of: str, path: str) -> Item:
    """Reads the signature set of an entry."""
    from orchestrion.schema.trust.signature_set import decode

    data = cli.read_bytes(path)
    decode(data)
    return Item(of + SIGNATURES, "signatures", data)


def _suffix(path: str) -> str:
    """The suffix of a file's name if entry names may have it; otherwise `.txt`."""
    suffix = os.path.splitext(path)[1].lower()
    return suffix if len(suffix) > 1 and set(suffix[1:]) <= set(_NAMED) else ".txt"


def write(path: str, contents: BundleContents, options: argparse.Namespace) -> None:
    """Writes the archive atomically, and reads it back."""
    pieces = pack(contents, options.compress_code, options.key, options.password)
    write_whole(path, pieces, "could not be written")
    found = bundle.open_bundle(path)
    found.verify()
    print(f"{path}: {len(found.archive.data):,} bytes, {len(found.archive.entries)} entries")


def pack(
    contents: BundleContents, compress_code: bool = False, keys: Sequence[str] = (), password: str | None = None
) -> list[bytes | memoryview]:
    """The archive in pieces: the manifest, its signatures, then the rest; large entries are not copied."""
    items = [*_module_items(contents.module, compress_code), *contents.items]
    manifest = write_manifest(replace(contents.manifest, entries=tuple(entries(items))))
    rows = [archive.Row(bundle.MANIFEST, manifest)]
    if keys:
        rows.append(archive.Row(bundle.MANIFEST_SIGNATURES, signed(manifest, keys, password)))
    return archive.build([*rows, *map(_row, items)])


def _row(item: Item) -> archive.Row:
    return archive.Row(item.name, item.content, deflate=item.role == "code")


def entries(items: Sequence[Item]) -> Iterator[Entry]:
    """The manifest's entries of files."""
    if len({item.name for item in items}) != len(items):
        raise cli.InputError("a file of parameters is there twice")
    for item in items:
        data = archive.packed(_row(item))
        yield Entry(item.name, item.role, len(data), sha256(data).hexdigest())


def thinned(contents: BundleContents, targets: Sequence[str]) -> BundleContents:
    """The same contents with only the programs of some targets. Raises InputError if a target has no program."""
    from orchestrion.schema.decoder import read_module
    from orchestrion.vm.module_manifest import manifest_of

    from .thin import dropped_segments

    file = contents.module.container
    dropped = dropped_segments(contents.module, targets, None)
    kept = [file.segment(at) if span[0] and at not in dropped else None for at, span in enumerate(file.spans)]
    module = read_module(mapped(container.build(file.root, kept, file.attachments, file.sections)))
    return contents._replace(module=module, manifest=manifest_of(module, contents.sets))


def _module_items(module: Module, compress_code: bool) -> list[Item]:
    """The module, and its code if that is stored separately."""
    file = module.container
    ordinals = [
        ordinal
        for ordinal, row in enumerate(module.segments)
        if row.kind == SegmentKind.Executable and file.spans[ordinal][0]
    ]
    if not compress_code or not ordinals:
        return [Item(bundle.MODULE, "module", file.data)]
    apart = set(ordinals)
    left = [file.segment(at) if span[0] and at not in apart else None for at, span in enumerate(file.spans)]
    pieces = container.build(file.root, left, file.attachments, file.sections)
    code = bundle.pack_code(ordinals, file)
    if len(code) > archive.MAX_EXPANDED:
        raise cli.InputError(f"the module has {len(code)} bytes of code, --compress-code takes {archive.MAX_EXPANDED}")
    return [Item(bundle.MODULE, "module", mapped(pieces)), Item(bundle.CODE, "code", code)]


def mapped(pieces: Sequence[bytes | memoryview]) -> memoryview:
    """Joins pieces in a temporary file that lives as long as the memory, because modules may be larger than memory."""
    if len(pieces) == 1:
        return memoryview(pieces[0])
    with tempfile.TemporaryFile() as file:
        file.writelines(pieces)
        file.flush()
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def signed(manifest: bytes, keys: Sequence[str], password: str | None) -> bytes:
    """The signature set of a manifest, by each of the keys."""
    from orchestrion.schema.trust.signature_set import encode

    from .signing import Signable, read_keys, sign_all

    what = Signable("manifest", sha256(manifest).digest())
    return encode(sign_all(what, read_keys(keys, password)))
