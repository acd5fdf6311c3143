"""What the kernels of a target may use, and which shapes of work it likes; measured per target, see docs/decisions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """`tile`: the most rows and columns of a dot's result that one invocation computes. `vectors`: four neighbours in
    memory are loaded together where it is seen that they are aligned. `width`: neighbouring results are computed in
    vectors of so many lanes at most, 0 for none. `row`: where there are many rows to reduce, an invocation takes
    one of up to so many elements by itself, without barriers; 0 where only the shortest are taken so. `block`: the most
    rows and columns of a dot's result that an invocation computes of a workgroup's block, staged in shared memory; None
    where invocations load for themselves."""

    tile: tuple[int, int] = (8, 8)
    vectors: bool = False
    width: int = 0
    row: int = 0
    block: tuple[int, int] | None = None


#: one that loads and computes element by element
PLAIN = Machine()
