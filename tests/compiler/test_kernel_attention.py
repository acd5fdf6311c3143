"""Attention in one dispatch: which programs have it, and that it is right at any size, schedule and layout."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from everyday import of_the_day
from schedule_runs import Judge, body_of
from scheduled_bodies import attention

pytest.importorskip("llvmlite")

from orchestrion import vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.choose import choose
from orchestrion.compiler.kernel.legality import problems
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.targets.cpu.target import MACHINES
from orchestrion.compiler.targets.opencl.target import MACHINES as OPENCL_MACHINES

Array = np.ndarray[Any, Any]

#: batches, rows, elements of a row, depth, columns: whole blocks, edges of each dimension, more than a slice of weights
SHAPES = [(4, 64, 64, 32, 32), (2, 77, 45, 40, 24), (1, 9, 300, 3, 70), (5, 130, 17, 65, 5), (3, 8, 4, 1, 4)]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    found = Judge()
    yield found
    found.close()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_size(judge: Judge, shape: tuple[int, ...]) -> None:
    """By the schedule of the machine."""
    case = attention(*shape, dtype="f64" if shape[0] == 2 else "f32")
    schedule = choose(body_of(case), MACHINES["cpu"]).schedule
    assert schedule.keeps_scores
    judge.judge(case, [schedule], "cpu", "cpu")


def drawn(rng: random.Random) -> tuple[dict[str, int], Schedule]:
    """The extents of an attention, and a schedule that mostly fits."""
    extents = {dim: rng.randint(8, 70) for dim in "kmn"}
    tile = {dim: rng.choice([count for count in (4, 6, 8, 12, 16) if count <= extents[dim]] or [4]) for dim in "kmn"}
    local = {dim: rng.choice([1, 2, 4] if dim == "m" else [1, 2]) for dim in "kmn"}
    lanes = rng.choice((8, 16, 32))
    guards = {"k": "shift", "m": "clamp", "n": "shift"}
    return extents, Schedule.of(
        *(Step("tile", dim, count=count) for dim, count in tile.items()),
        Step("bind", "grid", "workgroup"),
        *(Step("bind", dim, "local", count) for dim, count in local.items() if count > 1),
        Step("vectorize", "n", count=rng.choice((2, 4, 8))),
        Step("reduce", "k", "tree", lanes),
        Step("stage", "out", "rows", rng.choice((16, 64, 100))),
        *(Step("guard", dim, how) for dim, how in guards.items() if extents[dim] % (tile[dim] * local[dim])),
    )


def test_random_schedules(judge: Judge, pytestconfig: pytest.Config) -> None:
    rng, legal, tries = random.Random(0), 0, of_the_day(pytestconfig, range(20), 3)
    for _ in tries:
        extents, schedule = drawn(rng)
        case = attention(2, extents["m"], extents["k"], rng.choice((3, 8, 20)), extents["n"])
        if any(problems(body_of(case), schedule, MACHINES["cpu"])):
            continue
        legal += 1
        judge.judge(case, [schedule], "cpu", "cpu")
    assert legal >= len(tries) * 3 // 10


def test_other_machines_refuse_it() -> None:
    with pytest.raises(CompileError, match="the machine has no schedule for this body of kind attention"):
        choose(body_of(attention()), OPENCL_MACHINES["cpu"])
    with pytest.raises(CompileError, match="the machine has no schedule for this body of kind attention"):
        choose(body_of(attention(rows=4)), MACHINES["cpu"])


# programs of JAX


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def softmax_of(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    import jax
    import jax.numpy as jnp

    scores = q @ jnp.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5)
    return jax.nn.softmax(scores if mask is None else mask(scores)) @ v


def heads_behind_time(q: Any, k: Any, v: Any) -> Any:
    import jax.numpy as jnp

    return softmax_of(*(jnp.swapaxes(x, 1, 2) for x in (q, k, v)))


def causal(q: Any, k: Any, v: Any) -> Any:
    import jax.numpy as jnp

    return softmax_of(q, k, v, lambda x: jnp.where(jnp.tril(jnp.ones(x.shape[-2:], bool)), x, -jnp.inf))


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return softmax_of(q, k, v, lambda x: x + mask[:, None])


def not_softmax(q: Any, k: Any, v: Any) -> Any:
    import jax.numpy as jnp

    scores = q @ jnp.swapaxes(k, -1, -2)
    return scores / (1 + jnp.abs(scores).sum(-1, keepdims=True)) @ v


def with_rest(q: Any, k: Any, v: Any) -> Any:
    import jax.numpy as jnp

    return jnp.tanh(softmax_of(q, k, v) + q)


HEADS = [(2, 4, 40, 32)] * 3
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "softmax": (softmax_of, HEADS),
    "one head": (softmax_of, [(33, 16), (50, 16), (50, 24)]),
    "heads behind time": (heads_behind_time, [(2, 48, 4, 32)] * 3),
    "causal": (causal, HEADS),
    "mask": (masked, [*HEADS, (2, 40, 40)]),
    "another weight": (not_softmax, HEADS),
    "elementwise ops around": (with_rest, HEADS),
}


def kinds(function: Callable[..., Any], arrays: list[Array], target: str = "cpu") -> list[str]:
    """The kinds of the entries of a program."""
    import jax

    module = Compilation((target,)).module(jax.jit(function).lower(*arrays), "hl_seq")
    return [op.kind.value for op in module.walk() if getattr(op, "kind", None) is not None and op.name == "func.func"]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_one_dispatch(name: str) -> None:
    jax = pytest.importorskip("jax")
    function, shapes = PROGRAMS[name]
    arrays = [normal(*shape) for shape in shapes]
    assert kinds(function, arrays) == ["attention"]
    assert kinds(function, arrays, "opencl") != ["attention"]
    from orchestrion import compiler

    program = vm.load(compiler.compile(jax.jit(function), *arrays, targets=["cpu"]), device="cpu")
    wanted = np.asarray(jax.jit(function)(*arrays))
    np.testing.assert_allclose(program.main(*arrays), wanted, rtol=1e-5, atol=2e-6 * np.abs(wanted).max())


def test_what_is_read_elsewhere_stays_in_memory() -> None:
    import jax

    def scores_too(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(q @ k)
        return weights @ v, weights

    assert "attention" not in kinds(scores_too, [normal(4, 32, 16), normal(4, 16, 32), normal(4, 32, 16)])
