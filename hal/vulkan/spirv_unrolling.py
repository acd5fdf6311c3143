"""Asks drivers not to unroll the loops of a function that has many.

Mesa unrolls loops of a few known iterations, inner ones first. In a kernel that runs the loop of a program, these are
loops over small tensors, one in another: the code grows by the product of their lengths, and so does the time of its
compilation.
"""

import numpy as np

from .spirv_module import CODES, HEADER_WORDS

#: loops from which on none is unrolled: kernels of single ops have fewer
MANY_LOOPS = 10
#: the first word of a loop's merge instruction, which has four
_LOOP_MERGE = 4 << 16 | CODES["OpLoopMerge"]
_DONT_UNROLL = 2


def keep_loops(code: bytes) -> bytes:
    """Returns the words of a verified payload, or of a hardened one, with the loop control DontUnroll if it has many
    loops.
    """
    words = np.frombuffer(code, "<u4")
    if np.count_nonzero(words == _LOOP_MERGE) < MANY_LOOPS:  # operands may have this value, too
        return code
    merges, at, plain = [], HEADER_WORDS, words.tolist()
    while at < len(plain):
        if plain[at] == _LOOP_MERGE:
            merges.append(at)
        at += plain[at] >> 16
    if len(merges) < MANY_LOOPS:
        return code
    changed = words.copy()
    changed[np.array(merges) + 3] = _DONT_UNROLL
    return changed.tobytes()
