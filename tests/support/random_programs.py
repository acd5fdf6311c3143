"""Random StableHLO programs in generic text: many ops, every element type, functions, control flow.

`generate(rng)` gives the text, arguments for it, and what is known of the results. Imports nothing under test.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from random_algebra import ALGEBRA, DYNAMIC
from random_body import Body, Value
from random_chlo import CHLO
from random_complex import OTHERS
from random_control import control_flow
from random_ops import CONTRACTION, ELEMENTWISE, MOVEMENT, Rule
from random_scatters import SCATTERS
from random_sorts import SORTING
from random_types import ALL, COMPUTED, Array, numbers
from random_windows import WINDOWS

SHAPES = (
    (), (1,), (4,), (7,), (64,), (130,), (2, 3), (3, 4), (5, 1), (1, 1), (4, 6), (2, 3, 4), (3, 1, 5), (8, 17),
    (2, 2, 3, 3), (1, 2, 1, 3, 1, 2), (600,), (3, 700), (40, 50), (2500,),
)  # fmt: skip
EMPTY = ((0,), (3, 0))

COMMON = (ELEMENTWISE, MOVEMENT, CONTRACTION, SORTING + SCATTERS, WINDOWS)
RARE = (OTHERS, ALGEBRA, DYNAMIC, CHLO)


@dataclass(frozen=True)
class Program:
    """The text of a program, arrays for the arguments of its `@main`, what is known of the results."""

    text: str
    arguments: list[Array]
    results: list[Value]
    main: Body
    parameters: list[Value]
    others: list[str]  #: the functions that are not `@main`

    def cut(self, results: Sequence[Value]) -> "Program":
        """What some of the results need, and no more."""
        needed, lines = {value.name for value in results}, list[str]()
        for line in reversed(self.main.lines):
            made = line.partition(' = "')[0].split(", ")
            if needed.intersection(made):
                needed.update(_NAME.findall(line))
                lines.insert(0, line)
        main = _function("main", replace(self.main, lines=lines), self.parameters, results, True)
        found, more = [main], True
        while more:
            called = {name for text in found for name in _CALLED.findall(text)}
            more = [text for text in self.others if _SYMBOL.search(text)[1] in called and text not in found]
            found += more
        return replace(self, text="\n".join(found) + "\n", results=list(results))


_NAME, _CALLED, _SYMBOL = re.compile(r"%\w+"), re.compile(r"@(\w+)"), re.compile(r'sym_name = "(\w+)"')


def _function(name: str, b: Body, arguments: Sequence[Value], results: Sequence[Value], public: bool) -> str:
    ins, outs = ", ".join(v.type for v in arguments), ", ".join(v.type for v in results)
    names = ", ".join(f"{v.name}: {v.type}" for v in arguments)
    visibility = "" if public else ', sym_visibility = "private"'
    head = f'"func.func"() <{{sym_name = "{name}", function_type = ({ins}) -> ({outs}){visibility}}}> ({{'
    returned = f'"func.return"({", ".join(v.name for v in results)}) : ({outs}) -> ()'
    return "\n".join([head, f"^bb0({names}):", *b.lines, returned, "}) : () -> ()"])


def _arguments(b: Body, count: int) -> list[Value]:
    shapes = [b.rng.choice(EMPTY if b.rng.random() < 0.02 else SHAPES) for _ in range(count)]
    made = [Value(b.fresh(), shape, b.rng.choice(b.types)) for shape in shapes]
    b.values += made
    return made


def _fill(b: Body, count: int, calls: Sequence[Rule] = ()) -> None:
    weights = b.rng.choice(((5, 4, 2, 1, 1), (8, 1, 1, 0, 0), (2, 8, 1, 1, 1), (3, 3, 4, 1, 1), (4, 3, 1, 4, 3)))
    for _ in range(count):
        if calls and b.rng.random() < 0.1:
            b.rng.choice(calls)(b)
            continue
        if b.rng.random() < 0.04:
            control_flow(b, _fill)
            continue
        if b.rng.random() < b.rare:
            b.rng.choice(b.rng.choices(RARE, (12, 2, 2, 1))[0])(b)
            continue
        b.rng.choice(b.rng.choices(COMMON, weights)[0])(b)


def _call_of(name: str, arguments: Sequence[Value], results: Sequence[Value]) -> Rule:
    def call(b: Body) -> None:
        operands = [b.of(v.dtype, v.shape, near=False) for v in arguments]
        outs = [Value(b.fresh(), v.shape, v.dtype, v.near) for v in results]
        if outs and b.rng.random() < 0.3:
            attributes = f'name = "test.{name}", decomposition = @{name}, version = 0 : i32'
            b.emit("stablehlo.composite", operands, outs, attributes)
        else:
            b.emit("func.call", operands, outs, f"callee = @{name}")

    return call


def generate(rng: random.Random, length: int = 20) -> Program:
    types = COMPUTED if rng.random() < 0.5 else (*rng.sample(ALL, 4), *rng.sample(COMPUTED, 3))
    rare = rng.choice((0.04, 0.1, 0.3))
    functions, calls = [], []
    for number in range(rng.choice((0, 0, 1, 2))):
        inner = Body(rng, f"f{number}_", types=types, rare=rare)
        arguments = _arguments(inner, rng.randint(0, 3))
        if not arguments:
            inner.of(rng.choice(types), rng.choice(SHAPES))
        _fill(inner, rng.randint(0, 6), calls)
        results = inner.some(rng.randint(0, 4))
        functions.append(_function(f"f{number}", inner, arguments, results, False))
        calls.append(_call_of(f"f{number}", arguments, results))
    b = Body(rng, types=types, rare=rare)
    arguments = _arguments(b, rng.randint(1, 5))
    _fill(b, length, calls)
    results = b.some(8)
    others = list(functions)
    functions.insert(rng.randint(0, len(functions)), _function("main", b, arguments, results, True))
    arrays = [numbers(rng, v.dtype, v.shape) for v in arguments]
    return Program("\n".join(functions) + "\n", arrays, results, b, arguments, others)
