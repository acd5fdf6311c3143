"""A delta is refused with ModuleError, or gives the file whose digest it states; memory follows its limit."""

import random
from functools import cache
from hashlib import sha256

from fuzzing import check
from mutate_numbers import unsigned

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.shipping import delta
from orchestrion.schema.shipping.delta import read_delta, write_delta
from orchestrion.tools.packing.delta import make_delta

#: what an accepted delta may give here
MAX_RESULT = 1 << 20


@cache
def _old() -> bytes:
    return random.Random(1).randbytes(600) + bytes(200) + b"words, words " * 20


@cache
def _made() -> list[bytes]:
    old = _old()
    others = (b"", old, old[100:] + b"hello" + old[:50], b"abc" * 500, bytes(3000), random.Random(2).randbytes(300))
    return [make_delta(memoryview(old), memoryview(new), codec) for new in others for codec in ("zlib", "lzma")]


def seeds():
    return list(_made())


def mutate(choose: random.Random, data: bytes) -> bytes:
    """A number of the header or a step is another one, or the packed literals are those of another delta."""
    try:
        found = read_delta(repair(data))
    except ModuleError:
        found = read_delta(choose.choice(_made()))
    steps = list(found.steps) or [(0, 1)]
    match choose.randrange(5):
        case 0:
            at = choose.randrange(len(steps))
            steps[at] = (unsigned(choose, 64, steps[at][0]), steps[at][1])
        case 1:
            at = choose.randrange(len(steps))
            steps[at] = (steps[at][0], unsigned(choose, 64, steps[at][1]))
        case 2:
            steps *= choose.choice((1, 2, 50))
            choose.shuffle(steps)
        case 3:
            other = read_delta(choose.choice(_made()))
            found = found._replace(packed=other.packed, codec=choose.choice((found.codec, other.codec)))
        case _:
            found = found._replace(literals=unsigned(choose, 64, found.literals))
    # most of them say the right sizes
    if choose.random() < 0.8:
        size = sum(length for _, length in steps) & 2**64 - 1
        literals = sum(length for offset, length in steps if offset == delta.LITERAL) & 2**64 - 1
        found = found._replace(new_size=size, literals=literals)
    return write_delta(found._replace(steps=steps))


def repair(data: bytes) -> bytes:
    return data[:-32] + sha256(data[:-32]).digest()


def one_input(data: bytes) -> None:
    old = _old()
    made = 0
    state = sha256()
    try:
        found = read_delta(data)
        for piece in delta.apply(memoryview(old), found, MAX_RESULT):
            made += len(piece)
            state.update(piece)
            check(made <= MAX_RESULT, f"{made} bytes, at most {MAX_RESULT} are allowed")
    except ModuleError:
        return
    check((made, state.digest()) == (found.new_size, found.new_digest), "another file than the delta states")
    check(write_delta(found) == data, "an accepted delta is written otherwise")
