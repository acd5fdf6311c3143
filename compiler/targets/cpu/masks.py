"""Questions about masks: truth values in the lanes of vectors, of which those that no lane needs may be poison."""

from .code import Code
from .levels import Level


def any_of(code: Code, mask: str, lanes: int) -> str:
    """Whether any lane is in a mask."""
    mask = code.set(f"freeze <{lanes} x i1> {mask}")
    return code.set(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {mask})")


def all_of(code: Code, mask: str, lanes: int, level: Level, bits: int = 32) -> str:
    """Whether all lanes are in a mask. `bits`: those of the numbers that it compares. Wider vectors than those of the
    level are joined first, as integers: LLVM packs truth values of several vectors into bytes.
    """
    if lanes == 1:
        return code.set(f"freeze i1 {mask}")
    most = 32 * level.lanes // bits
    type = f"<{lanes} x i{bits}>"
    words = code.set(f"sext <{lanes} x i1> {mask} to {type}")
    while lanes > most:
        lanes //= 2
        halves = [code.shuffle(type, words, range(at, at + lanes)) for at in (0, lanes)]
        type = f"<{lanes} x i{bits}>"
        words = code.set(f"and {type} {', '.join(halves)}")
    words = code.set(f"freeze {type} {words}")
    flags = code.set(f"icmp slt {type} {words}, zeroinitializer")
    return code.set(f"call i1 @llvm.vector.reduce.and.v{lanes}i1(<{lanes} x i1> {flags})")
