"""Sizes are parsed or ValueError; their text is parsed to the same sizes, and their values and bounds are Python's."""

import random
import re
from keyword import iskeyword

from fuzzing import check, tokens_mutated

from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.dims_parser import parse_sizes

MAX_BYTES = 400
_TOKEN = re.compile(r"[A-Za-z_]\w*(?:\{\d*\.\.\d*\})?|\d+|[-+*(),]")
_SYMBOL = re.compile(r"([A-Za-z_]\w*)(?:\{(\d*)\.\.(\d*)\})?(?!\w|\s*\()")
_ZEROS = re.compile(r"(?<!\w)0+(?=\d)")
_BOUNDS = re.compile(r"\{[^}]*\}")
_POOL = "a b{1..64} s{2..} t{..9} u{0..0} 0 1 2 3 1000000 999999999999999999 floordiv( mod( max( min( , ) + - *".split()
_PYTHON = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max,
    "min": min,
    "ceildiv": lambda x, y: -(-x // y),
}


def seeds():
    yield b"4, 2 * b + floordiv(s{1..64} + 1, 2)"
    yield b"a * b{1..8} - mod(a, 3) + max(a, b{1..8}), min(7, floordiv(a * 4, 2))"
    yield b"floordiv(max(min(a, 5) * 3 - 2, 1), b{2..9})"
    yield b"-a + 3, 0"


def mutate(choose: random.Random, data: bytes) -> bytes:
    return " ".join(tokens_mutated(choose, _TOKEN.findall(data.decode(errors="ignore")), _POOL)).encode()


def one_input(data: bytes) -> None:
    text = " ".join(data.decode("ascii", errors="ignore").split())
    try:
        sizes = parse_sizes(text)
    except ValueError:
        return
    printed = ", ".join(map(str, sizes))
    check(parse_sizes(printed) == sizes, f"{printed!r} is parsed to something else")
    names: dict[str, tuple[str, str]] = {}
    for name, least, most in _SYMBOL.findall(text):
        if name in _PYTHON or iskeyword(name) or names.setdefault(name, (least, most)) != (least, most):
            return  # a symbol that is called like a function, or one name for two symbols
    for place in range(3):
        values = {name: _value(dims.symbol(name, *_range(*names[name])), place) for name in names}
        if not sizes:
            return
        # only numbers, names, signs and calls are left in a text that was accepted
        try:
            wanted = eval(f"({_ZEROS.sub('', _BOUNDS.sub('', text))},)", {"__builtins__": {}, **_PYTHON}, values)
        except ZeroDivisionError:
            return
        found = tuple(dims.evaluate(size, values) for size in sizes)
        check(found == wanted, f"{text!r} of {values} is {found}, not {wanted}")
        for size, value in zip(sizes, found, strict=True):
            least, most = dims.bounds(size)
            check(least <= value <= most, f"{size} of {values} is {value}, outside of {least} to {most}")


def _range(least: str, most: str) -> tuple[int, int]:
    return int(least or dims.DEFAULT_LEAST), int(most or dims.DEFAULT_GREATEST)


def _value(size: int, place: int) -> int:
    least, most = dims.bounds(size)
    return (least, min(most, least + 5), min(most, least + 1000))[place]
