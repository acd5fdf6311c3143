"""The versions that a file states, and what this version of the project reads.

Three things have versions of their own: the format (root and container), the VM's instructions (`isa.py`) and each
format of device code. Their rule is one: a file states the least minor version that it needs, which its writer counts
from what is in the file. A reader takes its own major version and every minor up to its own. A later minor appends:
rows, fields, members of enums. What has no row here and in those tables is of a later version.

This file is small because every load imports it; `isa.py`, `tensor_bytecode.py` and `spirv.py` hold the rows, each with
the minor version `since` which it is there, and a test compares.
"""

#: Of the format. Structs and the meaning of a field change with the major version only.
MAJOR, MINOR = 1, 0
#: Bit of `header.features` -> its name: capabilities of the format that a reader must know.
HEADER_FEATURES: dict[int, str] = {}
KNOWN_FEATURES = sum(1 << bit for bit in HEADER_FEATURES)
#: Of the VM's instructions, whose major version is the format's.
BYTECODE_MINOR = 0
#: Of each format of device code.
FORMAT_MINORS: dict[str, int] = {"tensor-bytecode": 2, "spirv": 0, "opencl-c": 0}


def needs(what: str, minor: int, known: int) -> str:
    """Why a minor version cannot be read: `wants bytecode 1.9, this version runs up to 1.0`."""
    return f"wants {what} {MAJOR}.{minor}, this version runs up to {MAJOR}.{known}"
