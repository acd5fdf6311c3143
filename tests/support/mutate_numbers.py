"""Numbers that break things."""

import random


class Impossible(Exception):
    """A mutator finds nothing to work on."""


POWERS = (7, 8, 15, 16, 20, 24, 31, 32, 40, 62, 63, 64)
INTERESTING = (0, 1, 2, 3, 4, 5, 8, -1, -2, *(2**k + d for k in POWERS for d in (-1, 0, 1)))
SIZES = (0, 0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 64, 255, 1000, 4096, 65536, 2**20, 2**24, 2**31, 2**40, 2**62, 2**63 - 1)
NONE = 0xFFFFFFFF


def unsigned(choose: random.Random, bits: int, old: int = 0) -> int:
    """A number that fits: near the old one, small, near a power of two, or anything."""
    match choose.randrange(4):
        case 0:
            number = old + choose.choice((-8, -2, -1, 1, 2, 8, old))
        case 1:
            number = choose.randrange(12)
        case 2:
            number = choose.choice(INTERESTING)
        case _:
            number = choose.getrandbits(bits)
    return number & (1 << bits) - 1


def signed(choose: random.Random, bits: int, old: int = 0) -> int:
    number = unsigned(choose, bits, old)
    return number - (1 << bits) if number >> bits - 1 else number


def size(choose: random.Random, old: int = 0) -> int:
    """A dimension, a length."""
    return choose.choice((*SIZES, old + 1, max(0, old - 1), 2 * old))


def replaced(choose: random.Random, items: tuple, change) -> tuple:
    """A tuple with one item changed; `Impossible` when it is empty."""
    if not items:
        raise Impossible
    place = choose.randrange(len(items))
    return (*items[:place], change(items[place]), *items[place + 1 :])


def edited(choose: random.Random, items: tuple) -> tuple:
    """A tuple with one item removed, doubled, moved or swapped."""
    if not items:
        raise Impossible
    found = list(items)
    place, other = choose.randrange(len(items)), choose.randrange(len(items))
    match choose.randrange(4):
        case 0:
            del found[place]
        case 1:
            found.insert(other, found[place])
        case 2:
            found[place], found[other] = found[other], found[place]
        case _:
            found.insert(other, found.pop(place))
    return tuple(found)


def damaged(choose: random.Random, data: bytes, start: int = 0, end: int | None = None) -> bytes:
    """A few bytes or words between start and end replaced."""
    changed = bytearray(data)
    end = len(changed) if end is None else min(end, len(changed))
    if start >= end:
        raise Impossible
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        at = choose.randrange(start, end)
        width = choose.choice((1, 1, 2, 4, 8))
        match choose.randrange(3):
            case 0:
                changed[at] ^= 1 << choose.randrange(8)
            case 1:
                old = int.from_bytes(changed[at : at + width], "little")
                changed[at : at + width] = unsigned(choose, 8 * width, old).to_bytes(width, "little")[: end - at]
            case _:
                other = choose.randrange(start, end)
                piece = changed[other : min(other + width, end)]
                changed[at : at + len(piece)] = piece[: end - at]
    return bytes(changed[: len(data)])
