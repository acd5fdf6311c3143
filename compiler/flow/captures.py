"""The values that an op reads: its operands, and values from outside that its regions use."""

from collections.abc import Iterator

from orchestrion.compiler.ir.core import Operation, Value


def inputs(op: Operation) -> Iterator[Value]:
    """The values that an op reads, one per use: operands, then values from outside that its regions use."""
    yield from op.operands
    if not op.regions:
        return
    inside = {block for inner in op.walk() for block in inner.inner_blocks()}
    for region in op.regions:
        for inner in region.walk():
            yield from (value for value in inner.operands if value.parent_block not in inside)


def captures(op: Operation) -> list[Value]:
    """The values from outside that the regions of an op without operands use, each once, in the order of use."""
    assert not op.operands
    return list(dict.fromkeys(inputs(op)))
