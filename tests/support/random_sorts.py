"""Rules of random programs (see `random_ops.py`) that sort: several operands, one or two keys, up or down, any axis.

Keys have no NaN, which would make an order of none; sorts are stable, so that there is one right answer.
"""

from random_body import Body, Value
from random_ops import Rule
from random_types import COMPLEX, REAL


def _sort(b: Body) -> None:
    """One to three operands, of which one or two are keys, up or down."""
    rng = b.rng
    x = b.pick(lambda v: len(v.shape) > 0 and v.size < 1000 and not v.near and v.dtype not in ("i1", *COMPLEX))
    if x is None:
        return
    inputs = [x] + [b.of(rng.choice(b.types), x.shape) for _ in range(rng.choice((0, 0, 1, 2)))]
    keys = 2 if len(inputs) > 1 and inputs[1].dtype not in ("i1", *COMPLEX) and rng.random() < 0.5 else 1
    for i in range(keys):
        if inputs[i].near or inputs[i].dtype in REAL:
            v = b.of(inputs[i].dtype, x.shape, near=False)
            v = b.op("stablehlo.select", [b.compare(v, v, "NE"), b.like(v, 1), v], v.shape, v.dtype)
            inputs[i] = v
    names = [f"%{side}{i}: tensor<{v.dtype}>" for i, v in enumerate(inputs) for side in "xy"]
    words = [rng.choice(("LT", "GT")) for _ in range(keys)]

    def compare(out: str, i: int, word: str) -> str:
        t = f"tensor<{inputs[i].dtype}>"
        given = f"comparison_direction = #stablehlo<comparison_direction {word}>"
        return f'%{out} = "stablehlo.compare"(%x{i}, %y{i}) <{{{given}}}> : ({t}, {t}) -> tensor<i1>'

    lines = [compare("p", 0, words[0])]
    if keys == 2:
        t = "tensor<i1>"
        lines += [
            compare("e", 0, "EQ"),
            compare("q", 1, words[1]),
            f'%a = "stablehlo.and"(%e, %q) : ({t}, {t}) -> {t}',
            f'%r = "stablehlo.or"(%p, %a) : ({t}, {t}) -> {t}',
        ]
    last = "%r" if keys == 2 else "%p"
    region = "\n".join(
        ["{", f"^bb0({', '.join(names)}):", *lines, f'"stablehlo.return"({last}) : (tensor<i1>) -> ()', "}"]
    )
    outs = [Value(b.fresh(), v.shape, v.dtype, v.near) for v in inputs]
    axis = rng.randrange(len(x.shape))
    b.emit("stablehlo.sort", inputs, outs, f"dimension = {axis} : i64, is_stable = true", region)


SORTING: tuple[Rule, ...] = (_sort,)
