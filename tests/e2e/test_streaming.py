"""Models whose constants are larger than the device memory given compute what they compute without a limit, to the bit.

The devices here share memory with the host and import constants from it, which takes no device memory. So drivers are
told not to import, as on a card with memory of its own; on `unmapped` ones the host cannot see that memory either.
"""

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from heap_tables import with_heaps

from orchestrion import compiler, vm
from orchestrion.hal.errors import DeviceOutOfMemory, DriverUnavailable
from orchestrion.hal.opencl.device import OpenCLDevice
from orchestrion.hal.opencl.heaps import Machine as OpenCLMachine
from orchestrion.hal.policy import Policy
from orchestrion.hal.reference.device import ReferenceDevice
from orchestrion.hal.registry import open_device
from orchestrion.hal.residency import StreamingWarning
from orchestrion.hal.vulkan import physical
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.heaps import Machine
from orchestrion.tools import run
from orchestrion.vm.errors import CallerError, DeviceError, MemoryExceeded

Array = np.ndarray[Any, Any]
#: bytes, of which the constants of `_mlp` need 528 KiB
LIMIT = 420_000
DEVICES = ("reference", "opencl", "opencl-unmapped", "vulkan", "vulkan-unmapped")


def _weights(key: int, *shape: int) -> Array:
    return np.random.default_rng(key).standard_normal(shape, np.float32) * np.float32(0.1)


def _mlp(x: Any) -> Any:
    for layer in range(8):
        x = jax.nn.gelu(x @ _weights(layer, 128, 128) + _weights(layer + 9, 128))
    return x


def _norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _decoder(tokens: Any) -> Any:
    """An embedding, three blocks of attention and two products, and logits with the embedding again."""
    embedding, width, heads = _weights(1, 128, 64), 64, 4
    x = jnp.take(embedding, tokens, axis=0)
    for block in range(3):
        q, k, v, o = (_weights(10 * block + i, width, width) for i in range(4))
        up, down = _weights(10 * block + 5, width, 4 * width), _weights(10 * block + 6, 4 * width, width)
        y = _norm(x)
        a, b, c = ((y @ w).reshape(-1, heads, width // heads).transpose(1, 0, 2) for w in (q, k, v))
        x = x + (jax.nn.softmax(a @ b.swapaxes(-1, -2)) @ c).transpose(1, 0, 2).reshape(-1, width) @ o
        x = x + jax.nn.gelu(_norm(x) @ up) @ down
    return x @ embedding.T


def _loop(x: Any) -> Any:
    """Several weights in each turn of a loop, whose length is known when it is called."""

    def turn(state: Any) -> Any:
        count, y = state
        for layer in range(16):
            y = jnp.tanh(y @ _weights(layer, 64, 64))
        return count + 1, y

    return jax.lax.while_loop(lambda state: state[0] < 3 + (x[0, 0] > 9).astype(jnp.int32), turn, (jnp.int32(0), x))[1]


def _scan(x: Any) -> Any:
    """As many turns as the compiler knows: they go to the device in one batch."""

    def turn(_: Any, y: Any) -> Any:
        for layer in range(16):
            y = jnp.tanh(y @ _weights(layer, 64, 64))
        return y

    return jax.lax.fori_loop(0, 5, turn, x)


class Model:
    def __init__(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        self.arguments = arguments
        self.module = compiler.compile(jax.jit(function).lower(*arguments), **options)


MODELS: dict[str, Callable[[], Model]] = {
    "mlp": cache(lambda: Model(_mlp, _weights(40, 8, 128))),
    "decoder": cache(lambda: Model(_decoder, np.arange(16, dtype=np.int32) % 128)),
    "loop": cache(lambda: Model(_loop, _weights(41, 8, 64))),
    "scan": cache(lambda: Model(_scan, _weights(42, 8, 64))),
}
PACKED = cache(lambda: Model(_mlp, _weights(40, 8, 128), encodings="always"))


@cache
def symbolic_model() -> Model:
    shape = jax.export.symbolic_shape("n, 128")
    exported = jax.export.export(jax.jit(_mlp))(jax.ShapeDtypeStruct(shape, np.float32))
    model = Model(_mlp, _weights(40, 8, 128))
    model.module = compiler.compile(exported.mlir_module_serialized)
    return model


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A device's name; its driver imports no memory of the host."""
    name, _, unmapped = str(request.param).partition("-")
    for kind in (ReferenceDevice, OpenCLDevice, VulkanDevice):
        monkeypatch.setattr(kind, "import_host", lambda self, memory: None)
    if unmapped:
        monkeypatch.setattr("orchestrion.hal.opencl.device.machine_of_device", lambda device: OpenCLMachine.DISCRETE)
        monkeypatch.setattr("orchestrion.hal.vulkan.driver.scan", _cards)
    try:
        open_device(name).close()
    except DriverUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("ORCHESTRION_CACHE", "off")
    yield name


def _cards(found: Any) -> Any:
    """The Vulkan devices, with the heaps of cards whose memory the host cannot see."""
    rows, reasons = physical.scan(found)
    return [with_heaps(row, Machine.SMALL_BAR) for row in rows], reasons


def load(model: Model, device: str, **options: Any) -> Any:
    return vm.load(model.module, device, allow_native_code=True, **options)


def as_list(results: Any) -> list[Array]:
    return [np.array(one) for one in (results if isinstance(results, tuple) else (results,))]


def same(got: Any, want: list[Array]) -> None:
    for one, other in zip(as_list(got), want, strict=True):
        np.testing.assert_array_equal(one, other)


def run_whole(model: Model, device: str, **options: Any) -> tuple[list[Array], int]:
    """The results without a limit, and the most device memory that they take."""
    program = load(model, device)
    results = as_list(program.main(*model.arguments))
    peak = program.device.allocator.peak_bytes
    program.close()
    return results, peak


def check_limits(program: Any, limit: int) -> None:
    account = program.device.allocator.accounts[-1]
    assert account.limit == limit
    assert account.peak <= limit


@pytest.mark.sampled
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_twice_the_memory_given(name: str, device: str) -> None:
    model = MODELS[name]()
    want, peak = run_whole(model, device)
    with pytest.warns(StreamingWarning, match=f"do not fit the {peak // 2} bytes of device memory given"):
        program = load(model, device, device_memory=peak // 2)
    for _ in range(3):
        same(program.main(*model.arguments), want)
    rows = program.statistics()["calls"]
    arguments = sum(one.nbytes for one in model.arguments)
    assert rows[1]["host_to_device_bytes"] > arguments
    assert rows[1]["submissions"] > 1
    assert [row["allocations"] for row in rows[1:]] == [0, 0]
    assert rows[1]["host_to_device_bytes"] == rows[2]["host_to_device_bytes"]
    check_limits(program, peak // 2)
    program.close()


def test_what_the_warning_says_is_what_a_call_copies(device: str) -> None:
    model = MODELS["mlp"]()
    _, peak = run_whole(model, device)
    with pytest.warns(StreamingWarning) as caught:
        program = load(model, device, device_memory=peak // 2)
    assert len(caught) == 1 and caught[0].filename == __file__
    streamed, enough = map(int, re.findall(r"(\d+) bytes (?:of them|would)", str(caught[0].message)))
    program.main(*model.arguments)
    assert program.statistics()["calls"][0]["host_to_device_bytes"] == streamed + model.arguments[0].nbytes
    program.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = load(model, device, device_memory=enough)
        program.main(*model.arguments)
    call = program.statistics()["calls"][0]
    assert (call["host_to_device_bytes"], call["submissions"]) == (model.arguments[0].nbytes, 1)
    program.close()
    with pytest.warns(StreamingWarning):
        load(model, device, device_memory=enough - 512).close()


def load_half(model: Model, device: str, share: float = 0.5, **options: Any) -> tuple[Any, list[Array]]:
    """The model with part of the memory that it needs, and what it computes with all of it."""
    want, peak = run_whole(model, device)
    with pytest.warns(StreamingWarning):
        return load(model, device, device_memory=int(peak * share), **options), want


def test_submitted_calls(device: str) -> None:
    """They wait for a fence that is signalled later; calls behind them wait for them."""
    model = MODELS["mlp"]()
    program, want = load_half(model, device)
    fence = vm.Fence()
    first = program.main.submit(*model.arguments, wait=[fence])
    others = [program.main.submit(*model.arguments) for _ in range(3)]
    assert not first.done()
    fence.signal()
    for future in (first, *others):
        same(future.result(60), want)
    same(program.main(*model.arguments), want)
    program.close()


def test_contexts_share_the_windows(device: str) -> None:
    model = MODELS["mlp"]()
    program, want = load_half(model, device)
    contexts = [program, program.create_context(), program.create_context()]
    failures: list[BaseException] = []

    def call(context: Any) -> None:
        try:
            for _ in range(5):
                same(context.main(*model.arguments), want)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(context,)) for context in contexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    check_limits(program, program.device.allocator.accounts[-1].limit)
    for context in contexts[1:]:
        context.close()
    program.close()


def test_constants_make_room_for_what_is_allocated_later(device: str) -> None:
    """All are resident at first; then somebody takes half of the memory, and gives it back."""
    model = MODELS["mlp"]()
    want, peak = run_whole(model, device)
    program = load(model, device, device_memory=2 * peak)
    same(program.main(*model.arguments), want)
    taken = program.empty((peak + peak // 2,), np.uint8)
    with pytest.warns(StreamingWarning):
        same(program.main(*model.arguments), want)
    same(program.main(*model.arguments), want)
    assert program.statistics()["calls"][-1]["submissions"] > 1
    check_limits(program, 2 * peak)
    with pytest.raises(MemoryExceeded):
        program.empty((peak,), np.uint8)
    same(program.main(*model.arguments), want)
    del taken
    same(program.main(*model.arguments), want)
    same(program.main(*model.arguments), want)
    assert program.statistics()["calls"][-1]["submissions"] == 1
    program.close()


@pytest.mark.parametrize("cached", [False, True])
def test_constants_that_initializers_compute(device: str, cached: bool, monkeypatch: Any, tmp_path: Any) -> None:
    """Packed weights lie in host memory, and come from the cache of derived constants the second time."""
    if device == "reference":
        pytest.skip("its dots take operands as they are")
    if cached:
        monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))
    model = PACKED()
    want, _ = run_whole(model, device)
    for _ in range(2):
        with pytest.warns(StreamingWarning):
            program = load(model, device, device_memory=LIMIT)
        for _ in range(2):
            same(program.main(*model.arguments), want)
        check_limits(program, LIMIT)
        assert program.statistics()["memory"]["peak_host_bytes"] > LIMIT
        hits, misses = program.placement().derived
        assert (hits > 0, misses > 0) == (cached, not cached)
        program.close()


def test_sizes_that_come_with_a_call(device: str) -> None:
    """Recordings and arenas are made at run time, and made anew for each size."""
    model = symbolic_model()
    program = load(model, device)
    want = {rows: as_list(program.main(_weights(7, rows, 128))) for rows in (3, 40, 5)}
    program.close()
    with pytest.warns(StreamingWarning):
        program = load(model, device, device_memory=LIMIT)
        for rows in (3, 40, 5, 3, 40):
            same(program.main(_weights(7, rows, 128)), want[rows])
    check_limits(program, LIMIT)
    program.close()


def test_profiles_have_each_dispatch_once(device: str) -> None:
    model = MODELS["decoder"]()
    program, want = load_half(model, device, 0.6, profiling=True)
    for _ in range(2):
        same(program.main(*model.arguments), want)
    other = load(model, device, profiling=True)
    for _ in range(2):
        same(other.main(*model.arguments), want)
    names = [
        [[launch.command.label for launch in call.launches] for call in one.profile().calls if call.kind == "call"]
        for one in (program, other)
    ]
    assert names[0] == names[1] and len(names[0]) == 2 and names[0][0]
    program.close()
    other.close()


def test_a_dispatch_that_needs_more_is_refused(device: str) -> None:
    model = MODELS["mlp"]()
    limit = 60_000 if device != "reference" else 200_000
    with pytest.raises(MemoryExceeded, match=rf"entry \w+ binds 6\d+ bytes of constants, .* of {limit} bytes"):
        load(model, device, device_memory=limit)


def test_an_open_device_must_stream(device: str) -> None:
    model = MODELS["mlp"]()
    want, peak = run_whole(model, device)
    policy = Policy(allow_native_code=True)
    with open_device(device, policy=policy) as opened, pytest.raises(CallerError, match="opened with streaming=True"):
        vm.load(model.module, opened, device_memory=peak)
    with open_device(device, memory_limit=peak + peak // 2, policy=policy, streaming=True) as opened:
        first = vm.load(model.module, opened)
        same(first.main(*model.arguments), want)
        with pytest.warns(StreamingWarning):
            second = vm.load(model.module, opened)
        for _ in range(2):
            same(second.main(*model.arguments), want)
            same(first.main(*model.arguments), want)
        assert opened.allocator.peak_bytes <= peak + peak // 2
        first.close()
        second.close()


def test_on_the_command_line(device: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    model = MODELS["mlp"]()
    path, given, wanted = (str(tmp_path / name) for name in ("m.fb", "x.npy", "y.npy"))
    want, peak = run_whole(model, device)
    (tmp_path / "m.fb").write_bytes(model.module)
    np.save(given, model.arguments[0])
    np.save(wanted, want[0])
    flags = [path, f"--device={device}", "--allow-native-code", f"--input=@{given}", f"--expected-output=@{wanted}"]
    with warnings.catch_warnings():
        assert run.main([*flags, f"--device-memory={peak // 2}"]) == 0
        assert capsys.readouterr().err.startswith("warning: the constants take ")
        assert run.main([*flags, "--device-memory=200"]) == 1
    assert re.search("exceeds? the limit of 200 bytes", capsys.readouterr().err)


ACTIVATIONS = 128 * 128 * 4


def _wide(x: Any) -> Any:
    a = jnp.sin(x).T @ x
    b = jnp.cos(a) @ x
    c = jnp.tanh(b) @ a + b
    return jax.nn.softmax((c @ a)[:, ::-1] @ b @ a) + c


@cache
def _wide_module(**options: Any) -> bytes:
    """For all targets, compiled once for all devices."""
    return compiler.compile(jax.jit(_wide).lower(np.zeros((128, 128), np.float32)), **options)


@pytest.mark.sampled(every=3)
def test_an_arena_above_the_largest_allocation_is_split(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver allocates two of the intermediate values at once, of which five live at one time."""
    x = _weights(3, 128, 128)
    most = 2 * ACTIVATIONS
    program = vm.load(_wide_module(), device, allow_native_code=True)
    want = np.array(program.main(x))
    program.close()
    for kind in (ReferenceDevice, OpenCLDevice, VulkanDevice):
        _limit(kind, most, monkeypatch)
    with pytest.raises(DeviceError, match=rf"allocation of \d+ bytes, the largest of the device is {most}"):
        vm.load(_wide_module(), device, allow_native_code=True)
    for split in (most, ACTIVATIONS, 1):
        program = vm.load(_wide_module(max_allocation=split), device, allow_native_code=True)
        np.testing.assert_array_equal(program.main(x), want)
        program.close()


def _limit(kind: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = kind.allocate

    def allocate(self: Any, size: int, use: Any) -> Any:
        if size > most:
            raise DeviceOutOfMemory(f"allocation of {size} bytes, the largest of the device is {most}")
        return made(self, size, use)

    monkeypatch.setattr(kind, "allocate", allocate)
