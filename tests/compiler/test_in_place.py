"""Entries that update a tensor where it is, on each target's device: only the window is computed and written."""

from typing import Any

import numpy as np
import pytest
from cpu_devices import code_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import NAMES, apply, filled, tensor

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.verifier import check_input
from orchestrion.compiler.targets.target import target
from orchestrion.hal.backend import Entry
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import load_driver

DRIVERS = {"reference": "reference", "opencl": "opencl", "spirv": "vulkan"}
EACH_TARGET = pytest.mark.parametrize("name", DRIVERS)
SOME = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def executable(arrays: list[np.ndarray], lines: list[str], stored: str = "%r") -> Operation:
    """The first array is updated; `lines` compute `%r`, which is stored into its binding, from `%a0`, `%a1`, ..."""
    types = [tensor(x.shape, NAMES[x.dtype]) for x in arrays]
    bindings = [f'{{access = "read", length = {x.nbytes} : i64}}' for x in arrays]
    bindings[0] = bindings[0].replace("read", "readwrite")
    names = ", ".join(f"%b{i}: !ll_seq.binding" for i in range(len(arrays)))
    loads = [f'%a{i} = "ll_seq.load_input"(%b{i}) : (!ll_seq.binding) -> {t}' for i, t in enumerate(types)]
    store = f'"ll_seq.store_output"({stored}, %b0) : ({types[0]}, !ll_seq.binding) -> ()'
    body = "\n".join([*loads, *lines, store, '"ll_seq.end"() : () -> ()'])
    text = f"""
      "ll_seq.executable"() <{{sym_name = "e"}}> ({{
        "ll_seq.entry"() <{{sym_name = "f", workload = array<i64: 1, 1, 1>, bindings = [{", ".join(bindings)}]}}> ({{
        ^bb0({names}):
          {body}
        }}) : () -> ()
      }}) : () -> ()"""
    module = parse(text, "case.mlir")
    check_input(module)
    op = module.block.first
    assert op is not None
    return op


def lowered(name: str, arrays: list[np.ndarray], lines: list[str]) -> Operation:
    op = executable(arrays, lines)
    target(name).lower(op.regions[0].block.first)
    return op


def run(name: str, arrays: list[np.ndarray], lines: list[str]) -> np.ndarray:
    """What is in the first binding afterwards."""
    op = lowered(name, arrays, lines)
    entry: Any = op.regions[0].block.first
    size = tuple(entry.workgroup_size.ints)
    accesses = tuple(("read" if i else "readwrite", x.nbytes) for i, x in enumerate(arrays))
    try:
        driver = load_driver(DRIVERS[name])
        backend = driver.open(driver.devices()[0])
    except DriverUnavailable as error:
        pytest.skip(str(error))
    with Device.of(backend, policy=Policy(allow_native_code=True)) as device:
        payload = code_for(device.info, name, op)
        code = device.create_executable(
            device.info.formats[0], memoryview(payload.data), (Entry("f", accesses, 0, size),)
        )
        buffers = [device.allocator.allocate(x.nbytes) for x in arrays]
        for array, buffer in zip(arrays, buffers, strict=True):
            buffer.write(np.frombuffer(array.tobytes(), np.uint8))
        commands = device.create_command_buffer(len(buffers))
        commands.dispatch(
            code, 0, tuple(entry.workload.ints), [(slot, 0, buffer.size) for slot, buffer in enumerate(buffers)]
        )
        commands.finish()
        device.queue.execute(commands, buffers)
        raw = np.empty(arrays[0].nbytes, np.uint8)
        buffers[0].read(raw)
        for item in (*buffers, commands, code):
            item.release()
    return raw.view(arrays[0].dtype).reshape(arrays[0].shape)


def update(arrays: list[np.ndarray], value: str, shape: tuple[int, ...], starts: str, index: str) -> str:
    x = arrays[0]
    t, u = (tensor(s, NAMES[x.dtype]) for s in (x.shape, shape))
    types = [t, u] + [tensor((), index)] * x.ndim
    return f"%r = {apply('dynamic_update_slice', f'%a0, {value}, {starts}', '', types, t)}"


@EACH_TARGET
@SOME
@given(data=st.data())
def test_only_the_window_changes(name: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    sizes = tuple(data.draw(st.integers(1, size)) for size in shape)
    starts = [np.int32(data.draw(st.integers(-3, 9))) for _ in shape]
    x, u = filled(shape), filled(sizes) + 1000
    want = x.copy()
    places = [min(max(int(s), 0), whole - size) for s, whole, size in zip(starts, shape, sizes, strict=True)]
    want[tuple(slice(p, p + size) for p, size in zip(places, sizes, strict=True))] = -u
    arrays = [x, u, *[np.asarray(start) for start in starts]]
    names = ", ".join(f"%a{i + 2}" for i in range(len(shape)))
    t = tensor(sizes)
    lines = [f"%n = {apply('negate', '%a1', '', [t], t)}", update(arrays, "%n", sizes, names, "i32")]
    np.testing.assert_array_equal(run(name, arrays, lines), want)


@EACH_TARGET
@pytest.mark.parametrize(("rows", "depth"), [(4, 6), (24, 32), (1, 5000)], ids=["thread", "tiled", "workgroup"])
def test_a_product_goes_straight_into_its_window(name: str, rows: int, depth: int) -> None:
    rng = np.random.default_rng(rows)
    cache, a = rng.normal(size=(64, 40)).astype(np.float32), rng.normal(size=(rows, depth)).astype(np.float32)
    b = rng.normal(size=(depth, 16)).astype(np.float32)
    arrays = [cache, a, b, np.array(21, np.uint8), np.array(200, np.uint8)]
    dims = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    u = tensor((rows, 16), "f32")
    lines = [
        f"%d = {apply('dot_general', '%a1, %a2', dims, [tensor(a.shape, 'f32'), tensor(b.shape, 'f32')], u)}",
        update(arrays, "%d", (rows, 16), "%a3, %a4", "ui8"),
    ]
    want = cache.copy()
    want[21 : 21 + rows, 24:40] = a @ b
    got = run(name, arrays, lines)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    outside = np.ones(cache.shape, bool)
    outside[21 : 21 + rows, 24:40] = False
    np.testing.assert_array_equal(got[outside], cache[outside])


@pytest.mark.parametrize("name", ["opencl", "spirv"])
def test_the_workload_is_the_window(name: str) -> None:
    arrays = [filled((100, 100)), filled((3, 5)), np.array(4, np.int32)]
    entry: Any = lowered(name, arrays, [update(arrays, "%a1", (3, 5), "%a2, %a2", "i32")]).regions[0].block.first
    assert entry.workload.ints == (15, 1, 1)
    loaded = {op.operands[0] for op in entry.walk() if op.name == "kernel.load"}
    assert entry.body.block.arguments[0] not in loaded


def test_the_reference_device_loads_nothing_of_what_is_updated() -> None:
    arrays = [filled((100, 100)), filled((3, 5)), np.array(4, np.int32)]
    op = lowered("reference", arrays, [update(arrays, "%a1", (3, 5), "%a2, %a2", "i32")])
    names = [inner.name.partition(".")[2] for inner in op.regions[0].block.first.walk()]
    assert [n for n in names if n not in ("entry", "end")] == ["load_input", "load_input", "store_slice"]


@EACH_TARGET
@pytest.mark.parametrize(
    "lines",
    [
        ['%r = "stablehlo.negate"(%a0) : (tensor<4xi32>) -> tensor<4xi32>'],
        [
            '%s = "stablehlo.reverse"(%a0) <{dimensions = array<i64: 0>}> : (tensor<4xi32>) -> tensor<4xi32>',
            '%u = "stablehlo.slice"(%s) <{start_indices = array<i64: 0>, limit_indices = array<i64: 2>, '
            "strides = array<i64: 1>}> : (tensor<4xi32>) -> tensor<2xi32>",
            '%r = "stablehlo.dynamic_update_slice"(%a0, %u, %a1) : '
            "(tensor<4xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>",
        ],
    ],
    ids=["no update", "reads what it updates"],
)
def test_what_cannot_be_done_in_place_is_refused(name: str, lines: list[str]) -> None:
    with pytest.raises(CompileError, match="stores to a binding that is loaded from"):
        lowered(name, [filled((4,)), np.array(1, np.int32)], lines)
