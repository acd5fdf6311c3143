"""Small files that ask for much: work and memory stay within the limits, and in proportion to the file.

Each was found by a mutant or by reading the code as a stranger would who wants to do harm.
"""

import gc
import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from orchestrion.hal.buffer import BufferView
from orchestrion.hal.device import Device
from orchestrion.hal.errors import HalError
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema import dtypes, encoding, tensor_encoding, tensor_template, writer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.isa import BY_NAME
from orchestrion.schema.tensor_bytecode import BY_NAME as TENSOR_OPS
from orchestrion.schema.tensor_bytecode import Body, EntryCode
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.vm.dry_run import dry_run
from orchestrion.vm.errors import (
    DeadlineExceeded,
    DepthExceeded,
    FuelExhausted,
    MemoryExceeded,
    NoProgram,
    Trap,
    UnresolvedImport,
    VmError,
)
from orchestrion.vm.limits import Limits
from orchestrion.vm.program import Program, load

F32 = dtypes.BY_NAME["f32"]
DEADLINE, SLACK = 0.2, 10.0  # seconds; the slack is for busy machines, and far from "for ever"
MEMORY = 64 << 20
IMPORTS = "\n".join(f"import @{row.name} {row.signature}" for row in HAL_IMPORTS.values())
EMPTY = 'export @f program @p profile "reference" { func @f () -> () { return () } entry @f %s }'


def looping(body: str, before: str = "", extra: str = "") -> bytes:
    """A module whose export does `before` and then `body` for ever."""
    return writer.write(
        assemble(
            f"""{IMPORTS} export @f
            program @p profile "reference" {{ {extra}
              func @f () -> () {{ {before} ^again: {body} br ^again }}
              entry @f }}"""
        )
    )


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    taken = time.monotonic() - started
    assert taken < seconds, f"{taken:.2f} s, {seconds} s allowed"


def ends(
    data: bytes, error: type[Exception] | tuple[type[Exception], ...], match: str | None = None, **limits: float
) -> None:
    """The export ends with the error, in time, and so does closing."""
    program = load(data, **{"deadline": DEADLINE, "memory": MEMORY, **limits})  # type: ignore[arg-type]
    try:
        with within(limits.get("deadline", DEADLINE) + SLACK), pytest.raises(error, match=match):
            program["f"]()
    finally:
        with within(SLACK), suppress(HalError):
            program.close()


MANY = 20_000
REGISTERS = ", ".join(["%i0"] * MANY)
LONGS = ", ".join(["%l0"] * MANY)


# The time of a call: instructions with very many operands, and native functions that work through a file.

LONG_INSTRUCTIONS = {
    "call": (f"call @g({REGISTERS})", f"func @g ({', '.join(['i32'] * MANY)}) -> () {{ return () }}"),
    "parameters": (
        f"%r0 = call_import @hal.recording.create(%i0) call_import @hal.recording.parameters(%r0, {REGISTERS})",
        "",
    ),
}


@pytest.mark.parametrize("name", LONG_INSTRUCTIONS)
def test_long_instructions_cost_more_fuel(name: str) -> None:
    body, extra = LONG_INSTRUCTIONS[name]
    ends(looping(body, extra=extra), DeadlineExceeded)


def test_enqueued_work_ends_in_time() -> None:
    """Each batch is bounded, and the deadline is looked at inside one, too."""
    before = """%i1 = i32.const 1 %l0 = i64.const 1048576 %r1 = call_import @hal.allocate(%l0)
        %r0 = call_import @hal.recording.create(%i1) %r2 = ref.null
        call_import @hal.recording.fill(%r0, %r2, %i0, %l1, %l0, %l1, %i1) call_import @hal.recording.finish(%r0)"""
    ends(looping("call_import @hal.enqueue(%r0, %r1)", before), DeadlineExceeded)
    ends(looping("call_import @hal.enqueue(%r0, %r1)", before), MemoryExceeded, memory=(1 << 20) + (64 << 10))


def test_long_functions_are_not_translated() -> None:
    """Python's compiler takes microseconds per operand, and cannot be ended."""
    calls = f"call_import @hal.recording.parameters(%r0, {REGISTERS})\n" * 30
    body = f"%r0 = call_import @hal.recording.create(%i0) {calls} return ()"
    text = IMPORTS + (EMPTY % "").replace("return ()", body)
    program = load(writer.write(assemble(text)))
    for _ in range(21):
        with within(SLACK / 2):
            program["f"]()
    program.close()


def test_dimensions_beyond_any_rank() -> None:
    before = "%i0 = i32.const 1056 %l0 = i64.const 4611686018427387904 %r0 = call_import @hal.allocate(%l1)"
    ends(
        looping(f"%r1 = call_import @hal.view.create(%r0, %l1, %i0, {LONGS})", before),
        Trap,
        "is not a valid tensor type",
    )
    ends(
        looping(f"%r1 = call_import @hal.view.destination(%r2, %i0, {LONGS})", before),
        Trap,
        "is not a valid tensor type",
    )


def executable(code: EntryCode, bindings: list[tuple[str, int]]) -> str:
    rows = ", ".join(f"{access} {length}" for access, length in bindings)
    payload = tensor_encoding.encode([code]).hex()
    return (
        f'executable @e {{ entry @e bindings [{rows}] variant "tensor-bytecode" workgroups [(1, 1, 1)] '
        f'payload hex "{payload}" }}'
    )


def test_executables_made_again_and_again() -> None:
    code = EntryCode(1)
    (x,) = code.emit("constant", (), TensorType(F32, (1 << 18,)), bytes(1 << 20))
    code.emit("store_output", (x,), 0)
    ends(
        looping("%r0 = call_import @hal.executable.create(%i0)", extra=executable(code, [("write", 1 << 20)])),
        DeadlineExceeded,
    )


def test_a_template_made_anew_for_each_dispatch() -> None:
    """All of its payload is read again for other parameters."""
    small, large = EntryCode(1), EntryCode(1)
    (x,) = small.emit("constant", (), TensorType(F32, (1,)), bytes(4))
    small.emit("store_output", (x,), 0)
    (x,) = large.emit("constant", (), TensorType(F32, (1,)), bytes(4))
    for _ in range(20_000):
        (x,) = large.emit("negate", (x,))
    large.emit("store_output", (x,), 0)
    payload = tensor_template.encode_template([small, large], [1, 1])
    rows = "entry @a parameters 1 bindings [write 4] entry @b parameters 1 bindings [write 4]"
    variant = f'variant "tensor-bytecode" workgroups [(1, 1, 1), (1, 1, 1)] payload hex "{payload.hex()}"'
    code = f"executable @e {{ {rows} {variant} }}"
    before = """%l1 = i64.const 4 %l2 = i64.const 1 %i1 = i32.const 1 %r2 = call_import @hal.allocate(%l1)
        %r0 = call_import @hal.executable.create(%i0)"""
    body = """%i2 = i32.add %i2, %i1 %r1 = call_import @hal.recording.create(%i0)
        call_import @hal.recording.parameters(%r1, %i2)
        call_import @hal.recording.dispatch(%r1, %r0, %i0, %l2, %l2, %l2, %r2, %i0, %l0, %l1)"""
    ends(looping(body, before, code), DeadlineExceeded)


# Recordings: bindings that may overlap, commands without end, much work in one submission.


def test_many_bindings_that_may_overlap() -> None:
    code, half = EntryCode(1000), 500
    for at in range(half):
        code.emit("store_output", code.emit("load_input", (), half + at, TensorType(F32, (1,))), at)
    bindings = [("write", 4)] * half + [("read", 4)] * half
    slots = ", ".join(f"%r9, %i{1 + at % 2}, %l0, %l1" for at in range(2 * half))
    before = """%i0 = i32.const 2 %i1 = i32.const 1 %l1 = i64.const 4 %l2 = i64.const 1
        %r1 = call_import @hal.executable.create(%i2) %r0 = call_import @hal.recording.create(%i0)"""
    body = f"call_import @hal.recording.dispatch(%r0, %r1, %i2, %l2, %l2, %l2, {slots})"
    ends(looping(body, before, executable(code, bindings)), (DeadlineExceeded, MemoryExceeded))


RECORDED = """%l0 = i64.const 16777216 %r0 = call_import @hal.allocate(%l0)
    %i1 = i32.const 1 %r1 = call_import @hal.recording.create(%i0) %i3 = i32.const {count}
    ^next: call_import @hal.recording.fill(%r1, %r0, %i0, %l1, %l0, %l1, %i1) %i2 = i32.add %i2, %i1
    %i4 = i32.lt_s %i2, %i3 br_if %i4, ^next, ^end ^end: call_import @hal.recording.finish(%r1)"""


def test_a_recording_of_very_much_work() -> None:
    ends(looping("call_import @hal.execute(%r1)", RECORDED.format(count=3000)), DeadlineExceeded)


def test_copies_between_slots_take_linear_time() -> None:
    """Each is compared with the table of every submission."""
    body = "call_import @hal.recording.copy(%r1, %r9, %i0, %l1, %r9, %i1, %l1, %l0)"
    before = "%i2 = i32.const 2 %r1 = call_import @hal.recording.create(%i2) %i1 = i32.const 1 %l0 = i64.const 8"
    ends(looping(body, before), MemoryExceeded, deadline=60)


@pytest.mark.parametrize("count", [3, 3000])
def test_submitted_work_ends_with_the_call(count: int) -> None:
    ends(looping("call_import @hal.submit(%r1, %r8, %r9)", RECORDED.format(count=count)), DeadlineExceeded)


def test_work_that_waits_for_what_never_comes() -> None:
    before = RECORDED.format(count=1) + " %r3 = call_import @hal.fence.create()"
    ends(looping("call_import @hal.submit(%r1, %r3, %r9)", before), VmError)
    ends(looping("await %r3", before), DeadlineExceeded)


def test_failed_submissions_hold_nothing() -> None:
    """An error is kept for whoever waits, the arrays in the frames that it passed are not."""
    code = EntryCode(1)
    (x,) = code.emit("load_input", (), 0, TensorType(F32, (1 << 20,)))
    for _ in range(12):
        (x,) = code.emit("exponential", (x,))
    code.emit("store_output", (x,), 0)
    size = 4 << 20
    before = f"""%l0 = i64.const {size} %r0 = call_import @hal.allocate(%l0) %l1 = i64.const 1
        %r2 = call_import @hal.executable.create(%i0) %r1 = call_import @hal.recording.create(%i0)
        call_import @hal.recording.dispatch(%r1, %r2, %i0, %l1, %l1, %l1, %r0, %i0, %l9, %l0)
        call_import @hal.recording.finish(%r1)"""
    data = looping("call_import @hal.submit(%r1, %r8, %r9)", before, executable(code, [("readwrite", size)]))
    device = Device.of(ReferenceDriver().open(ReferenceDriver().devices()[0]))
    program = load(data, device, deadline=0.1, memory=MEMORY)
    tracemalloc.start()
    with pytest.raises(VmError):
        program["f"]()
    with suppress(HalError):
        program.close()
    gc.collect()
    device.device_state.collect()
    assert tracemalloc.get_traced_memory()[0] < 4 << 20
    tracemalloc.stop()
    device.close()


# Loading.


def test_initializers_share_one_deadline() -> None:
    spin = "func @g () -> () { ^a: br ^a } " + "initializer program @g " * 50
    with within(DEADLINE + SLACK), pytest.raises(DeadlineExceeded):
        load(writer.write(assemble(EMPTY % spin)), deadline=DEADLINE, fuel=math.inf)
    with pytest.raises(FuelExhausted):
        load(writer.write(assemble(EMPTY % spin.replace("^a: br ^a", "return ()"))), fuel=20)


@pytest.mark.parametrize("kind", ["program", "context"])
@pytest.mark.parametrize(
    "code", ['fail "no"', "%l0 = i64.const 99 %r0 = call_import @hal.allocate(%l0) %i0 = i32.div_s %i1, %i1 return ()"]
)
def test_a_failed_load_leaves_nothing(kind: str, code: str) -> None:
    text = IMPORTS + EMPTY % f"func @g () -> () {{ {code} }} initializer {kind} @g"
    device = Device.of(ReferenceDriver().open(ReferenceDriver().devices()[0]))
    with pytest.raises(Trap):
        load(writer.write(assemble(text)), device)
    device.device_state.collect()
    assert device.device_state.open_shares == 1
    assert not device.device_state.owned
    device.close()
    assert device.device_state.abandoned


def test_many_exports_load_in_linear_time() -> None:
    count = 20_000
    exports = "".join(f"export @e{at} " for at in range(count))
    data = writer.write(assemble(exports + EMPTY % ("entry @f " * count)))
    with within(SLACK):
        load(data).close()


def test_messages_do_not_repeat_long_strings() -> None:
    signature = "(" + ", ".join(["i32"] * 50_000) + ") -> ()"
    count = 5000
    code = encoding.encode_all([(BY_NAME["import.present"], (at, 0)) for at in range(count)])
    code += encoding.encode(BY_NAME["return"], ((),))
    function = writer.Function("f", code, registers=(1, 0, 0, 0, 0))
    program = writer.Program("p", "reference", [function], [0])
    data = writer.write(writer.Module([program], [writer.Export("f")], [writer.Import("x.y", signature)] * count))
    with within(SLACK), pytest.raises(UnresolvedImport, match=f"and {count - 100} more") as caught:
        load(data)
    assert len(str(caught.value)) < 100_000


def test_programs_for_nobody_are_listed_in_short() -> None:
    module = assemble(EMPTY % "")
    programs = [replace(module.programs[0], name=f"p{at}", profile="x" * 50_000) for at in range(1000)]
    with pytest.raises(NoProgram) as caught:
        load(writer.write(replace(module, programs=programs)))
    assert len(str(caught.value)) < 1_000_000


def test_a_damaged_source_map_is_read_once() -> None:
    module = assemble('export @f program @p profile "reference" { func @f () -> () { call @f() return () } entry @f }')
    (program,) = module.programs
    rows = [(2 * at, f"line {at}") for at in range(50_000)]
    function = replace(program.functions[0], locations=rows[::-1])
    data = writer.write(replace(module, programs=(replace(program, functions=(function,)),)))
    ends(data, DepthExceeded, "source map: row 1 does not ascend", deadline=10)


def memory_of(data: bytes, action: Callable[[Program], object], **limits: float) -> int:
    """The most bytes of Python that an action on a loaded program takes."""
    program = load(data, **limits)  # type: ignore[arg-type]
    try:
        return traced(lambda: action(program))
    finally:
        program.close()


TENSORS = """export @f (x: tensor<{size}xf32>) -> (y: tensor<4xf32>)
    program @p profile "reference" {{ global @kept : any mutable {extra}
    func @f (hal.view, hal.view) -> (hal.view) {{ {body} return (%r1) }} entry @f }}"""


def dry(program: Program) -> None:
    """What a load does for an export on a device that prepares submissions."""
    context, device = program.context, program.device
    views = [BufferView(device.allocator.allocate(16), F32, (4,)) for _ in range(2)]
    assert dry_run(context, context.program.entries[0], views) == []


LARGE = "%l0 = i64.const 10000000 %i0 = i32.const 1056"


@pytest.mark.parametrize(
    "body",
    [
        "%r2 = list.i64.new %l0",
        "%r2 = buffer.alloc %l0",
        "%r2 = global.load.ref @kept list.i64.resize %r2, %l0",
        "%r2 = call_import @hal.view.destination(%r2, %i0, %l0)",
        "^a: %r2 = call.cached @g(%l0) br ^a",
    ],
)
def test_a_dry_run_takes_no_memory_and_changes_no_list(body: str) -> None:
    """A load interprets exports without limits of calls, before anybody calls them."""
    extra = """func @g (i64) -> (any) { %r0 = list.i64.new %l0 return (%r0) }
        func @init () -> () { %l0 = i64.const 3 %r0 = list.i64.new %l0 global.store.ref %r0, @kept return () }
        initializer context @init"""
    data = writer.write(assemble(IMPORTS + TENSORS.format(size=4, extra=extra, body=f"{LARGE} {body}")))
    assert memory_of(data, dry) < 1 << 20


def test_large_arguments_of_a_small_file_are_not_allocated_at_load() -> None:
    data = writer.write(assemble(IMPORTS + TENSORS.format(size=1 << 28, extra="", body="")))
    for limits, cold in ((None, True), (Limits(memory=math.inf), False), (Limits(memory=1 << 20), True)):
        program = load(data, load_limits=limits)
        assert ("exceeds the limit" in program.statistics()["load"].get("cold", "")) is cold
        program.close()


@pytest.mark.parametrize("body", ["%r2 = list.i64.new %l0", "%r2 = buffer.alloc %l0", "list.i64.resize %r3, %l0"])
def test_fuel_ends_before_memory_is_taken(body: str) -> None:
    def action(program: Program) -> None:
        with pytest.raises(FuelExhausted):
            program["f"]()

    data = looping(body, f"%r3 = list.i64.new %l1 {LARGE}")
    assert memory_of(data, action, fuel=10_000) < 1 << 20


# Tensor bytecode: 6 bytes of an entry, 12 of a body; sizes that only multiply.


def entry_of(payload: bytes, count: int = 1) -> bytes:
    return b"OTBC" + (1).to_bytes(2, "little") + bytes(2) + count.to_bytes(4, "little") + payload


def traced(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bindings_take_no_memory_until_they_are_used() -> None:
    payload = entry_of((0xFFFF).to_bytes(2, "little") + bytes(4), 1)
    payload = entry_of(payload[12:] * 500, 500)
    assert traced(lambda: tensor_encoding.decode(payload)) < 1 << 20


def test_bodies_do_not_nest() -> None:
    code = EntryCode(2)
    code.emit("load_input", (), 0, TensorType(F32, (4,)))
    code.emit("load_input", (), 1, TensorType(F32, ()))
    payload = tensor_encoding.encode([code])
    nested = b"".join(
        number.to_bytes(width, "little") for number, width in ((12, 2), (2, 4), (0, 4), (1, 4), (0, 2), (1, 4))
    )
    payload = payload[:14] + (3).to_bytes(4, "little") + payload[18:] + nested * 5000
    with pytest.raises(ModuleError, match="a body inside a body"):
        tensor_encoding.decode(payload)


def run_entry(code: EntryCode, lengths: list[int], **limits: int) -> None:
    """Dispatch an entry over direct buffers of so many bytes; the last is written."""
    bindings = [("read", length) for length in lengths[:-1]] + [("write", lengths[-1])]
    given = ", ".join(f"%r{2 + at}, %i0, %l0, %l{2 + at}" for at in range(len(lengths)))
    before = (
        "%l1 = i64.const 1 %r0 = call_import @hal.executable.create(%i0) %r1 = call_import @hal.recording.create(%i0)"
    )
    for at, length in enumerate(lengths):
        before += f" %l{2 + at} = i64.const {length} %r{2 + at} = call_import @hal.allocate(%l{2 + at})"
    before += f" call_import @hal.recording.dispatch(%r1, %r0, %i0, %l1, %l1, %l1, {given})"
    data = looping(
        "call_import @hal.execute(%r1)", before + " call_import @hal.recording.finish(%r1)", executable(code, bindings)
    )
    ends(data, (DeadlineExceeded, MemoryExceeded), **limits)


def test_a_product_of_very_many_empty_matrices() -> None:
    many = 1 << 40
    code = EntryCode(3)
    (x,) = code.emit("load_input", (), 0, TensorType(F32, (many, 3, 0)))
    (y,) = code.emit("load_input", (), 1, TensorType(F32, (many, 0, 0)))
    (z,) = code.emit("dot_general", (x, y), (0,), (0,), (2,), (1,), F32)
    code.emit("store_output", (z,), 2)
    run_entry(code, [0, 0, 0])


def test_a_product_that_takes_long() -> None:
    """Of integers, which no library multiplies quickly."""
    size = 1500
    i64 = dtypes.BY_NAME["i64"]
    code = EntryCode(3)
    (x,) = code.emit("load_input", (), 0, TensorType(i64, (size, size)))
    (y,) = code.emit("load_input", (), 1, TensorType(i64, (size, size)))
    (z,) = code.emit("dot_general", (x, y), (), (), (1,), (0,), i64)
    code.emit("store_output", (z,), 2)
    run_entry(code, [8 * size * size] * 3)


def test_a_scalar_op_that_takes_long() -> None:
    """A power of integers is a loop over all bits of the exponent."""
    size, i64 = 4_000_000, dtypes.BY_NAME["i64"]
    code = EntryCode(2)
    (x,) = code.emit("load_input", (), 0, TensorType(i64, (size,)))
    (ones,) = code.emit("not", (x,))
    (y,) = code.emit("power", (ones, ones))
    code.emit("store_output", (y,), 1)
    run_entry(code, [8 * size] * 2, memory=1 << 30)


def test_a_reduction_that_takes_long() -> None:
    size, i64 = 4_000_000, dtypes.BY_NAME["i64"]
    code = EntryCode(3)
    (x,) = code.emit("load_input", (), 0, TensorType(i64, (size,)))
    (zero,) = code.emit("load_input", (), 1, TensorType(i64, ()))
    body = Body((TensorType(i64, ()), TensorType(i64, ())))
    (ones,) = body.emit("not", (1,))
    body.finish(tuple(body.emit("power", (ones, ones))))
    (y,) = code.append(TENSOR_OPS["reduce"], (x, zero), ((0,), body))
    code.emit("store_output", (y,), 2)
    run_entry(code, [8 * size, 8, 8], memory=2 << 30)


def test_an_iota_as_long_as_memory_without_elements() -> None:
    code = EntryCode(1)
    (x,) = code.emit("iota", (), TensorType(F32, (0, 1 << 40)), 1)
    code.emit("store_output", (x,), 0)
    run_entry(code, [0])


def test_executables_that_share_a_payload_share_its_code() -> None:
    code = EntryCode(1)
    (x,) = code.emit("load_input", (), 0, TensorType(F32, (4,)))
    for _ in range(5000):
        (x,) = code.emit("negate", (x,))
    count = 100
    rows = [
        writer.Executable(
            "e",
            [writer.Entry(f"e{at}", [writer.Binding(writer.Access.Read, 16)])],
            [writer.Variant("tensor-bytecode", tensor_encoding.encode([code]), [(1, 1, 1)])],
        )
        for at in range(count)
    ]
    data = assemble(
        f"""{IMPORTS} export @f program @p profile "reference" {{ func @f () -> () {{
            %i1 = i32.const 1 %i2 = i32.const {count}
            ^next: %r0 = call_import @hal.executable.create(%i0) %i0 = i32.add %i0, %i1
            %i3 = i32.lt_s %i0, %i2 br_if %i3, ^next, ^end ^end: return () }} entry @f }}"""
    )
    program = load(writer.write(replace(data, programs=(replace(data.programs[0], executables=rows),))))
    assert traced(program["f"]) < 16 << 20
    program.close()


# Objects: long chains, and many small ones.


def test_a_chain_of_lists_is_released() -> None:
    body = "%r1 = list.ref.new %l0 list.ref.set %r1, %l9, %r0 %r0 = ref.copy move %r1"
    ends(looping(body, "%l0 = i64.const 1"), MemoryExceeded, deadline=60)


HOARDED = {
    "lists": "%r1 = list.i32.new %l9",
    "host buffers": "%r1 = buffer.alloc %l9",
    "slices": "%r1 = buffer.slice %r6, %l9, %l9",
    "buffers": "%r1 = call_import @hal.allocate(%l9)",
    "views": "%r1 = call_import @hal.view.create(%r5, %l9, %i9, %l9)",
    "recordings": "%r1 = call_import @hal.recording.create(%i8)",
    "fences": "%r1 = call_import @hal.fence.create()",
    "constants": "%r1 = call_import @hal.constant(%i8, %l9, %l7)",
}


@pytest.mark.parametrize("what", HOARDED)
def test_small_objects_count(what: str) -> None:
    """What a program can hold on to takes at most a few times the memory it is allowed."""
    limit = 8 << 20
    before = """%i9 = i32.const 520 %l7 = i64.const 16 %r5 = call_import @hal.allocate(%l7) %r6 = buffer.alloc %l7
        %l1 = i64.const 1 %r2 = list.ref.new %l1"""
    body = f"""{HOARDED[what]} %l3 = i64.add %l3, %l1 list.ref.resize %r2, %l3
        list.ref.set %r2, %l4, %r1 %l4 = i64.add %l4, %l1"""
    data = looping(body, before, f'constant @c : tensor<16xi8> = hex "{bytes(16).hex()}"')
    assert traced(lambda: ends(data, MemoryExceeded, memory=limit, deadline=60)) < 4 * limit
