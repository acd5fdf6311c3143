"""A .npy or .npz file is loaded or InputError."""

import io
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from fuzzing import ROOT, check

from orchestrion.schema.dtypes import BY_NAME, of_numpy
from orchestrion.tools.array_files import as_wanted, load
from orchestrion.tools.cli import InputError

MAX_BYTES = 2048
POOL = (
    b"'descr'",
    b"'<f4'",
    b"'shape'",
    b"()",
    b"(99999999999,)",
    b"(-1,)",
    b"True",
    b"'|O'",
    b"'|V2'",
    b"'fortran_order'",
    b"(" * 200,
    b"-" * 300,
)


@cache
def _file() -> Path:
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    return Path(tempfile.mkdtemp(dir=folder, prefix="orchestrion-fuzz-")) / "x.npy"


def seeds():
    yield (ROOT / "examples/mlp_output.npy").read_bytes()
    for array in (
        np.zeros((2, 3), np.float32),
        np.zeros((), np.int8),
        np.asfortranarray(np.ones((2, 2), np.complex64)),
        np.zeros((0, 4), bool),
    ):
        for version in ((1, 0), (2, 0), (3, 0)):
            data = io.BytesIO()
            np.lib.format.write_array(data, array, version)
            yield data.getvalue()
    for save in (np.savez, np.savez_compressed):
        archive = io.BytesIO()
        save(archive, x=np.ones(3, np.float32), y=np.zeros((2, 2), ">i2"))
        yield archive.getvalue()


def repair(data: bytes) -> bytes:
    """With the length of the header where its line ends."""
    end = data.find(b"\n", 10) + 1
    if not data.startswith(b"\x93NUMPY\1\0") or not end:
        return data
    return data[:8] + (end - 10 & 0xFFFF).to_bytes(2, "little") + data[10:]


def one_input(data: bytes) -> None:
    _file().write_bytes(data)
    wanted = BY_NAME["bf16"] if len(data) % 2 else None
    try:
        read = load(str(_file()))
        found = read.values() if isinstance(read, dict) else [as_wanted(read, wanted, "x.npy")]
    except InputError as error:
        check("\n" not in str(error), f"more than a line: {error}")
        return
    archive = data.startswith(b"PK")
    check(archive or of_numpy(found[0].dtype) is not None, f"element types {[array.dtype for array in found]}")
    size = sum(array.nbytes for array in found)
    # deflate packs 1032 bytes into one at the most
    check(size <= len(data) * (1032 if archive else 1), f"{size} bytes of elements in a file of {len(data)}")
