"""The versions that a file states, and those that this version of the project reads.

Three things have versions: the format (root and container), the VM's instructions (`isa.py`), and each format of device
code. One rule applies to all: a file states the least minor version that it needs, which its writer computes from the
contents. A reader accepts its own major version and every minor version up to its own. A later minor version only
appends rows, fields, and members of enums. Anything without a row here and in those tables belongs to a later version.

This file is small because every load imports it. `isa.py`, `tensor_bytecode.py` and `spirv.py` hold the rows, each with
the minor version `since` which it exists; a test compares them.
"""

#: version of the format; structs and the meaning of fields only change with the major version
MAJOR, MINOR = 1, 0
#: bit of `header.features` -> its name: capabilities of the format that a reader must know
HEADER_FEATURES: dict[int, str] = {}
KNOWN_FEATURES = sum(1 << bit for bit in HEADER_FEATURES)
#: minor version of the VM's instructions; the major version is that of the format
BYTECODE_MINOR = 0
#: minor version of each format of device code
FORMAT_MINORS: dict[str, int] = {
    "tensor-bytecode": 2,
    "spirv": 2,
    "opencl-c": 0,
    "native-image": 0,
    "library-calls": 2,
}


def needs(what: str, minor: int, known: int) -> str:
    """Why a minor version cannot be read: `wants bytecode 1.9, this version runs up to 1.0`."""
    return f"wants {what} {MAJOR}.{minor}, this version runs up to {MAJOR}.{known}"
