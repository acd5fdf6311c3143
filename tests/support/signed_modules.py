"""Signed modules and keys files for tests."""

from collections.abc import Sequence
from pathlib import Path

from orchestrion.schema import container
from orchestrion.schema.assembler import assemble
from orchestrion.schema.trust import keys, signature_set
from orchestrion.schema.writer import write
from orchestrion.tools.packing.signing import of_module, sign_all, signed_pieces

#: a module with code and no constants; `{}` takes attributes
CODE = """{}
export @f
program @p profile "reference" {{
  func @f () -> i32 {{ %i0 = i32.const 7 return (%i0) }}
  entry @f
}}"""


def code_module(attributes: str = "") -> bytes:
    """`f()` gives 7. `attributes`: in the assembler's text."""
    return write(assemble(CODE.format(attributes)))


def signed(data: bytes, *by: keys.PrivateKey) -> bytes:
    """A module with signatures."""
    return b"".join(signed_pieces(container.open_bytes(data), by))


def detached(data: bytes, *by: keys.PrivateKey) -> bytes:
    """Signatures of a module, by themselves."""
    return signature_set.encode(sign_all(of_module(container.open_bytes(data)), by))


def rebuilt(
    data: bytes,
    attachments: Sequence[container.Attachment] = (),
    sections: Sequence[container.Section] = (),
    without: Sequence[int] = (),
) -> bytes:
    """The module with other attachments and sections, and without some of its segments."""
    file = container.open_bytes(data)
    segments = [None if ordinal in without else file.segment(ordinal) for ordinal in range(len(file.spans))]
    return b"".join(container.build(file.root, segments, attachments, sections))


def key_text(key: keys.PrivateKey, more: str = "", name: str = "publisher") -> str:
    """The table of one key in a keys file."""
    return f'[[key]]\nname = "{name}"\npublic = """{keys.public_pem(key).decode()}"""\n{more}\n'


def keys_file(path: Path, key: keys.PrivateKey, more: str = "", before: str = "") -> Path:
    """A keys file with one key; `before` stands above it."""
    path.write_text(f"{before}\n{key_text(key, more)}")
    return path
