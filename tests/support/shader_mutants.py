"""Small changes to the words of a shader, most of which the checker refuses.

They know no form by name, so they reach what `shader_proposals` does not think of: another id or literal, another
opcode of the same layout, an instruction gone, doubled or moved.
"""

import random

from orchestrion.schema.spirv import EXT_INSTS, OPS

_SAME_LAYOUT = {row.code: [other.code for other in OPS if other.layout == row.layout] for row in OPS}
_EXTENDED = (*(row.code for row in EXT_INSTS), 37, 39, 40, 41, 42, 43, 44, 45)
_LITERALS = (0, 1, 2, 3, 4, 8, 15, 16, 24, 26, 29, 32, 63, 64, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
EXT_INST = 12


def mutate(words: list[int], rng: random.Random) -> str:
    """Changes the words in place; gives the change's name."""
    starts = _starts(words)
    functions = next((place for place, at in enumerate(starts[:-1]) if words[at] & 0xFFFF == 54), 0)
    place = rng.randrange(functions if rng.random() < 0.8 else 0, len(starts) - 1)
    at, end = starts[place], starts[place + 1]
    change = rng.choice(("id", "id", "id", "literal", "opcode", "opcode", "bound", "drop", "double", "swap"))
    if change in ("id", "literal") and end - at > 1:
        words[rng.randrange(at + 1, end)] = rng.randrange(1, words[3]) if change == "id" else rng.choice(_LITERALS)
    elif change == "opcode" and words[at] & 0xFFFF == EXT_INST:
        words[at + 4] = rng.choice(_EXTENDED)
    elif change == "opcode":
        code = words[at] & 0xFFFF
        words[at] = words[at] & 0xFFFF0000 | rng.choice(_SAME_LAYOUT.get(code, [code]))
    elif change == "bound":
        _bound(words, starts, rng)
    elif change == "drop":
        del words[at:end]
    elif change == "double":
        words[at:at] = words[at:end]
    elif change == "swap" and place + 2 < len(starts):
        words[at : starts[place + 2]] = words[end : starts[place + 2]] + words[at:end]
    return f"mutant: {change}"


def _bound(words: list[int], starts: list[int], rng: random.Random) -> None:
    """Another value for a constant: lengths, bounds of clamps, indices."""
    constants = [at for at in starts[:-1] if words[at] & 0xFFFF == 43]
    at = rng.choice(constants)
    words[at + 3] = rng.choice((words[at + 3] + 1, words[at + 3] - 1, rng.choice(_LITERALS))) & 0xFFFFFFFF


def _starts(words: list[int]) -> list[int]:
    starts, at = [], 5
    while at < len(words):
        starts.append(at)
        at += words[at] >> 16
    return [*starts, at]
