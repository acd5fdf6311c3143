"""Rules of random programs (see `random_ops.py`) that hold programs: if, case, while, with values from outside.

What a loop carries is exact, and it turns at most four times.
"""

from collections.abc import Callable

from random_body import Body, Value

Fill = Callable[[Body, int], None]


def _inner(b: Body, arguments: list[Value]) -> Body:
    """A region of a function: it sees what is there outside."""
    return Body(
        b.rng, b.fresh()[1:] + "_", values=[*b.values, *arguments], depth=b.depth + 1, types=b.types, rare=b.rare
    )


def _region(inner: Body, arguments: list[Value], results: list[Value]) -> str:
    names = ", ".join(f"{v.name}: {v.type}" for v in arguments)
    returned = (
        f'"stablehlo.return"({", ".join(v.name for v in results)}) : ({", ".join(v.type for v in results)}) -> ()'
    )
    return "\n".join(["{", f"^bb0({names}):" if names else "^bb0:", *inner.lines, returned, "}"])


def _wanted(b: Body, most: int) -> list[Value]:
    """Values like which others are made: small ones mostly."""
    found = [b.pick(lambda v: v.size < 200) for _ in range(b.rng.randint(1, most))]
    return [v for v in found if v is not None]


def _choice(b: Body, fill: Fill) -> None:
    """`if`, or `case` with an index of any value."""
    rng = b.rng
    wanted = _wanted(b, 3)
    two = rng.random() < 0.5
    selector = b.of("i1" if two else "i32", (), near=False)
    if not two and rng.random() < 0.7:
        selector = (
            b.number(rng.randint(-1, 4), "i32")
            if rng.random() < 0.3
            else b.op("stablehlo.and", [selector, b.number(3, "i32")], (), "i32")
        )
    regions, near = [], [False] * len(wanted)
    for _ in range(2 if two else rng.randint(1, 4)):
        inner = _inner(b, [])
        fill(inner, rng.randint(0, 4))
        results = [inner.of(v.dtype, v.shape) for v in wanted]
        near = [old or v.near for old, v in zip(near, results, strict=True)]
        regions.append(_region(inner, [], results))
    outs = [Value(b.fresh(), v.shape, v.dtype, n) for v, n in zip(wanted, near, strict=True)]
    b.emit(f"stablehlo.{'if' if two else 'case'}", [selector], outs, region=", ".join(regions))


def _while(b: Body, fill: Fill) -> None:
    """A loop with a count, which another carried value may end sooner."""
    rng = b.rng
    wanted = [Value("", v.shape, v.dtype) for v in _wanted(b, 3)]
    count = rng.choice(("i32", "i64", "ui8"))
    inits = [b.number(rng.choice((0, 0, 1)), count), *(b.of(v.dtype, v.shape, near=False) for v in wanted)]
    limit = b.number(rng.choice((0, 1, 2, 4, 9, 12)), count)
    arguments = [Value(b.fresh(), v.shape, v.dtype) for v in inits]
    test = _inner(b, arguments)
    more = test.compare(arguments[0], limit, "LT")
    if rng.random() < 0.4:
        scalar = test.of("i1", (), near=False)
        other = test.op("stablehlo.or", [scalar, test.compare(arguments[0], test.number(2, count), "LT")], (), "i1")
        more = test.op("stablehlo.and", [more, other], (), "i1")
    body = _inner(b, arguments)
    fill(body, rng.randint(1, 5))
    after = body.op("stablehlo.add", [arguments[0], body.number(1, count)], (), count)
    results = [after, *(body.of(v.dtype, v.shape, near=False) for v in wanted)]
    outs = [Value(b.fresh(), v.shape, v.dtype) for v in inits]
    b.emit(
        "stablehlo.while",
        inits,
        outs,
        region=f"{_region(test, arguments, [more])}, {_region(body, arguments, results)}",
    )


def control_flow(b: Body, fill: Fill) -> None:
    if b.depth < 2:
        b.rng.choice((_choice, _while))(b, fill)
