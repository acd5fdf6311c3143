"""Calls of growing sizes on devices with indirect dispatch: what they record and allocate, and that results are right.

Counts are of the front: `command_buffers_recorded` and `allocations`. The programs are JAX exports, beside JAX itself.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from everyday import of_the_day

from orchestrion import compiler, vm
from orchestrion.hal.buffer import Buffer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.writer import write
from orchestrion.vm.errors import CallerError

jax = pytest.importorskip("jax")
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

LENGTHS = 256
WIDTH = 8
random = np.random.default_rng(5)
WEIGHTS = random.normal(size=(3, WIDTH, WIDTH)).astype(np.float32) / 3


def step(w: Any, x: Any, keys: Any, values: Any) -> Any:
    """One token of attention over a cache that grows by a row: f32[1, w], f32[s, w], f32[s, w]."""
    keys = jnp.concatenate([keys, x @ w[1]], 0)
    values = jnp.concatenate([values, x @ w[2]], 0)
    scores = jax.nn.softmax(x @ w[0] @ keys.T / 3.0, axis=-1)
    return scores @ values, keys, values


def compiled(function: Callable[..., Any], shapes: Sequence[str], constraints: Sequence[str] = (), **jit: Any) -> bytes:
    scope = export.SymbolicScope(constraints)
    specs = [
        jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), np.float32) if shape else np.float32(0)
        for shape in shapes
    ]
    with jax.enable_x64(False):
        module = export.export(jax.jit(function, **jit))(*specs).mlir_module()
    return compiler.compile(module, targets=["spirv", "reference"])


def decoder(*constraints: str) -> bytes:
    return compiled(step, (f"3,{WIDTH},{WIDTH}", f"1,{WIDTH}", f"s,{WIDTH}", f"s,{WIDTH}"), constraints)


def loaded(module: bytes, **options: Any) -> closing[Any]:
    return closing(vm.load(module, **options))


def recorded(program: Any) -> int:
    return int(program.context.device.statistics.command_buffers_recorded)


def sizes(program: Any) -> Any:
    (row,) = program.statistics()["sizes"]
    return row


def results(program: Any, arguments: Sequence[Any]) -> tuple[Any, ...]:
    found = program.main(*arguments)
    return found if isinstance(found, tuple) else (found,)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


def decode(program: Any, first: int = 1) -> list[tuple[int, int]]:
    """A loop over growing lengths; per call what was recorded and allocated so far. Results are those of NumPy."""
    keys = random.normal(size=(first, WIDTH)).astype(np.float32)
    values = random.normal(size=(first, WIDTH)).astype(np.float32)
    counts = []
    for _ in range(first, LENGTHS + 1):
        x = random.normal(size=(1, WIDTH)).astype(np.float32)
        y, new_keys, new_values = program.main(WEIGHTS, x, keys, values)
        keys = np.concatenate([keys, x @ WEIGHTS[1]])
        values = np.concatenate([values, x @ WEIGHTS[2]])
        scores = np.exp(x @ WEIGHTS[0] @ keys.T / 3)
        close(new_keys, keys)
        close(new_values, values)
        close(y, scores / scores.sum() @ values)
        counts.append((recorded(program), program.context.device.statistics.allocations))
    return counts


def test_a_declared_bound_records_once(vulkan: str) -> None:
    with loaded(decoder(f"s <= {LENGTHS}"), device=vulkan) as program:
        counts = decode(program)
        assert {made for made, _ in counts} == {1}
        assert {allocated for _, allocated in counts} == {counts[0][1]}
        assert sizes(program)["capacity"] == (LENGTHS, LENGTHS)
        assert sizes(program)["prepared"] == 1 and sizes(program)["missed"] == 0


def test_without_a_bound_each_doubling_records(vulkan: str) -> None:
    with loaded(decoder(), device=vulkan) as program:
        counts = decode(program)
        assert counts[-1][0] - counts[0][0] <= 8
        assert sizes(program)["missed"] == 0
        # the arena, two caches as arguments and two as results, each at most once per doubling
        assert counts[-1][1] - counts[0][1] <= 5 * 9


def test_a_bound_that_is_not_affordable_doubles(vulkan: str) -> None:
    with loaded(decoder(f"s <= {1 << 30}"), device=vulkan) as program:
        assert decode(program, first=200)[-1][0] <= 3
        assert sizes(program)["capacity"] == (400, 400)


def test_elsewhere_each_size_is_recorded() -> None:
    with loaded(decoder(), device="reference") as program:
        for length in (3, 4, 5, 4):
            cache = np.ones((length, WIDTH), np.float32)
            program.main(WEIGHTS, cache[:1], cache, cache)
        assert recorded(program) == 3
        assert "sizes" not in program.statistics()


def test_sizes_that_shrink_and_jump(vulkan: str) -> None:
    with loaded(decoder(), device=vulkan) as program, loaded(decoder(), device="reference") as reference:
        for length in (200, 3, 90, 1, 200, 7, 256, 2, 500, 8):
            x, keys, values = (random.normal(size=(n, WIDTH)).astype(np.float32) for n in (1, length, length))
            for got, want in zip(program.main(WEIGHTS, x, keys, values), reference.main(WEIGHTS, x, keys, values)):  # noqa: B905
                close(got, want)
        assert recorded(program) == 3, "200, its double and its double"


def test_the_bound_itself_and_what_is_beyond(vulkan: str) -> None:
    with loaded(decoder("s <= 16", "s >= 4"), device=vulkan) as program:
        for length in (4, 16, 5):
            cache = np.ones((length, WIDTH), np.float32)
            program.main(WEIGHTS, cache[:1], cache, cache)
        for length in (3, 17):
            cache = np.ones((length, WIDTH), np.float32)
            with pytest.raises(CallerError, match="s [<>]= "):
                program.main(WEIGHTS, cache[:1], cache, cache)
        cache = np.ones((6, WIDTH), np.float32)
        close(program.main(WEIGHTS, cache[:1], cache, cache)[1][:6], cache)
        assert recorded(program) == 1


def two(x: Any, y: Any) -> Any:
    return x.sum(), (y * 2).mean(0), jnp.concatenate([x, y.reshape(-1)])


def loops(x: Any) -> Any:
    def body(carry: Any, _: Any) -> Any:
        return jnp.tanh(carry) * 1.5 + carry.mean(), carry.max()

    return lax.scan(body, x, None, length=4)


def halving(x: Any) -> Any:
    return lax.while_loop(lambda s: jnp.max(jnp.abs(s[0])) > 0.1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))


def branches(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda x: x * x.sum(), lambda x: x[::-1] - x.mean(), x)


def empty(x: Any) -> Any:
    """A tensor that has no elements where the size is 1."""
    return x[1:].sum(), jnp.concatenate([x[1:], x])


def kept(x: Any, y: Any) -> Any:
    """A result that is an argument: a copy of a length that comes with the call."""
    return x, y + x


def longer(x: Any) -> Any:
    return jnp.pad(x, ((2, 1),)), jnp.cumsum(x), jnp.sort(x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "two symbols": (two, ("a,", "b, 3")),
    "scan": (loops, ("s,",)),
    "while": (halving, ("s,",)),
    "cond": (branches, ("s,",)),
    "empty": (empty, ("s,",)),
    "kept": (kept, ("s,", "s,")),
    "longer": (longer, ("s,",)),
}


def shaped(shapes: Sequence[str], length: int) -> list[Any]:
    """Arguments where `a` and `s` are `length`, and `b` as much as makes two symbols differ."""
    values = {"a": length, "b": 2 * length + 1, "s": length}
    found = []
    for shape in shapes:
        dims = [values.get(dim.strip()) or int(dim) for dim in shape.split(",") if dim.strip()]
        found.append(random.normal(size=dims).astype(np.float32))
    return found


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("declared", [False, True], ids=["largest first", "declared bounds"])
def test_programs_are_served(name: str, declared: bool, vulkan: str) -> None:
    """All sizes after the largest of them, or after any with declared bounds, record nothing, and agree with JAX."""
    function, shapes = PROGRAMS[name]
    symbols = sorted(set("abs") & set("".join(shapes)))
    constraints = [f"{symbol} <= 256" for symbol in symbols] if declared else []
    with loaded(compiled(function, shapes, constraints), device=vulkan) as program:
        program.main(*shaped(shapes, 1 if declared else 100))
        before = recorded(program)
        for length in (1, 2, 3, 17, 64, 33, 100, 5):
            arguments = shaped(shapes, length)
            got = results(program, arguments)
            for one, want in zip(got, jax.tree.leaves(function(*map(jnp.asarray, arguments))), strict=True):
                np.testing.assert_allclose(one, want, rtol=1e-4, atol=1e-4)
        assert recorded(program) == before
        assert sizes(program)["missed"] == 0


def test_nothing_reads_what_an_earlier_call_left(
    vulkan: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """All memory of the context holds NaN before each call, but for the arguments."""
    made: list[Buffer] = []
    original = Buffer.__init__

    def note(self: Buffer, *arguments: Any) -> None:
        original(self, *arguments)
        made.append(self)

    for function, shapes in of_the_day(pytestconfig, PROGRAMS.values(), 3):
        with monkeypatch.context() as patch, loaded(compiled(function, shapes), device=vulkan) as program:
            patch.setattr(Buffer, "__init__", note)
            program.main(*shaped(shapes, 64))
            for length in (64, 40, 3, 1, 63):
                for buffer in made:
                    if buffer.device_state is not None and buffer.host is not None and buffer.host.flags.writeable:
                        buffer.host[:] = 0xFF
                arguments = shaped(shapes, length)
                got = results(program, arguments)
                for one, want in zip(got, jax.tree.leaves(function(*map(jnp.asarray, arguments))), strict=True):
                    np.testing.assert_allclose(one, want, rtol=1e-4, atol=1e-4)
            assert made
            made.clear()


def test_calls_in_flight_keep_their_sizes(vulkan: str) -> None:
    """Several calls are submitted before the first is waited for, each with a size of its own."""
    with loaded(decoder("s <= 64"), device=vulkan) as program, loaded(decoder(), device="reference") as reference:
        lengths = (5, 64, 1, 30, 5, 31, 63, 2)
        calls = []
        for length in lengths:
            arguments = [random.normal(size=(n, WIDTH)).astype(np.float32) for n in (1, length, length)]
            calls.append((arguments, program.main.submit(WEIGHTS, *arguments)))
        for arguments, future in calls:
            for got, want in zip(future.result(), reference.main(WEIGHTS, *arguments), strict=True):
                close(got, want)
        assert recorded(program) == 1


def test_results_on_the_device(vulkan: str) -> None:
    """`out=` and arguments on the device: caches that never leave it, of exact sizes."""
    with loaded(decoder("s <= 64"), device=vulkan) as program:
        keys = values = random.normal(size=(1, WIDTH)).astype(np.float32)
        want_keys = keys
        for length in range(1, 20):
            x = random.normal(size=(1, WIDTH)).astype(np.float32)
            out = [np.empty((1, WIDTH), np.float32), *(program.empty((length + 1, WIDTH), np.float32) for _ in "kv")]
            y, keys, values = program.main(WEIGHTS, x, keys, values, out=out)
            want_keys = np.concatenate([want_keys, x @ WEIGHTS[1]])
            close(np.asarray(keys), want_keys)
        assert recorded(program) == 1


def test_a_donated_argument_is_computed_in_place(vulkan: str) -> None:
    module = compiled(lambda x: x * 2 + x.sum(), ("s, 4",), donate_argnums=0)
    with loaded(module, device=vulkan) as program:
        for length in (9, 2, 5):
            x = random.normal(size=(length, 4)).astype(np.float32)
            there = program.put(x)
            close(np.asarray(program.main(there, out=there)), x * 2 + x.sum())
        assert recorded(program) == 1


def test_a_limit_without_room_for_the_bound(vulkan: str) -> None:
    """512 KiB do not hold caches of the declared length: memory grows with the calls."""
    with loaded(decoder("s <= 65536"), device=vulkan, memory=1 << 19) as program:
        for length in (10, 11, 30, 20):
            x, keys, values = (random.normal(size=(n, WIDTH)).astype(np.float32) for n in (1, length, length))
            close(program.main(WEIGHTS, x, keys, values)[1][:length], keys)
        assert sizes(program)["capacity"] == (40, 40)
        assert recorded(program) == 3


def test_contexts_have_capacities_of_their_own(vulkan: str) -> None:
    with loaded(decoder(), device=vulkan) as program:
        other = program.create_context()
        for length, context in ((30, program), (5, other), (6, program), (5, other)):
            cache = np.ones((length, WIDTH), np.float32)
            close(context.main(WEIGHTS, cache[:1], cache, cache)[1][:length], cache)
        assert recorded(program) == 1
        other.close()


def test_a_device_without_robust_access(swiftshader: str) -> None:
    with loaded(decoder("s <= 40"), device=swiftshader) as program:
        for length in (1, 40, 7):
            cache = random.normal(size=(length, WIDTH)).astype(np.float32)
            close(program.main(WEIGHTS, cache[:1], cache, cache)[1][:length], cache)
        assert recorded(program) == 1


@pytest.mark.parametrize("use", ["barrier(%r0)", "finish(%r0)", "parameters(%r0, %i0)"])
def test_a_recording_that_the_setup_did_not_create(vulkan: str, use: str) -> None:
    """No compiler writes such a setup. Its trace ends, and the interpreter runs it."""
    imports = "\n".join(f"import @{row.name} {row.signature}" for row in HAL_IMPORTS.values())
    text = f"""{imports} export @f program @p profile "spirv" {{ global @made : hal.recording
        func @init () -> () {{ %r0 = call_import @hal.recording.create(%i0) global.store.ref %r0, @made return () }}
        func @setup (i64) -> (any) {{
            %r0 = global.load.ref @made call_import @hal.recording.{use} return (%r0) }}
        func @f () -> () {{ %r0 = call.cached @setup(%l0) return () }}
        initializer program @init entry @f }}"""
    with loaded(write(assemble(text)), device=vulkan) as program:
        program["f"]()
        assert sizes(program)["reason"] == "it uses a recording that it did not create"


@pytest.fixture
def vulkan(needs_vulkan: None) -> str:
    return "vulkan"
