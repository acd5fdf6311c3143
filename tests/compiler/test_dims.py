"""Sizes that are expressions: the normal form against arithmetic on numbers, decisions, text."""

import random

import pytest

from orchestrion.compiler.errors import ParseError
from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.attributes import DimArray, dense_ints
from orchestrion.compiler.ir.dims import Dim, UndecidedError, bounds, dim_max, dim_min, evaluate, symbol
from orchestrion.compiler.ir.dims_parser import parse_sizes
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.types import TensorType, scalar

B, S, T = symbol("b"), symbol("s", 4, 64), symbol("t", 1, 7)


def _number(value: int) -> tuple[int, str]:
    return value, str(value)


def _random_size(chance: random.Random, depth: int) -> tuple[int, str]:
    """A size, and the same in Python over numbers called b, s, t."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice([(B, "b"), (S, "s"), (T, "t"), _number(chance.randint(0, 6))])
    (x, left), (y, right) = _random_size(chance, depth - 1), _random_size(chance, depth - 1)
    by = chance.randint(1, 5)
    return chance.choice(
        [
            lambda: (x + y, f"({left} + {right})"),
            lambda: (x - y, f"({left} - {right})"),
            lambda: (x * y, f"({left} * {right})"),
            lambda: (x // by, f"({left} // {by})"),
            lambda: (x % by, f"({left} % {by})"),
            lambda: (dim_max(x, y), f"max({left}, {right})"),
            lambda: (dim_min(x, y), f"min({left}, {right})"),
        ]
    )()


def test_arithmetic_is_that_of_numbers() -> None:
    chance = random.Random(7)
    for _ in range(300):
        size, source = _random_size(chance, 4)
        for _ in range(5):
            values = {"b": chance.randint(1, 50), "s": chance.randint(4, 64), "t": chance.randint(1, 7)}
            number = eval(source, dict(values))
            assert evaluate(size, values) == number, source
            low, high = bounds(size)
            assert low <= number <= high
        assert parse_sizes(str(size)) == (size,)


def test_normal_form() -> None:
    assert B + S == S + B and hash(B + S) == hash(S + B)
    assert B * 2 // 2 == B and (B * S * 8) // (B * 8) == S and (2 * B * S + 2 * B) // (S + 1) == 2 * B
    assert B - B == 0 and type(B - B) is int
    assert (8 * B) % 4 == 0 and (2 * B + 1) // 2 == B and T // 8 == 0
    assert dim_max(S, 4) == S and dim_min(S, 100) == S and isinstance(dim_max(S, 5), Dim)


def test_comparisons_are_decided_or_refused() -> None:
    assert B >= 1 and S > 3 and 2 * B * S > B and B * S and S - 4 >= 0
    with pytest.raises(UndecidedError, match="b < 3 depends on the sizes of a call"):
        _ = B < 3
    with pytest.raises(UndecidedError, match="b - 1 is 0"):
        bool(B - 1)
    with pytest.raises(UndecidedError, match="divided by b - 1"):
        _ = S // (B - 1)
    with pytest.raises(UndecidedError, match="b depends on the sizes of a call, where a number is needed"):
        range(B)


def test_a_remainder_is_below_its_divisor() -> None:
    for shift in (1, -1, 5):
        assert shift % B <= B and bounds(B - shift % B)[0] == 1
    assert bounds(1 % B) == (0, 1)
    assert bounds(2 * B - 2 * ((S - 1) % B))[0] == 2


def test_what_calls_are_not_more_than_bounds_a_sum() -> None:
    """A half, the half that is rounded up, the smaller and the larger of two."""
    assert bounds(B - B // 2)[0] == 1
    assert bounds((B + 1) // 2 - B // 2) == (0, 1) and bounds(2 * (S // 2) - S)[0] == -1
    assert bounds(3 * S - 2 * (S // 2) - 1)[0] == 7
    assert bounds(B - dim_min(B, 3))[0] == bounds(dim_max(B, S) - B)[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "b +",
        "b{5..4}",
        "max(b)",
        "(b)",
        "b b",
        "1.5",
        "b{1..99999999999}",
        "max(" * 40,
        "floordiv(4, 0)",
        "mod(b, 1 - 1)",
        f"{9 * 10**17} * 2 + b",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_sizes(text)


def test_types_and_arrays_hold_sizes() -> None:
    type = TensorType((2 * B, 3, S), scalar("f32"))
    assert str(type) == "tensor<?x3x?xf32, #util.dims<2 * b, s{4..64}>>"
    assert type.is_known and not type.is_static and type.num_elements == 6 * B * S
    assert not TensorType((-1, 3), scalar("f32")).is_known
    assert str(dense_ints(1, B)) == "#util.dims<1, b>" and isinstance(dense_ints(1, B), DimArray)
    text = f'"x.y"() <{{n = {dense_ints(1, B)}, t = {type}}}> : () -> {type}\n'
    module = parse(text)
    (op,) = module.block
    assert op.results[0].type == type and op.properties["t"] == type and op.properties["n"] == dense_ints(1, B)
    assert text.strip() in print_module(module, locations=False)


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("tensor<?xf32, #util.dims<b, s>>", "2 expressions for 1 dynamic dimensions"),
        ("tensor<?xf32, #util.dims<4>>", "1 expressions for 1 dynamic dimensions"),
        ("tensor<?xf32, #util.dims<b +>>", "is not a list of sizes"),
    ],
)
def test_types_that_do_not_fit_are_refused(type: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(f'"x.y"() : () -> {type}\n')


def test_every_call_has_a_function() -> None:
    assert set(dims.FUNCTIONS) == {"floordiv", "mod", "max", "min"}
