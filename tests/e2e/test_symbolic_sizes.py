"""Programs that JAX exports with symbolic sizes: one module, many sizes, on every device, beside JAX itself."""

from collections.abc import Callable, Iterator
from functools import cache
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.registry import list_devices
from orchestrion.vm.errors import CallerError, VmError

jax = pytest.importorskip("jax")
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

#: device -> target
DEVICES = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
THERE = {status.name for status in list_devices() if status.devices}

random = np.random.default_rng(3)
W = random.normal(size=(6, 5)).astype(np.float32)
V = random.normal(size=(5, 5)).astype(np.float32)


class Case(NamedTuple):
    """A function, its symbolic shapes, sizes to call it at, element types of the arguments (f32)."""

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    sizes: tuple[dict[str, int], ...]
    dtypes: tuple[Any, ...] = ()
    constraints: tuple[str, ...] = ()


def scan(x: Any) -> Any:
    def step(h: Any, x: Any) -> tuple[Any, Any]:
        h = jnp.tanh(x @ W + h @ V)
        return h, h.sum(axis=1)

    return lax.scan(step, jnp.zeros((x.shape[1], 5), jnp.float32), x)


def halving(x: Any) -> Any:
    return lax.while_loop(lambda s: jnp.max(jnp.abs(s[0])) > 0.1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))


def branches(x: Any, up: Any) -> Any:
    return lax.cond(up, lambda x: x * x.sum(axis=0), lambda x: x[::-1] - x.mean(axis=0), x)


def update(x: Any, at: Any) -> Any:
    zero = jnp.zeros_like(at)
    return lax.dynamic_update_slice(x, x[:1] * 2, (at, zero)), lax.dynamic_slice(x, (at, zero + 1), (1, 2))


def scatter(x: Any, at: Any, updates: Any) -> Any:
    """Rows of a symbolic number, and few wide ones, some of them outside."""
    wide = jnp.zeros((5, 512), jnp.float32).at[at].add(updates[:, :1])
    x = jnp.asarray(x)
    return x.at[at].add(updates), x.at[at + 1, 1].max(updates[:, 0]), wide


def pooling(x: Any) -> Any:
    """The gradient of the largest of windows: select_and_scatter."""
    return jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID") ** 2).sum())(x)


def transformed(x: Any, w: Any) -> Any:
    """Transforms of a symbolic number of lines; a kernel's gradient is a convolution by windows of a symbolic size."""

    def loss(w: Any) -> Any:
        return (lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")) ** 2).sum()

    return jnp.abs(jnp.fft.rfft(x.reshape(-1, 8), axis=1)), jax.grad(loss)(jnp.asarray(w))


def rows(x: Any, y: Any) -> Any:
    """Rows of a length that a call brings, of one axis and of two; a reducer without a neutral value, whose order
    matters; results of three sizes; and rows of a known length beside ones of a length that nothing limits.
    """
    mean = x.mean((1, 2), keepdims=True)
    centred = x - mean
    last = x[..., -1:] * 0 + jnp.argmax(x, -1, keepdims=True)
    return (
        jax.nn.softmax(x), mean, centred / jnp.sqrt((centred**2).mean((1, 2), keepdims=True) + 1e-5), jnp.exp(centred),
        last + x, y / y.sum(-1, keepdims=True), x * y.max(-1)[:, None, None],
    )  # fmt: skip


def nothing(x: Any) -> Any:
    """Where b is 1, `rest` has no rows: it is read, folded by one and by many, written beside others, and returned."""
    x = jnp.asarray(x)
    rest, half = x[1:], x[x.shape[0] // 2 :]
    scores = rest @ rest.T
    return (
        jnp.roll(x, 1, axis=0), rest - x[:-1], rest.sum(), rest.sum(0) + x[:3].sum(), rest.T.max(1, initial=3.0),
        jnp.pad(rest, ((1, 1), (0, 2))), jax.nn.softmax(rest), jnp.exp(scores - scores.sum(1)[:, None]) @ rest,
        jnp.sort(rest, axis=0), jax.grad(lambda x: ((x[1:] - x[:-1]) ** 2).sum())(x), half * 2, x.at[1:].set(rest * 2),
        jnp.concatenate([rest.T.reshape(-1), x.reshape(-1)]), jnp.einsum("ab,ac->bc", rest, rest),
        lax.reduce_window(x, 0.0, lax.add, (3, 1), (2, 1), "VALID"), lax.fori_loop(0, 3, lambda i, y: y * 2 + i, rest),
        rest.at[jnp.array([0, 1, 0])].add(x[:1]), jnp.zeros(2 * x.shape[0] + 1).at[jnp.array([1, 1])].add(1.0),
    )  # fmt: skip


ROWS = ((3, 2, 9), (1, 1, 1), (2, 3, 70))
LINES: tuple[dict[str, int], ...] = ({"b": 2, "s": 1}, {"b": 1, "s": 5}, {"b": 9, "s": 2})
SCATTERED: tuple[dict[str, int], ...] = ({"b": 7, "c": 3}, {"b": 1, "c": 1}, {"b": 9, "c": 22})
BATCH = tuple({"b": size} for size in (3, 1, 17, 3))
CASES: dict[str, Case] = {
    "elementwise": Case(lambda x, y: (x * y + 1, jnp.where(x > y, x, -y)), ("b, 4", "b, 4"), BATCH),
    "layers": Case(lambda x: jax.nn.softmax(jnp.tanh(x @ W) @ V), ("b, 6",), BATCH),
    "mean": Case(lambda x: (x - x.mean(axis=0)) / (1 + x.var(axis=0)), ("b, 4",), BATCH),
    "attention": Case(
        lambda q, k: jax.nn.softmax(jnp.where(jnp.tri(q.shape[1]) > 0, q @ k.transpose(0, 2, 1), -1e9)) @ k,
        ("b, s, 8", "b, s, 8"),
        ({"b": 2, "s": 3}, {"b": 1, "s": 9}, {"b": 3, "s": 1}),
    ),
    "shapes": Case(
        lambda x, y: (jnp.concatenate([x, y, x[1:]]), jnp.pad(x, ((1, 2), (0, 1))), x.reshape(-1), x[::2].T),
        ("b, 3", "c, 3"),
        ({"b": 3, "c": 1}, {"b": 8, "c": 5}, {"b": 4, "c": 2}),
        constraints=("b >= 2",),
    ),
    "scan": Case(scan, ("s, b, 6",), ({"s": 4, "b": 2}, {"s": 1, "b": 5}, {"s": 9, "b": 1})),
    "while": Case(halving, ("b, 2",), BATCH),
    "cond": Case(branches, ("b, 3", ""), BATCH, (np.float32, np.bool_)),
    "update": Case(update, ("b, 4", ""), BATCH, (np.float32, np.int32)),
    "gather": Case(
        lambda x, i: (x[i], jnp.argmax(x, axis=0), jnp.arange(x.shape[0]) + i.sum()),
        ("b, 3", "4"), BATCH, (np.float32, np.int32),
    ),
    "scatter": Case(scatter, ("b, 3", "c", "c, 3"), SCATTERED, (np.float32, np.int32, np.float32)),
    "pooling": Case(pooling, ("b, 4, 4",), BATCH),
    "transformed": Case(transformed, ("b, 4*s, 2", "3, 2, 3"), LINES),
    "rows": Case(rows, ("b, s, t", "b, 20"), tuple({"b": b, "s": s, "t": t} for b, s, t in ROWS)),
    "roll": Case(lambda x: jnp.roll(x, 1, axis=0) - jnp.roll(x, -1, axis=0), ("b, 3",), ({"b": 2}, {"b": 5})),
    "whole": Case(
        lambda x, y: (jnp.concatenate([y[:, 0], y[0, 1:]]) * x[1:], jnp.sort(jnp.pad(x, (1, 2)))), ("b + s", "b, s"),
        ({"b": 2, "s": 3}, {"b": 4, "s": 2}),
    ),
    "nothing": Case(nothing, ("b, 4",), ({"b": 1}, {"b": 2}, {"b": 5}, {"b": 1})),
    "more rows than columns": Case(
        lambda x, y: jnp.einsum("bkpq,bkn->bpqn", x, y), ("b, k, 32, q", "b, k, n"),
        ({"b": 1, "k": 3, "q": 12, "n": 32}, {"b": 2, "k": 6, "q": 4, "n": 1}, {"b": 1, "k": 1, "q": 5, "n": 64}),
        constraints=("q >= 4", "n <= 64", "k <= 6"),
    ),
    "halves": Case(lambda x: x.reshape(-1, 2, 3).sum(axis=1), ("2*b, 3",), ({"b": 1}, {"b": 6})),
}  # fmt: skip


@cache
def text(name: str) -> bytes:
    case = CASES[name]
    scope = export.SymbolicScope(case.constraints)
    dtypes = case.dtypes or (np.float32,) * len(case.shapes)
    given = [
        jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope) if shape else (), dtype)
        for shape, dtype in zip(case.shapes, dtypes, strict=True)
    ]
    return export.export(jax.jit(case.function))(*given).mlir_module_serialized


@cache
def module(name: str, target: str) -> bytes:
    return compiler.compile(text(name), targets=[target])


def inputs(case: Case, sizes: dict[str, int], seed: int = 0) -> list[Any]:
    """Random arguments at these sizes; integers are places of the first axis."""
    found = []
    generator = np.random.default_rng(seed)
    for place, shape in enumerate(case.shapes):
        dims = [eval(dim, {}, dict(sizes)) for dim in shape.split(",") if dim.strip()]
        dtype = np.dtype(case.dtypes[place] if case.dtypes else np.float32)
        if dtype == np.bool_:
            found.append(np.array(seed % 2 == 0))
        elif dtype.kind == "i":
            found.append(generator.integers(0, sizes["b"], dims).astype(dtype))
        else:
            found.append(generator.normal(size=dims).astype(dtype))
    return [np.asarray(x) for x in found]


@cache
def wanted(name: str, sizes: tuple[tuple[str, int], ...], seed: int) -> list[Any]:
    """What JAX computes."""
    found = jax.tree.leaves(jax.jit(CASES[name].function)(*inputs(CASES[name], dict(sizes), seed)))
    return [np.asarray(one) for one in found]


def check(name: str, main: Callable[..., Any], sizes: dict[str, int], seed: int = 0) -> None:
    got, want = main(*inputs(CASES[name], sizes, seed)), wanted(name, tuple(sizes.items()), seed)
    for one, other in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.fixture(scope="module", params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param not in THERE:
        pytest.skip(f"no device of {request.param} here")
    yield request.param


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_jax(name: str, device: str) -> None:
    program = vm.load(module(name, DEVICES[device]), device, allow_native_code=True)
    for seed, sizes in enumerate(CASES[name].sizes):
        check(name, program.main, sizes, seed)
    program.close()


def test_a_repeated_size_is_a_static_call(device: str) -> None:
    """One submission, one wait, nothing allocated or recorded; another size records anew."""
    program = vm.load(module("layers", DEVICES[device]), device, allow_native_code=True)
    statistics = program.context.device.statistics  # type: ignore[union-attr]
    x, out = program.put(inputs(CASES["layers"], {"b": 5})[0]), program.empty((5, 5), np.float32)
    program.main(x, out=out)
    recorded = statistics.command_buffers_recorded
    for _ in range(25):  # interpreted, then translated
        program.main(x, out=out)
        last = program.statistics()["calls"][-1]
        assert (last["submissions"], last["waits"], last["allocations"]) == (1, 1, 0)
        assert last["host_to_device_bytes"] == last["device_to_host_bytes"] == last["executables_created"] == 0
    assert statistics.command_buffers_recorded == recorded
    check("layers", program.main, {"b": 6})
    assert statistics.command_buffers_recorded == recorded + 1
    program.close()


def test_rows_are_one_dispatch() -> None:
    """Softmax is, over rows of a symbolic number; of a known number they may be of any length, so several share one."""
    wanted = {
        ("b, s", ""): 1,
        ("20, s", ""): 4,
        ("20, s", "s <= 16384"): 1,
        ("s", "s <= 2048"): 1,
        ("s", "s <= 2049"): 4,
    }
    for (shape, constraint), dispatches in wanted.items():
        scope = export.SymbolicScope([constraint] if constraint else [])
        given = jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), np.float32)
        text = export.export(jax.jit(jax.nn.softmax))(given).mlir_module_serialized
        program = vm.load(compiler.compile(text, targets=["reference"]))
        x = np.ones([20] * (given.ndim - 1) + [7], np.float32)
        np.testing.assert_allclose(program.main(x), 1 / 7, rtol=1e-6)
        assert program.statistics()["calls"][-1]["dispatches"] == dispatches, (shape, constraint)
        program.close()


@pytest.mark.skipif("vulkan" not in THERE, reason="no Vulkan device")
def test_the_longest_rows_and_folds() -> None:
    """As long as a call may bring: one more is refused. llvmpipe would leave a loop before."""

    def longest(x: Any, y: Any) -> Any:
        z = x - x.max(-1, keepdims=True)
        return z - z.sum(-1, keepdims=True), y @ y.T, y.sum(-1)

    scope = export.SymbolicScope()
    given = [jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), np.float32) for shape in ("b, s", "8, s")]
    module = compiler.compile(export.export(jax.jit(longest))(*given).mlir_module_serialized, targets=["spirv"])
    program = vm.load(module, "vulkan")
    x, y = np.ones((1, 120_000), np.float32), np.ones((8, 120_000), np.float32)
    x[0, 0] = 2
    norm, dot, total = program.main(x, y)
    assert (norm[0, 0], norm[0, -1]) == (119_999, 119_998) and np.all(dot == 120_000) and np.all(total == 120_000)
    with pytest.raises(CallerError, match="a reduction covers 120001 elements, 120000 are the most on this machine"):
        program.main(np.ones((1, 120_001), np.float32), np.ones((8, 120_001), np.float32))
    program.close()


def folds(x: Any, at: Any) -> Any:
    """Sums over a symbolic length, by itself and by rows, and updates of rows that may be the same ones."""
    rows = jnp.broadcast_to(x, (2, x.shape[0]))
    return x.sum(), rows - rows.sum(-1, keepdims=True), jnp.zeros(4, jnp.float32).at[at].add(x), rows @ x


def exported_folds(constraint: str = "") -> bytes:
    scope = export.SymbolicScope([constraint] if constraint else [])
    shape = export.symbolic_shape("n", scope=scope)
    given = [jax.ShapeDtypeStruct(shape, dtype) for dtype in (np.float32, np.int32)]
    text: bytes = export.export(jax.jit(folds))(*given).mlir_module_serialized
    return text


@pytest.mark.parametrize("device", ["reference", "opencl"])
def test_limits_of_one_driver_are_not_those_of_others(device: str) -> None:
    """llvmpipe's loops end after 65,535 iterations (docs/decisions/loop-iterations.md): no reason to refuse a call
    elsewhere, in a module that llvmpipe can run, too.
    """
    if device not in THERE:
        pytest.skip(f"no device {device}")
    program = vm.load(compiler.compile(exported_folds(), targets=["reference", "opencl", "spirv"]), device)
    for count in (5, 300_001, 16_000_001):
        x, at = np.ones(count, np.float32), np.zeros(count, np.int32)
        total, rows, scattered, dots = program.main(x, at)
        assert int(total) == count
        np.testing.assert_array_equal(rows[:, :: max(1, count // 9)], 1 - count)
        np.testing.assert_array_equal(scattered, [count, 0, 0, 0])
        np.testing.assert_array_equal(dots, [count, count])
    program.close()


@pytest.mark.skipif("vulkan" not in THERE, reason="no Vulkan device")
def test_more_updates_than_an_invocation_looks_at() -> None:
    """Of rows that may be the same ones; where the program says that they are not, there may be any number."""

    def scattered(x: Any, at: Any) -> Any:
        return x.at[at].add(1), x.at[at].set(2, unique_indices=True)

    scope = export.SymbolicScope()
    at = jax.ShapeDtypeStruct(export.symbolic_shape("n", scope=scope), np.int32)
    x = np.zeros(4, np.float32)
    both = compiler.compile(export.export(jax.jit(scattered))(x, at).mlir_module_serialized, targets=["spirv"])
    program = vm.load(both, "vulkan")
    np.testing.assert_array_equal(program.main(x, np.zeros(1, np.int32))[0], [1, 0, 0, 0])
    with pytest.raises(CallerError, match="scatter has 262145 updates.*262144 are the most"):
        program.main(x, np.zeros((1 << 18) + 1, np.int32))
    program.close()
    only = export.export(jax.jit(lambda x, at: scattered(x, at)[1]))(x, at).mlir_module_serialized
    program = vm.load(compiler.compile(only, targets=["spirv"]), "vulkan")
    places = np.arange((1 << 18) + 1, dtype=np.int32)  # nearly all of them outside, which changes nothing
    np.testing.assert_array_equal(program.main(x, places), [2, 2, 2, 2])
    program.close()


REFUSED: dict[str, tuple[str, dict[str, tuple[int, ...]], str]] = {
    "unequal": ("elementwise", {"x": (3, 4), "y": (2, 4)}, r"args\[1\].shape\[0\] \(= 2\).*'b' \(= 3\)"),
    "odd": ("halves", {"x": (3, 3)}, "Division had remainder 1|must be divisible"),
    "below": ("shapes", {"x": (1, 3), "y": (1, 3)}, "constraint b >= 2.*found -1"),
    "rank": ("halves", {"x": (4,)}, r"argument 0 of 'main': expected f32\[.*,3\], got f32\[4\]"),
    "fixed": ("halves", {"x": (4, 2)}, r"argument 0 of 'main': expected f32\[.*,3\], got f32\[4,2\]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_sizes(what: str) -> None:
    name, shapes, message = REFUSED[what]
    program = vm.load(module(name, "reference"))
    for _ in range(2):
        with pytest.raises(CallerError, match=message):
            program.main(*(np.zeros(shape, np.float32) for shape in shapes.values()))
    check(name, program.main, CASES[name].sizes[-1])
    program.close()


def test_sizes_that_no_memory_holds() -> None:
    program = vm.load(module("attention", "reference"), memory=1 << 20)
    x = np.zeros((1, 3000, 8), np.float32)
    with pytest.raises(VmError, match="1048576 bytes"):
        program.main(x, x)
    check("attention", program.main, {"b": 2, "s": 3})
    program.close()


def test_contexts_in_threads(device: str) -> None:
    program = vm.load(module("scan", DEVICES[device]), device, allow_native_code=True)
    sizes: tuple[dict[str, int], ...] = ({"s": 1, "b": 2}, {"s": 4, "b": 2}, {"s": 3, "b": 1})
    failed: list[BaseException] = []
    for one in sizes:
        check("scan", program.main, one)

    def work(seed: int) -> None:
        context = program.create_context()
        try:
            for turn in range(3):
                check("scan", context.functions["main"], sizes[(seed + turn) % 3])
        except BaseException as error:
            failed.append(error)
        finally:
            context.close()

    threads = [Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    program.close()
