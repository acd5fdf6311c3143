"""A root is decoded or ModuleError; the generated decoder and the slow one agree on every one, and on its rows.

An input is size prefix and root, without directory and segments.
"""

import random

import later_format
import module_corpus
import mutate_file
from fuzzing import check

from orchestrion.schema import container, decoder, root_generated, structure
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.layout import layout

_CHANGES = (mutate_file.row_fields, mutate_file.row_order, mutate_file.counts, mutate_file.offsets, mutate_file.strings)


def seeds():
    for data in module_corpus.written():
        yield bytes(container.open_bytes(data).root)
    for name in ("9 fields behind the last", "features 0x8000000000000001", "named segment kind", "attribute kind"):
        yield bytes(container.open_bytes(later_format.files()[name].data).root)


def mutate(choose: random.Random, data: bytes) -> bytes:
    changed = choose.choice(_CHANGES)(choose, data + container.directory(data, [])[0])
    return changed[: len(data)]


def repair(data: bytes) -> bytes:
    """With the size and the identifier that it must have; a length that is a multiple of four keeps offsets aligned."""
    if len(data) < 12:
        return data
    return (len(data) - 4).to_bytes(4, "little") + data[4:8] + container.IDENTIFIER + data[12:]


def one_input(data: bytes) -> None:
    root = memoryview(data)
    quick = root_generated.decode(root)
    try:
        slow = structure.decode(root)
    except ModuleError:
        slow = None
    check((quick is None) == (slow is None), f"quick: {quick is not None}, slow: {slow is not None}")
    if quick is not None and slow is not None:
        for name in ("header", *(vector.name for vector in layout().vectors)):
            one, other = getattr(quick, name), getattr(slow, name)
            check(list(one) == list(other), f"{name} is decoded to {list(one)!r:.100} and {list(other)!r:.100}")
    try:
        decoder.decode_root(root)
    except ModuleError:
        return
    check(quick is not None, "accepted, though it is not sound")
