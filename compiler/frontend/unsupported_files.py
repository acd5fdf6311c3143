"""Recognizes files that contain no StableHLO, and tells users how to proceed.

A file is recognized by its content, never by its name. `recognize` runs before a file is read as a program. `guess`
runs only if it cannot be read as one, because its signs are weak.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_TORCH: Final = "make a program of the model with torchax (docs/quickstart/pytorch.md)"
_WEIGHTS: Final = "weights without a program: give them with vm-run --parameters (docs/parameters.md)"
_STABLEHLO: Final = "the compiler reads StableHLO, as jax.jit(f).lower(x).as_text() and jax.export write it"
_TENSORFLOW: Final = "take the StableHLO of a tf.function (docs/quickstart/tensorflow.md)"

#: Offset and magic bytes -> description of the file.
_MAGIC: Final = (
    (8, b"ORCH", "a compiled module already: vm-run runs it"),
    (4, b"TFL3", f"a TFLite model: {_TENSORFLOW}"),
    (0, b"\x03\x02\x23\x07", "SPIR-V"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\x7fELF", "native code"),
    (0, b"\x89HDF", "an HDF5 file, such as weights of Keras: load the model in Keras (docs/quickstart/keras.md)"),
    (0, b"GGUF", f"a GGUF file, {_WEIGHTS}, after a conversion to safetensors"),
    (0, b"HloModule ", f"HLO text: {_STABLEHLO}"),
)
#: Part of a name in a zip archive -> description of the archive; the first match counts.
_IN_ZIP: Final = (
    ("archive_format", f"a program of torch.export: {_TORCH}"),
    ("serialized_exported_program.json", f"a program of torch.export: {_TORCH}"),
    ("constants.pkl", f"a TorchScript program: {_TORCH}"),
    ("data.pkl", f"a file of torch.save: {_TORCH}"),
    ("model.weights.h5", "a Keras model: load it in Keras (docs/quickstart/keras.md)"),
    (".npy", "a NumPy archive"),
)
#: Fields of a protobuf message and their wire types -> description; the first match counts.
_MESSAGES: Final = (
    ({1: 0, 7: 2}, f"an ONNX model, which is no input of this compiler: compile the program that it was made from; "
                   f"{_STABLEHLO}"),
    ({1: 2, 2: 2, 3: 2}, f"a protobuf of HLO: {_STABLEHLO}"),
    ({1: 0, 2: 2}, f"the graph of a TensorFlow SavedModel: {_TENSORFLOW}"),
)  # fmt: skip
#: Comments and docstrings may precede the first import.
_PYTHON: Final = re.compile(rb'(?:\s|#[^\n]*\n|"""(?:[^"]|"(?!""))*""")*+(?:import|from|def|class) ')
#: Maximum number of fields of a protobuf message that are read.
_MAX_FIELDS: Final = 4096


def recognize(data: bytes) -> str | None:
    """Description of the file for a message; None if it is not recognized."""
    for offset, magic, what in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return what
    if data.startswith(b"PK\x03\x04"):
        return _of_zip(data)
    length = int.from_bytes(data[:8], "little")
    if data[8:9] == b"{" and 2 <= length <= len(data) - 8 and data[8 + length - 1 : 8 + length].rstrip() in (b"}", b""):
        return f"a safetensors file, {_WEIGHTS}"
    return None


def guess(data: bytes) -> str | None:
    """Description of a file that is no program, from weak signs; None if it is not recognized."""
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and data.endswith(b"."):
        return f"a pickle, which is not read; if it is one of torch.save, {_TORCH}"
    if _PYTHON.match(data):
        return "a file of Python: give its function and examples to compiler.compile (docs/quickstart/jax.md)"
    fields = _fields(data)
    return next((what for wanted, what in _MESSAGES if wanted.items() <= fields.items()), None)


def recognize_folder(path: Path) -> str | None:
    """Description of a folder; None if the path is no folder."""
    if not path.is_dir():
        return None
    if (path / "saved_model.pb").exists():
        return f"a TensorFlow SavedModel: {_TENSORFLOW}"
    return "a folder; give a file in it"


def _of_zip(data: bytes) -> str:
    import io
    import zipfile

    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return "a damaged zip archive"
    return next((what for part, what in _IN_ZIP if any(part in name for name in names)), "a zip archive")


def _fields(data: bytes) -> dict[int, int]:
    """The first fields of a protobuf message and their wire types; empty if the data is no such message."""
    found: dict[int, int] = {}
    place = 0
    for _ in range(_MAX_FIELDS):
        if place >= len(data):
            break
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == 2:
            length, place = _varint(data, place)
            place += length
        elif kind == 0:
            _, place = _varint(data, place)
        else:
            place += {1: 8, 5: 4}.get(kind, len(data) + 1)
        if not number or place > len(data):
            return {}
        found.setdefault(number, kind)
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """The number and the offset after it, which is past the end if the number is truncated or too long."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        value |= (data[place] & 127) << shift
        place += 1
        if data[place - 1] < 128:
            return value, place
    return 0, len(data) + 1
