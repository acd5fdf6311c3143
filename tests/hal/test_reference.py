"""The reference device apart from its kernels: warnings, overlapping memory, memory use, checks of payloads."""

import gc
import struct
import time
import tracemalloc
import warnings
import weakref
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from orchestrion.hal.backend import Entry
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.cts import catalogue
from orchestrion.hal.device import Device
from orchestrion.hal.errors import OutOfMemory
from orchestrion.hal.reference import command_buffer, kernels
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.hal.reference.program import compile_entry
from orchestrion.hal.semaphore import Fence
from orchestrion.schema.dtypes import BY_NAME, COMPUTED
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.scalars import SCALARS, evaluate
from orchestrion.schema.tensor_bytecode import BY_NAME as TENSOR_OPS
from orchestrion.schema.tensor_bytecode import FORMAT, Body, EntryCode
from orchestrion.schema.tensor_encoding import encode
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.schema.tensor_template import encode_template, number, operation, parameter

F32 = BY_NAME["f32"]


@pytest.fixture
def device() -> Iterator[Device]:
    driver = ReferenceDriver()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", pytest.PytestUnraisableExceptionWarning)  # of objects of earlier tests, too
        device = Device.of(driver.open(driver.devices()[0]))
        yield device
        gc.collect()
        device.close()


def record(device: Device, code: EntryCode, ranges: Sequence[tuple[int, int]] | None = None) -> CommandBuffer:
    """A recording of one dispatch. `ranges`: (slot, offset) of each binding; by default each has its own slot."""
    entry = Entry("f", code.accesses, 0, (1, 1, 1))
    executable = device.create_executable(FORMAT, memoryview(encode([code])), (entry,))
    places = [(slot, 0) for slot in range(len(code.accesses))] if ranges is None else ranges
    commands = device.create_command_buffer(1 + max(slot for slot, _ in places))
    bindings = [(slot, offset, length) for (slot, offset), (_, length) in zip(places, code.accesses, strict=True)]
    commands.dispatch(executable, 0, (1, 1, 1), bindings)
    commands.finish()
    return commands


def filled(device: Device, array: np.ndarray) -> Buffer:
    buffer = device.allocator.allocate(array.nbytes)
    buffer.write(array)
    return buffer


def read(buffer: Buffer, like: np.ndarray) -> np.ndarray:
    out = np.empty_like(like)
    buffer.read(out)
    return out


def binary(name: str, type: TensorType) -> EntryCode:
    code = EntryCode(3)
    operands = [code.emit("load_input", (), binding, type)[0] for binding in (0, 1)]
    code.emit("store_output", code.emit(name, operands), 2)
    return code


def test_floating_point_flags_are_silent_executed_and_submitted(device):
    x, y = np.array([1, 3e38, np.inf], np.float32), np.array([0, 1e-38, np.inf], np.float32)
    commands = record(device, binary("divide", TensorType(F32, (3,))))
    buffers = [filled(device, x), filled(device, y), filled(device, x)]
    device.queue.execute(commands, buffers)
    want = [np.inf, np.inf, np.nan]
    np.testing.assert_array_equal(read(buffers[2], x), np.array(want, np.float32))
    buffers[2].write(x)
    semaphore = device.create_semaphore()
    device.queue.submit(commands, buffers, None, Fence([(semaphore, 1)]))
    semaphore.wait(1, 10)
    np.testing.assert_array_equal(read(buffers[2], x), np.array(want, np.float32))
    with pytest.warns(RuntimeWarning):  # and nobody else's state was changed
        np.float32(1) / np.zeros(1, np.float32)


@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
def test_every_scalar_row_means_on_the_device_what_the_table_says(device, dtype):
    rows = [row for row in SCALARS if dtype.kind in row.kinds and row.name != "fma"]
    code = EntryCode(2 + len(rows))
    type = TensorType(dtype, (6,))
    x, y = (np.array(v).astype(dtype.numpy) for v in ([0, 1, 2, 3, 5, 100], [1, 0, 1, 2, 3, 7]))
    (a,) = code.emit("load_input", (), 0, type)
    (b,) = code.emit("load_input", (), 1, type)
    (condition,) = code.emit("compare_lt", (a, b))
    wanted = []
    for position, row in enumerate(rows):
        values = [condition if variable == "i1" else value for variable, value in zip(row.operands, (a, b, a))]  # noqa: B905
        arrays = [x < y if value == condition else x if value == a else y for value in values]
        target = {"T": dtype, "i1": BY_NAME["i1"], "U": BY_NAME["i16"] if row.name == "convert" else dtype}[row.result]
        (result,) = code.emit(row.name, values, *([target] if row.result == "U" else []))
        code.emit("store_output", (result,), 2 + position)
        wanted.append(evaluate(row, arrays, target))
    buffers = [filled(device, x), filled(device, y), *(device.allocator.allocate(want.nbytes) for want in wanted)]
    device.queue.execute(record(device, code), buffers)
    for row, buffer, want in zip(rows, buffers[2:], wanted, strict=True):
        np.testing.assert_array_equal(read(buffer, want), want, err_msg=row.name)


def reversing(size: int) -> EntryCode:
    """out[i] = x[size - 1 - i] + x[i], read through a view."""
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, TensorType(F32, (size,)))
    (back,) = code.emit("reverse", (x,), (0,))
    code.emit("store_output", code.emit("add", (back, x)), 1)
    return code


@pytest.mark.parametrize("ranges", [[(0, 0), (0, 0)], [(0, 0), (0, 8)], [(0, 8), (0, 0)]])
def test_outputs_may_overlap_inputs_within_a_buffer(device, ranges):
    memory = np.arange(12, dtype=np.float32)
    buffer = filled(device, memory)
    device.queue.execute(record(device, reversing(8), ranges), [buffer])
    source, target = (offset // 4 for _, offset in ranges)
    x = memory[source : source + 8].copy()
    memory[target : target + 8] = x[::-1] + x
    np.testing.assert_array_equal(read(buffer, memory), memory)


def test_outputs_may_overlap_inputs_by_way_of_the_table(device):
    memory = np.arange(8, dtype=np.float32)
    commands = record(device, reversing(8))
    apart, together = [filled(device, memory), filled(device, memory)], filled(device, memory)
    for _ in range(2):
        device.queue.execute(commands, apart)
        np.testing.assert_array_equal(read(apart[1], memory), memory[::-1] + memory)
        together.write(memory)
        device.queue.execute(commands, [together, together])
        np.testing.assert_array_equal(read(together, memory), memory[::-1] + memory)


def test_the_views_of_two_tables_are_kept(device):
    """A loop that swaps its states' buffers makes the views once. A buffer that is freed or a third table
    drops them.
    """
    memory = np.arange(8, dtype=np.float32)
    commands = record(device, reversing(8))
    a, b, c = (filled(device, memory) for _ in range(3))
    made = []
    backend = commands.backend
    backend._commands = [lambda table, make=make: made.append(1) or make(table) for make in backend._commands]
    for _ in range(3):
        device.queue.execute(commands, [a, b])
        device.queue.execute(commands, [b, a])
    assert len(made) == 2
    assert [backend in one.backend.users for one in (a, b, c)] == [True, True, False]
    device.queue.execute(commands, [b, c])
    device.queue.execute(commands, [b, a])
    assert len(made) == 3
    c.release()
    assert not any(backend in one.backend.users for one in (a, b))
    device.queue.execute(commands, [a, b])
    assert len(made) == 4


def test_a_value_may_be_stored_twice_and_used_after(device):
    code = EntryCode(4)
    type = TensorType(F32, (4,))
    (x,) = code.emit("load_input", (), 0, type)
    (y,) = code.emit("negate", (x,))
    for binding in (1, 2):
        code.emit("store_output", (y,), binding)
    code.emit("store_output", code.emit("multiply", (y, x)), 3)
    array = np.arange(4, dtype=np.float32)
    buffers = [filled(device, array), *(device.allocator.allocate(16) for _ in range(3))]
    device.queue.execute(record(device, code), buffers)
    results = [read(buffer, array) for buffer in buffers[1:]]
    np.testing.assert_array_equal(results, [-array, -array, -array * array])


def test_bytes_of_i1_are_true_unless_zero_and_stored_as_0_and_1(device):
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, TensorType(BY_NAME["i1"], (4,)))
    code.emit("store_output", code.emit("or", (x, x)), 1)
    raw = np.array([0, 1, 2, 255], np.uint8)
    buffers = [filled(device, raw), filled(device, raw)]
    device.queue.execute(record(device, code), buffers)
    assert read(buffers[1], raw).tolist() == [0, 1, 1, 1]


def test_imported_memory_is_used_as_it_is_at_any_address(device):
    raw = np.arange(41, dtype=np.uint8)
    raw[1:33] = np.arange(8, dtype=np.float32).view(np.uint8)
    raw.flags.writeable = False
    imported = device.allocator.import_host(raw[1:33])
    assert imported is not None and imported.host is not None and np.shares_memory(imported.host, raw)
    out = filled(device, np.zeros(8, np.float32))
    device.queue.execute(record(device, reversing(8)), [imported, out])
    assert read(out, np.zeros(8, np.float32)).tolist() == [7] * 8


def test_memory_is_aligned_and_zeroed(device):
    for size in (1, 16, 100, 4096):
        host = device.allocator.allocate(size).host
        assert host is not None and host.ctypes.data % 64 == 0 and not host.any()


def test_a_recording_keeps_no_memory_of_released_buffers(device):
    commands = record(device, reversing(8))
    buffers = [filled(device, np.zeros(8, np.float32)) for _ in range(2)]
    memory = [weakref.ref(buffer.backend.host.base) for buffer in buffers]
    device.queue.execute(commands, buffers)
    for buffer in buffers:
        buffer.release()
    del buffers, buffer
    gc.collect()
    assert [one() for one in memory] == [None, None]


def test_a_released_recording_keeps_nothing(device):
    commands = record(device, reversing(8))
    buffers = [filled(device, np.zeros(8, np.float32)) for _ in range(2)]
    device.queue.execute(commands, buffers)
    assert all(buffer.backend.users for buffer in buffers)
    commands.release()
    assert not any(buffer.backend.users for buffer in buffers)


def test_a_dispatch_beyond_the_devices_memory_is_refused_when_recorded(device):
    code = EntryCode(1)
    f32 = TensorType(F32, ())
    (zero,) = code.emit("constant", (), f32, bytes(4))
    (wide,) = code.emit("broadcast_in_dim", (zero,), (1 << 21, 1 << 21), ())
    (huge,) = code.emit("exponential", (wide,))
    body = Body((f32, f32))
    body.finish(tuple(body.emit("add", (0, 1))))
    code.emit("store_output", code.emit("reduce", (huge, zero), (0, 1), body), 0)
    with pytest.raises(
        OutOfMemory, match=rf"needs \d+ bytes for intermediates, the device has {device.info.memory_bytes}"
    ):
        record(device, code)


def test_intermediates_count_against_the_limit_of_a_share(device):
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, TensorType(F32, (1000,)))
    (y,) = code.emit("negate", (x,))
    (z,) = code.emit("abs", (y,))
    code.emit("store_output", code.emit("add", (y, z)), 1)
    with device.share(memory_limit=3000) as small:
        with pytest.raises(OutOfMemory, match=r"entry f needs 8000 bytes of scratch memory, .* limit of 3000 bytes"):
            record(small, code)
    with device.share(memory_limit=8000) as enough:
        record(enough, code).release()


def test_an_allocation_beyond_the_devices_memory_is_refused(device):
    with pytest.raises(OutOfMemory, match=str(device.info.memory_bytes)):
        device.allocator.allocate(device.info.memory_bytes + 1)


class Impatient:
    """A watcher that raises after some checks."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.looks = 0

    def check(self) -> None:
        self.looks += 1
        if self.looks > self.patience:
            raise TimeoutError


def test_long_work_is_ended_when_the_caller_has_enough(device):
    """A product that would take minutes is stopped, and the recording can run again."""
    code = EntryCode(2)
    i32 = BY_NAME["i32"]
    (x,) = code.emit("load_input", (), 0, TensorType(i32, (6000, 6000)))
    code.emit("store_output", code.emit("dot_general", (x, x), (), (), (1,), (0,), i32), 1)
    commands = record(device, code)
    buffers = [device.allocator.allocate(4 * 6000 * 6000) for _ in range(2)]
    for _ in range(2):
        watcher = Impatient(2)
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            device.queue.execute(commands, buffers, watcher)
        assert watcher.looks == 3 and time.monotonic() - started < 20


def test_small_work_is_not_watched(device):
    watcher = Impatient(0)
    buffers = [filled(device, np.zeros(8, np.float32)) for _ in range(2)]
    device.queue.execute(record(device, reversing(8)), buffers, watcher)
    assert watcher.looks == 0


def test_many_steps_of_medium_length_are_watched_together():
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, TensorType(F32, (1 << 20,)))
    for _ in range(20):
        (x,) = code.emit("negate", (x,))
    code.emit("store_output", (x,), 1)
    watcher = Impatient(100)
    compiled = compile_entry(code, False, watcher.check)
    registers = compiled.bind([(np.zeros(4 << 20, np.uint8), 0)] * 2)
    for step in compiled.steps:
        step(registers)
    assert 3 <= watcher.looks <= 6


@pytest.mark.parametrize(("batches", "rows"), [(1, 1), (7, 3), (1, 50), (50, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("most", [1, 10, 64, 10**6])
def test_pieces_of_a_product_cover_it_once(batches, rows, most):
    covered = np.zeros((batches, rows), int)
    for some, part in kernels._pieces(batches, rows, 5, most):
        covered[some, part] += 1
        assert covered[some, part].size * 5 <= max(most, 5)
    assert (covered == 1).all()


SIZE = 160_000


def _structural() -> Iterator[tuple[str, EntryCode]]:
    for dtype in ("f32", "i8", "f64"):
        matrix, scalar = TensorType(BY_NAME[dtype], (400, 400)), TensorType(BY_NAME[dtype], ())
        for axes in ((0,), (1,), (0, 1), ()):
            code = EntryCode(2)
            (x,) = code.emit("load_input", (), 0, matrix)
            (zero,) = code.emit("constant", (), scalar, bytes(BY_NAME[dtype].itemsize))
            body = Body((scalar, scalar))
            (more,) = body.emit("compare_gt", (0, 1))
            (best,) = body.emit("select", (more, 0, 1))
            body.finish(tuple(body.emit("divide", (best, 1))))
            code.emit("store_output", code.emit("reduce", (x, zero), axes, body), 1)
            yield f"reduce {dtype} {axes}", code
        for left in (0, 1):
            code = EntryCode(2)
            (x,) = code.emit("load_input", (), 0, matrix)
            (part,) = code.emit("slice", (x,), (0, 0), (400, 400), (1, 2))
            result = BY_NAME["i32"] if dtype == "i8" else BY_NAME["f64"]
            dot = code.emit("dot_general", (part, part), (), (), (left,), (left,), result)
            code.emit("store_output", dot, 1)
            yield f"dot_general {dtype} {left}", code
        code = EntryCode(1)
        code.emit("store_output", code.emit("iota", (), TensorType(BY_NAME[dtype], (SIZE,)), 0), 0)
        yield f"iota {dtype}", code


def _elementwise() -> Iterator[tuple[str, EntryCode]]:
    for row in SCALARS:
        for name in ("i1", "i64", "ui8", "f32", "f64"):
            dtype = BY_NAME[name]
            if dtype.kind not in row.kinds or row.name == "fma":
                continue
            code = EntryCode(3)
            flag = TensorType(BY_NAME["i1"], (SIZE,))
            (x,) = code.emit("load_input", (), 0, TensorType(dtype, (SIZE,)))
            operands = [code.emit("load_input", (), 1, flag)[0] if v == "i1" else x for v in row.operands]
            target = {"convert": BY_NAME["i32"], "bitcast": dtype}.get(row.name)
            code.emit("store_output", code.emit(row.name, operands, *([target] if target else [])), 2)
            yield f"{row.name} {name}", code


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize(("name", "code"), [*_structural(), *_elementwise()], ids=lambda p: p if type(p) is str else "")
def test_the_estimate_of_memory_is_an_upper_bound(name, code, overlapping):
    """Compared with NumPy's real use, by tracemalloc, apart from the blocks in which it converts."""
    compiled = compile_entry(code, overlapping, lambda: None)
    memories = [(np.ones(max(length, 1), np.uint8), 0) for _, length in code.accesses]
    registers = compiled.bind(memories)
    with np.errstate(all="ignore"):
        for _ in range(2):  # the first run fills caches
            tracemalloc.start()
            for step in compiled.steps:
                step(registers)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert peak <= compiled.scratch_bytes + 8192 * 8 * 4


def test_values_go_when_they_are_no_longer_needed():
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, TensorType(F32, (SIZE,)))
    value = x
    for _ in range(10):
        (value,) = code.emit("negate", (value,))
        (value,) = code.emit("reverse", (value,), (0,))
    code.emit("store_output", (value,), 1)
    compiled = compile_entry(code, False, lambda: None)
    assert compiled.scratch_bytes <= 2 * 4 * SIZE


def entry(**changes) -> Entry:
    fields = {"name": "f", "bindings": (("read", 32), ("write", 32)), "parameter_words": 0, "workgroup_size": (1, 1, 1)}
    return Entry(**(fields | changes))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ((), "tensor bytecode has 1 entries, the module names 0"),
        ((entry(bindings=(("read", 32),)),), "code for 2 bindings, the module says 1"),
        ((entry(bindings=(("read", 32), ("read", 32))),), "binding 1: code is write, the module says read"),
        ((entry(bindings=(("write", 32), ("write", 32))),), "binding 0: code is read, the module says write"),
        ((entry(bindings=(("read", 16), ("write", 32))),), "binding 0: code touches 32 bytes of 16"),
    ],
)
def test_a_payload_must_agree_with_what_the_module_says(device, entries, message):
    with pytest.raises(ModuleError, match=message):
        device.create_executable(FORMAT, memoryview(encode([reversing(8)])), entries)


def test_a_payload_may_touch_less_than_the_module_says(device):
    wide = (entry(bindings=(("readwrite", 64), ("readwrite", 64))),)
    device.create_executable(FORMAT, memoryview(encode([reversing(8)])), wide).release()


def in_place(how: str) -> EntryCode:
    """Stores to the binding from which it loaded `x`, and uses `x` afterwards; the second result is `x + x`."""
    four = TensorType(F32, (4,))
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, four)
    if how == "slice":
        (two,) = code.emit("constant", (), TensorType(F32, (2,)), np.float32([9, 9]).tobytes())
        (start,) = code.emit("constant", (), TensorType(BY_NAME["i32"], ()), np.int32(1).tobytes())
        code.emit("store_slice", (two, start), 0, (4,))
    elif how == "whole":
        code.emit("store_output", code.emit("negate", (x,)), 0)
    else:
        halves = [code.emit("slice", (x,), (at,), (at + 2,), (1,))[0] for at in (2, 0)]
        code.emit("store_output", code.emit("concatenate", halves, 0), 0)
    code.emit("store_output", code.emit("add", (x, x)), 1)
    return code


@pytest.mark.parametrize(
    ("how", "want"), [("slice", [1, 9, 9, 4]), ("whole", [-1, -2, -3, -4]), ("turned", [3, 4, 1, 2])]
)
def test_what_was_loaded_stays_when_its_binding_is_written(device, how, want):
    x = np.array([1, 2, 3, 4], np.float32)
    buffers = [filled(device, x), filled(device, x)]
    device.queue.execute(record(device, in_place(how)), buffers)
    np.testing.assert_array_equal(read(buffers[0], x), want)
    np.testing.assert_array_equal(read(buffers[1], x), x + x)


def test_elements_in_another_order_are_read_before_they_are_written(device):
    """The array is long enough to be computed in several blocks."""
    x = np.arange(3 * kernels.PIECE, dtype=np.float32)
    code = EntryCode(1)
    (value,) = code.emit("load_input", (), 0, TensorType(F32, x.shape))
    code.emit("store_output", code.emit("add", (value, *code.emit("reverse", (value,), (0,)))), 0)
    buffer = filled(device, x)
    device.queue.execute(record(device, code), [buffer])
    np.testing.assert_array_equal(read(buffer, x), x + x[::-1])


def test_an_elementwise_update_in_place_copies_nothing(device):
    code = EntryCode(1)
    (value,) = code.emit("load_input", (), 0, TensorType(F32, (1 << 16,)))
    code.emit("store_output", code.emit("negate", (value,)), 0)
    assert compile_entry(code, False, lambda: None).scratch_bytes == 0


def test_recording_a_gather_from_what_has_no_memory_takes_none(device):
    """A broadcast may have any size. The result of gathering from it is charged when it is computed."""
    scalar, many = TensorType(F32, ()), 1 << 33
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, scalar)
    (wide,) = code.emit("broadcast_in_dim", (x,), (many,), ())
    (none,) = code.emit("constant", (), TensorType(BY_NAME["i32"], (0, 1)), b"")
    code.emit("gather", (wide, none), (1,), (), (), (), (0,), 1, (many,))
    code.emit("store_output", (x,), 1)
    tracemalloc.start()
    try:
        record(device, code)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def scattering(groups: int, rows: int, row: int, updates: int) -> EntryCode:
    """Input, updates, and the result; all indices are 0."""
    code, f32, i32 = EntryCode(3), BY_NAME["f32"], BY_NAME["i32"]
    (x,) = code.emit("load_input", (), 0, TensorType(f32, (groups, rows, row)))
    (zero,) = code.emit("constant", (), TensorType(i32, ()), bytes(4))
    (indices,) = code.emit("broadcast_in_dim", (zero,), (groups, updates), ())
    (update,) = code.emit("load_input", (), 1, TensorType(f32, (groups, updates, row)))
    body = Body((TensorType(f32, ()), TensorType(f32, ())))
    body.finish(tuple(body.emit("add", (0, 1))))
    code.emit("store_output", code.append(TENSOR_OPS["scatter"], (x, indices, update), (body,)), 2)
    return code


@pytest.mark.parametrize("sizes", [(2, 3, 0, 4), (0, 3, 2, 4), (2, 0, 0, 4), (2, 3, 4, 0)])
def test_a_scatter_without_elements_gives_its_input(device, sizes):
    groups, rows, row, updates = sizes
    x = np.arange(max(1, groups * rows * row), dtype=np.float32)
    given = np.ones(max(1, groups * updates * row), np.float32)
    buffers = [filled(device, x), filled(device, given), filled(device, np.zeros_like(x))]
    device.queue.execute(record(device, scattering(*sizes)), buffers)
    if groups * rows * row:
        np.testing.assert_array_equal(read(buffers[2], x), x)


@pytest.mark.parametrize("rows", [0, 5])
def test_very_many_groups_of_a_scatter_without_updates_take_no_memory(device, rows):
    nothing = [device.allocator.allocate(0) for _ in range(3)]
    commands = record(device, scattering(1 << 40, rows, 0, 0))
    tracemalloc.start()
    try:
        device.queue.execute(commands, nothing)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def template(place: int, then: bytes, now: bytes) -> bytes:
    """Two entries that negate binding 0 into binding 1. A parameter of 1 patches bytes of the code."""
    codes = []
    for _ in range(2):
        codes.append(EntryCode(2))
        (x,) = codes[-1].emit("load_input", (), 0, TensorType(F32, (4,)))
        codes[-1].emit("store_output", codes[-1].emit("negate", (x,)), 1)
    payload = encode(codes)
    at = payload.index(then, place)
    (old,) = struct.unpack_from("<q", payload, at)
    by = int.from_bytes(now, "little") - int.from_bytes(then, "little")
    changed = operation("add", number(old), operation("multiply", parameter(0), number(by)))
    rows = struct.pack("<HI", 1, 1) + struct.pack("<QH", at, len(changed)) + changed + struct.pack("<HI", 1, 0)
    return struct.pack("<4sHHI", b"OTBT", 1, 0, 2) + rows + payload


STORE = struct.pack("<HIH", 2, 1, 1)


@pytest.mark.parametrize(
    ("place", "then", "now", "message"),
    [
        (12, b"\2\0", b"\3\0", "code for 3 bindings, the module says 2"),
        (12, b"\2\0", b"\1\0", "binding 1 out of range"),
        (0, STORE, struct.pack("<HIH", 2, 1, 0), "binding 0 is stored to|code is readwrite, the module says read"),
        (8, b"\2\0", b"\1\0", "bytes after the last entry"),
    ],
)
def test_parameters_of_a_template_change_sizes_and_nothing_else(device, place, then, now, message):
    """A binding that is only read may be read-only memory."""
    entries = tuple(Entry(name, (("read", 0), ("write", 0)), 1, (1, 1, 1)) for name in "fg")
    executable = device.create_executable(FORMAT, memoryview(template(place, then, now)), entries)
    commands = device.create_command_buffer(2)
    commands.dispatch(executable, 0, (1, 1, 1), [(0, 0, 16), (1, 0, 16)], struct.pack("<I", 0))
    with pytest.raises(ModuleError, match=message):
        commands.dispatch(executable, 0, (1, 1, 1), [(0, 0, 16), (1, 0, 16)], struct.pack("<I", 1))


def test_what_parameters_make_is_counted_and_not_kept_without_end(device):
    """Constants are copied for each set of parameters; the memory is charged and the cache is limited."""
    size = 1 << 20
    code = EntryCode(1)
    (x,) = code.emit("constant", (), TensorType(BY_NAME["i8"], (size,)), bytes(size))
    code.emit("store_output", (x,), 0)
    payload = encode_template([code], [1])
    executable = device.create_executable(FORMAT, memoryview(payload), (Entry("f", (("write", 0),), 1, (1, 1, 1)),))
    assert executable.backend.held_bytes(0, struct.pack("<I", 7)) > size
    assert executable.backend.code_bytes(0, struct.pack("<I", 7)) > size
    tracemalloc.start()
    try:
        for word in range(40):
            executable.backend.scratch_bytes(0, struct.pack("<I", word + 1))
        assert tracemalloc.get_traced_memory()[0] < 24 << 20
    finally:
        tracemalloc.stop()


def test_expressions_of_a_template_count_as_code(device):
    """They are evaluated again for each set of parameters."""
    data = template(12, b"\2\0", b"\2\0")
    entries = tuple(Entry(name, (("read", 0), ("write", 0)), 1, (1, 1, 1)) for name in "fg")
    executable = device.create_executable(FORMAT, memoryview(data), entries)
    parameters = struct.pack("<I", 1)
    (first, second) = (executable.backend.code_bytes(entry, parameters) for entry in (0, 1))
    assert first - second == len(operation("add", number(0), operation("multiply", parameter(0), number(0))))


@pytest.mark.parametrize("case", [case for case in catalogue.CASES if case.startswith("control_flow.")])
def test_loops_of_long_recordings(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their views are made for each command, again in each iteration."""
    monkeypatch.setattr(command_buffer, "MAX_KEPT_REGISTERS", 0)
    catalogue.run(case, "reference")
