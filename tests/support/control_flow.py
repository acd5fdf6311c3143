"""JAX programs that choose what they compute: loops of known and unknown length, conditionals, one inside the other.

A row is a name, a function and the shapes and element types of its arguments, which are small integers or positive
floats (`small` in the end-to-end tests), so that each loop comes to its end.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_F, _I = "float32", "int32"


def _until(x: Any, n: Any) -> Any:
    """Its length is known only when it has run."""
    return lax.while_loop(lambda c: jnp.sum(c[1]) < 100, lambda c: (c[0] + 1, c[1] * 1.5 + 1), (n, x))


def _fori(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, 10, lambda i, c: c * 0.5 + i, x), lax.fori_loop(0, n, lambda i, c: c * 0.5 + i, x)


def _rnn(h: Any, xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ w / 8 + x)
        return h, (h * 2, h + 1)

    return lax.scan(step, h, xs)


def _rnn_gradient(w: Any, xs: Any) -> Any:
    def loss(w: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = jnp.tanh(c * w + x)
            return c, c.sum()

        return lax.scan(step, jnp.zeros(3), xs)[1].sum()

    return jax.grad(loss)(w)


def _backwards(x: Any) -> Any:
    return lax.scan(lambda c, row: (c + row, c), jnp.zeros(4), x, reverse=True)


def _nested(x: Any) -> Any:
    def outer(carry: Any) -> Any:
        i, v = carry
        v = lax.while_loop(lambda d: d[0] < i, lambda d: (d[0] + 1, d[1] * 1.25), (jnp.int32(0), v))[1]
        return i + 1, v

    return lax.while_loop(lambda c: (c[0] < 6) & (c[1][0] < 100), outer, (jnp.int32(0), x))


def _nested_counted(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, c: lax.fori_loop(0, 11, lambda j, d: d * 0.5 + i * j, c) + 1, x)


def _nested_short(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, c: lax.fori_loop(0, 3, lambda j, d: d * 0.5 + i * j, c) + 1, x)


def _sorted(x: Any) -> Any:
    """A sorting network: two loops around updates of one element."""

    def exchange(j: Any, v: Any) -> Any:
        a, b = v[j], v[j + 1]
        return v.at[j].set(jnp.minimum(a, b)).at[j + 1].set(jnp.maximum(a, b))

    return lax.fori_loop(0, x.size, lambda i, v: lax.fori_loop(0, x.size - 1, exchange, v), x)


def _cond(p: Any, x: Any, y: Any) -> Any:
    return lax.cond(p, lambda a, b: (a @ b, a), lambda a, b: (jnp.sum(jnp.exp(-a)), b), x, y)


def _cheap_cond(p: Any, x: Any, y: Any) -> Any:
    return lax.cond(p, lambda a, b: (a + b, a), lambda a, b: (a - b, a), x, y)


def _switch(i: Any, x: Any) -> Any:
    branches = [lambda a: a @ a, jnp.sin, lambda a: a.T, lambda a: a * 0]
    return lax.switch(i[0], branches, x), lax.switch(i[1], branches, x), lax.switch(i[2], branches[:2], x)


def _cond_in_loop(x: Any) -> Any:
    def body(carry: Any) -> Any:
        i, v = carry
        return i + 1, lax.cond(v.sum() > 9, lambda v: v @ jnp.outer(v, v) / 32, lambda v: v + 1, v)

    return lax.while_loop(lambda c: c[0] < 5, body, (jnp.int32(0), x))


def _loop_in_cond(p: Any, x: Any) -> Any:
    def grow(v: Any) -> Any:
        return lax.while_loop(lambda v: v.sum() < 50, lambda v: v * 1.5, v)

    return lax.cond(p, grow, lambda v: v, x), lax.cond(p, lambda v: v, grow, x)


def _scan_of_conds(h: Any, xs: Any, mask: Any) -> Any:
    def step(h: Any, pair: Any) -> Any:
        x, m = pair
        return lax.cond(m, lambda h: jnp.tanh(h + x), lambda h: h, h), None

    return lax.scan(step, h, (xs, mask))[0]


def _swapped(a: Any, b: Any, n: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[2], c[1]), (jnp.int32(0), a, b))


def _rotated(a: Any, b: Any, c: Any) -> Any:
    return lax.fori_loop(0, 11, lambda i, v: (v[1] + 1, v[2], v[0]), (a, b, c))


def _returned(a: Any, n: Any) -> Any:
    """Loops that give back what they were given, that never run, that change nothing."""
    same = lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1]), (jnp.int32(0), a))
    return same, lax.fori_loop(5, 3, lambda i, c: c + i, a), lax.while_loop(lambda c: c[0] < -9, lambda c: c * 2, a)


def _kinds(b: Any, i: Any, f: Any) -> Any:
    return lax.while_loop(lambda c: jnp.sum(c[1]) < 90, lambda c: (~c[0], c[1] + 2, c[2] * 2), (b, jnp.abs(i), f))


def _empties(e: Any, x: Any) -> Any:
    return lax.while_loop(lambda c: c[1][0] < 10, lambda c: (c[0] * 2, c[1] + jnp.concatenate([x, c[0]])), (e, x))


def _vectors(xs: Any, t: Any) -> Any:
    """A loop of several lanes, each of its own length."""
    return jax.vmap(lambda x: lax.while_loop(lambda c: jnp.sum(c) < 10, lambda c: c + t, x))(xs)


def _collatz(n: Any) -> Any:
    def body(carry: Any) -> Any:
        n, steps = carry
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda c: c[0] != 1, body, (jnp.abs(n) + 6, jnp.int32(0)))


def _conjugate_gradient(a: Any, b: Any) -> Any:
    matrix = a @ a.T + 3 * jnp.eye(3, dtype=a.dtype)

    def body(state: Any) -> Any:
        x, r, p, k = state
        ap = matrix @ p
        alpha = (r @ r) / (p @ ap)
        x, left = x + alpha * p, r - alpha * ap
        return x, left, left + (left @ left) / (r @ r) * p, k + 1

    start = (jnp.zeros_like(b), b, b, 0)
    return lax.while_loop(lambda s: (s[1] @ s[1] > 1e-4) & (s[3] < 9), body, start)[0]


def _updates(x: Any, i: Any) -> Any:
    """Large tensors of which a loop changes a little."""

    def body(j: Any, v: Any) -> Any:
        v = lax.dynamic_update_slice(v, v[j][None] * 2 + 1, (j + 1, 0))
        return lax.dynamic_update_slice(v, v[:1, 3:5] + j, (i, i))

    return lax.fori_loop(0, 7, body, x)


def _kept(x: Any) -> Any:
    """What was there before an update is still needed behind it."""

    def body(c: Any, i: Any) -> Any:
        after = lax.dynamic_update_slice(c, c[i][None] + 1, (i, 0))
        return after, (after - c).sum()

    return lax.scan(body, x, jnp.arange(5)), x.sum()


#: name, function, (shape, element type) of each argument
PROGRAMS: tuple[tuple[str, Any, tuple[tuple[tuple[int, ...], str], ...]], ...] = (
    ("while", _until, (((4,), _F), ((), _I))),
    ("fori", _fori, (((4,), _F), ((), _I))),
    ("scan_rnn", _rnn, (((4,), _F), ((6, 4), _F), ((4, 4), _F))),
    ("scan_rnn_large", _rnn, (((64,), _F), ((40, 64), _F), ((64, 64), _F))),
    ("scan_gradient", _rnn_gradient, (((3,), _F), ((6, 3), _F))),
    ("scan_backwards", _backwards, (((5, 4), _F),)),
    ("map", lambda x: lax.map(lambda row: jnp.sin(row).sum(), x), (((6, 4), _F),)),
    ("nested_loops", _nested, (((4,), _F),)),
    ("nested_counted_loops", _nested_counted, (((4,), _F),)),
    ("nested_short_loops", _nested_short, (((4,), _F),)),
    ("sorting_network", _sorted, (((7,), _I),)),
    ("cond", _cond, (((), "bool"), ((4,), _F), ((4,), _F))),
    ("cheap_cond", _cheap_cond, (((), "bool"), ((4,), _F), ((4,), _F))),
    ("switch", _switch, (((3,), _I), ((8, 8), _F))),
    ("cond_in_loop", _cond_in_loop, (((4,), _F),)),
    ("loop_in_cond", _loop_in_cond, (((), "bool"), ((5,), _F))),
    ("scan_of_conds", _scan_of_conds, (((3,), _F), ((6, 3), _F), ((6,), "bool"))),
    ("swapped", _swapped, (((3,), _F), ((3,), _F), ((), _I))),
    ("rotated", _rotated, (((3,), _F), ((3,), _F), ((3,), _F))),
    ("returned", _returned, (((3,), _F), ((), _I))),
    ("kinds", _kinds, (((3,), "bool"), ((3,), "int64"), ((2, 3), "float64"))),
    ("empty_state", _empties, (((0,), _F), ((3,), _F))),
    ("lanes", _vectors, (((6, 4), _F), ((4,), _F))),
    ("collatz", _collatz, (((), _I),)),
    ("conjugate_gradient", _conjugate_gradient, (((3, 3), _F), ((3,), _F))),
    ("updates_in_loop", _updates, (((40, 50), _F), ((), _I))),
    ("kept_before_update", _kept, (((40, 50), _F),)),
)
