"""Helpers of the compiler's tests: StableHLO text as an entry, lowered, and run on a device without the HAL."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from shutil import which
from typing import Any
from zlib import crc32

import image_runner
import numpy as np
import pytest
from object_files import kept

from orchestrion.compiler.ir.attributes import ArrayAttr, DialectAttr, attribute_of, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.verifier import check_input
from orchestrion.compiler.kernel.dialect import Call, MultiplyAdd
from orchestrion.compiler.profiles import DEFAULT
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.cpu import levels
from orchestrion.compiler.targets.cpu.levels import LEVELS
from orchestrion.compiler.targets.target import Payload, target
from orchestrion.hal.backend import BackendBuffer, BackendDevice, Binding, Entry, MemoryUse
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.registry import load_driver
from orchestrion.hal.workload import Grid, divide, fold

#: the levels of this machine's architecture, best first
HOST_LEVELS = levels.host_levels()


@dataclass(frozen=True)
class Lowered:
    """One entry for one target: its code, what to dispatch, the shape and NumPy type of each result.

    `payloads`: the code; of processors an image for each level that the test has, best first.
    """

    target: str
    module: Module
    payloads: Sequence[Payload]
    name: str
    workload: Grid
    workgroup_size: Grid
    results: list[tuple[tuple[int, ...], np.dtype[Any]]]
    parameters: int = 0

    @property
    def payload(self) -> Payload:
        """The code, for the best processor."""
        return self.payloads[0]

    @property
    def schedule(self) -> str:
        """The steps of the entry's schedule, as text."""
        entry = next(op for op in self.module.walk() if isinstance(op, ll_seq.Entry))
        (schedule,) = entry.schedules or ()
        assert isinstance(schedule, DialectAttr)
        return schedule.body


def entry_module(text: str) -> Module:
    """A module with an executable of one entry that computes the text's `@main`, which holds StableHLO only."""
    source = parse(text, "test.mlir")
    func = next(op for op in source.walk() if isinstance(op, Func))
    old, values = func.entry, [*func.entry.arguments, *func.entry.last.operands]
    block = Block([ll_seq.BINDING] * len(values))
    builder = Builder(block)
    mapping = {
        argument: builder.build(ll_seq.LoadInput, binding=binding, value=argument.type).value
        for argument, binding in zip(old.arguments, block.arguments, strict=False)
    }
    for op in old:
        if op is not old.last:
            builder.insert(op.clone(mapping))
    for value, binding in zip(old.last.operands, block.arguments[len(old.arguments) :], strict=True):
        builder.build(ll_seq.StoreOutput, value=mapping[value], binding=binding)
    builder.build(ll_seq.End)
    accesses = ["read"] * len(old.arguments) + ["write"] * len(old.last.operands)
    bindings = [
        {"access": access, "length": tensor_of(value).num_elements * dtype_of(value).itemsize}
        for access, value in zip(accesses, values, strict=True)
    ]
    most = max(tensor_of(value).num_elements for value in old.last.operands)
    module = Module.empty()
    executable = Builder(module.block).build(ll_seq.Executable, sym_name="test", body=Region([Block()]))
    Builder(executable.body.block).build(
        ll_seq.Entry,
        sym_name="test_main",
        workload=dense_ints(most, 1, 1),
        bindings=attribute_of(bindings),
        body=Region([block]),
    )
    return module


def serialized(
    text: str, name: str, results: list[tuple[tuple[int, ...], np.dtype[Any]]], workload: int, parameters: int = 0
) -> Lowered:
    """Text of an `ll_seq.executable` whose one entry is lowered already."""
    module = parse(text, "test.mlir")
    check_input(module)
    entry = next(op for op in module.walk() if isinstance(op, ll_seq.Entry))
    payloads = payloads_of(name, module.block.first)
    if name == "spirv":
        check_spirv(payloads[0].data)
    return Lowered(
        name, module, payloads, entry.symbol, (workload, 1, 1), entry.workgroup_size.ints, results, parameters
    )


def lower(text: str, name: str, machine: str = DEFAULT, schedule: str | None = None) -> Lowered:
    """Lower for a target's machine and serialize: from the IR, and from its text read back, which must be the same.

    `schedule`: the steps of the entry's schedule, such as `[tile(e, 4), bind(grid, invocation, 64)]`. Without it the
    target chooses.
    """
    func = next(op for op in parse(text, "test.mlir").walk() if isinstance(op, Func))
    results = [(tensor_of(value).shape, dtype_of(value).numpy) for value in func.entry.last.operands]
    module = entry_module(text)
    entry = next(op for op in module.walk() if isinstance(op, ll_seq.Entry))
    if schedule is not None:
        entry.schedules = ArrayAttr((DialectAttr("kernel.schedule", schedule),))
    target(name).lower(entry, machine)
    payloads = payloads_of(name, module.block.first)
    if name == "spirv":
        check_spirv(payloads[0].data)
    again = parse(str(module), "again.mlir")
    assert str(again) == str(module)
    best = [level_of(payloads[0])] if name == "cpu" else []
    assert payloads_of(name, again.block.first, best)[0].data == payloads[0].data
    return Lowered(name, module, payloads, "test_main", entry.workload.ints, entry.workgroup_size.ints, results)


def payloads_of(name: str, executable: Operation, levels: Sequence[str] = ()) -> Sequence[Payload]:
    """The code of an executable. For processors an image for each level, by default those of `host_levels`."""
    made = target(name)
    return made.payloads(executable, levels) if name == "cpu" else [made.serialize(executable)]


def level_of(payload: Payload) -> str:
    """The level that an image is for."""
    (level,) = payload.features & LEVELS.keys()
    return level


def check_spirv(words: bytes) -> None:
    """Khronos' validator has nothing to say, where it is installed."""
    tool = which("spirv-val")
    if tool is not None:
        said = subprocess.run([tool, "--target-env", "vulkan1.1", "-"], input=words, capture_output=True, timeout=60)
        assert not said.returncode, said.stderr.decode()


@pytest.fixture(scope="session", autouse=True)
def _object_files() -> Iterator[None]:
    """LLVM compiles equal texts once."""
    with kept():
        yield


@pytest.fixture(autouse=True)
def _other_level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every day, each second test of this folder has native images of one more level of this machine, in turn."""
    own, turn = levels.host_levels(), crc32(request.node.nodeid.encode())
    others = [name for name in HOST_LEVELS if name not in own]
    if others and turn % 2 and "one_level" not in request.fixturenames:
        also = others[turn // 2 % len(others)]
        monkeypatch.setattr(levels, "host_levels", lambda: (*own, also))


@pytest.fixture(scope="session")
def entry() -> Callable[[str], Module]:
    """`entry(text)`: `@main` of StableHLO text as the body of an entry that is not lowered yet."""
    return entry_module


@pytest.fixture(scope="session")
def lowered() -> Callable[..., Lowered]:
    """`lowered(text, target, machine, schedule)`: `@main` of StableHLO text as one lowered and serialized entry."""
    return lower


class Devices:
    """Backends of the targets, opened when first asked for. Runs entries on them without the front of the HAL."""

    DRIVERS = {"opencl": "opencl", "spirv": "vulkan"}

    def __init__(self) -> None:
        self._open: dict[str, BackendDevice] = {}

    def device(self, target_name: str) -> BackendDevice:
        """The first device for a target; skips the test, with the driver's reason, where there is none."""
        if target_name not in self._open:
            try:
                driver = load_driver(self.DRIVERS[target_name])
                self._open[target_name] = driver.open(driver.devices()[0])
            except DriverUnavailable as error:
                pytest.skip(str(error))
        return self._open[target_name]

    def run(
        self, entry: Lowered, *arrays: np.ndarray, most_groups: Grid | None = None, parameters: bytes = b""
    ) -> list[np.ndarray]:
        """The results of one dispatch. The grid is folded to `most_groups` per dimension, or the device's limits."""
        if entry.target == "cpu":
            return run_image(entry, arrays, parameters)
        device = self.device(entry.target)
        missing = entry.payload.features - device.info.features
        if missing:
            pytest.skip(f"{device.info.name} lacks {', '.join(sorted(missing))}")
        sizes = [prod(shape) * dtype.itemsize for shape, dtype in entry.results]
        buffers = [device.allocate(size, MemoryUse.ARENA) for size in [a.nbytes for a in arrays] + sizes]
        for buffer, array in zip(buffers, arrays, strict=False):
            write(device, buffer, as_bytes(array))
        for buffer, size in zip(buffers[len(arrays) :], sizes, strict=True):
            write(device, buffer, np.full(size, 0x55, np.uint8))
        device.queue.wait_idle()
        outs = [np.empty(size, np.uint8) for size in sizes]
        grid = fold(divide(entry.workload, entry.workgroup_size), most_groups or device.info.limits.max_workgroup_count)
        self._dispatch(device, entry, buffers, grid, parameters)
        for out, buffer in zip(outs, buffers[len(arrays) :], strict=True):
            if buffer.host is None:
                device.queue.read(buffer, 0, out)
            else:
                out[:] = buffer.host[: out.size]
        for buffer in buffers:
            buffer.release()
        return [out.view(dtype).reshape(shape) for out, (shape, dtype) in zip(outs, entry.results, strict=True)]

    def _dispatch(
        self, device: BackendDevice, entry: Lowered, buffers: list[BackendBuffer], groups: Grid, parameters: bytes
    ) -> None:
        lengths = [buffer.size for buffer in buffers]
        accesses = ["read"] * (len(buffers) - len(entry.results)) + ["write"] * len(entry.results)
        point = Entry(entry.name, tuple(zip(accesses, lengths, strict=True)), entry.parameters, entry.workgroup_size)
        executable = device.create_executable(device.info.formats[0], memoryview(entry.payload.data), (point,))
        commands = device.create_command_buffer(0)
        bindings = [Binding(buffer, 0, length) for buffer, length in zip(buffers, lengths, strict=True)]
        commands.dispatch(executable, 0, groups, bindings, parameters)
        commands.finish()
        device.queue.execute(commands, ())
        commands.release()
        executable.release()

    def close(self) -> None:
        for device in self._open.values():
            device.close()


@pytest.fixture(scope="session")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devices]:
    """What runs lowered entries: `devices.run(lowered, *arrays)`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORCHESTRION_CACHE", str(tmp_path_factory.mktemp("cache")))
        opened = Devices()
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def kernel() -> Callable[..., Lowered]:
    """`kernel(text, target, results, workload)`: text of a lowered executable, serialized."""
    return serialized


@pytest.fixture
def computes(devices: Devices) -> Callable[..., list[np.ndarray]]:
    """`computes(text, target, *arrays)`: the results of `@main` on a target's device, made for a machine, by a schedule
    if one is given.
    """

    def run(
        text: str,
        name: str,
        *arrays: np.ndarray,
        most_groups: Grid | None = None,
        machine: str = DEFAULT,
        schedule: str | None = None,
    ) -> list[np.ndarray]:
        return devices.run(lower(text, name, machine, schedule), *arrays, most_groups=most_groups)

    return run


def run_image(entry: Lowered, arrays: Sequence[np.ndarray], parameters: bytes) -> list[np.ndarray]:
    """The results of one dispatch of native code, the same for every level that this machine runs. Levels that round a
    product before they add it differ in the last bits of floats.
    """
    (executable,) = entry.module.block
    here = image_runner.levels_here()
    if not here:
        pytest.skip("no level of native images runs here")
    groups = prod(divide(entry.workload, entry.workgroup_size))
    found: list[list[np.ndarray]] = []
    payloads = [payload for payload in entry.payloads if level_of(payload) in here]
    levels = [level_of(payload) for payload in payloads]
    for payload in payloads:
        outs = [np.full(prod(shape) * dtype.itemsize, 0x55, np.uint8) for shape, dtype in entry.results]
        given = [np.array(as_bytes(array)) for array in arrays]
        image_runner.run(payload.data, 0, [*given, *outs], groups, parameters)
        found.append([out.view(dtype).reshape(shape) for out, (shape, dtype) in zip(outs, entry.results, strict=True)])
    adds_products = any(isinstance(op, MultiplyAdd | Call) for op in executable.walk())  # functions may
    for level, others in zip(levels[1:], found[1:], strict=True):
        for one, other in zip(found[0], others, strict=True):
            if adds_products and one.dtype.kind == "f" and LEVELS[level].fused != LEVELS[levels[0]].fused:
                bound = 64 * np.finfo(one.dtype).eps
                finite = np.abs(one[np.isfinite(one)])
                np.testing.assert_allclose(other, one, rtol=bound, atol=bound * finite.max(initial=0))
            else:
                np.testing.assert_array_equal(one, other)
    return found[0]


def write(device: BackendDevice, buffer: BackendBuffer, data: np.ndarray) -> None:
    """As the front does it: the queue is for buffers that are not mapped."""
    if buffer.host is None:
        device.queue.write(buffer, 0, data)
    else:
        buffer.host[: data.size] = data


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of an array as a device holds them."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
