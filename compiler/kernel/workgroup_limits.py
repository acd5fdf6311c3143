"""What a dispatch may take on every Vulkan device: words of parameters, and shared memory of a workgroup."""

from typing import Final

from orchestrion.schema.dtypes import BOOL, DType

#: most parameters of a dispatch, in 32-bit words
MAX_PARAMETER_WORDS: Final = 32
#: bytes of shared memory of a workgroup
MAX_SHARED_BYTES: Final = 16 << 10
#: bytes of an i1 in shared memory for the limit; targets may store it in fewer
SHARED_BOOL_BYTES: Final = 4


def shared_bytes(dtype: DType) -> int:
    """Bytes of an element of a shared array, at most."""
    return SHARED_BOOL_BYTES if dtype.kind == BOOL else dtype.itemsize
