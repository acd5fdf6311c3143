"""A module that imports functions of another one: right on every device, isolated, refused by name where it must be."""

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.compiler.errors import CompileError
from orchestrion.hal.errors import HalError
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write
from orchestrion.vm.errors import CallerError, DeadlineExceeded, UnresolvedImport

DEVICES = ("reference", "opencl", "vulkan")
ENCODER = """
func.func @encode(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<2x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
func.func @split(%x: tensor<4xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
  %0 = stablehlo.slice %x [0:2] : (tensor<4xi32>) -> tensor<2xi32>
  %1 = stablehlo.slice %x [2:4] : (tensor<4xi32>) -> tensor<2xi32>
  return %0, %1 : tensor<2xi32>, tensor<2xi32>
}
func.func @step(%x: tensor<f32> {tf.aliasing_output = 0 : i32}) -> tensor<f32> {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %two : tensor<f32>
  return %0 : tensor<f32>
}
"""
DECLARED = """
func.func private @encoder.encode(tensor<4xf32>, tensor<f32>) -> tensor<2x4xf32>
func.func private @encoder.split(tensor<4xi32>) -> (tensor<2xi32>, tensor<2xi32>)
func.func private @encoder.step(tensor<f32>) -> tensor<f32>
"""
#: main(a, s) = 2 encode(a a, s) - encode(a, s)
TWICE = (
    DECLARED
    + """
func.func @main(%a: tensor<4xf32>, %s: tensor<f32>) -> tensor<2x4xf32> {
  %b = stablehlo.multiply %a, %a : tensor<4xf32>
  %c = func.call @encoder.encode(%b, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %d = stablehlo.add %c, %c : tensor<2x4xf32>
  %e = func.call @encoder.encode(%a, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %f = stablehlo.subtract %d, %e : tensor<2x4xf32>
  return %f : tensor<2x4xf32>
}
"""
)
#: doubles x until it is 100 or more, one call per turn; the second result is the first half of v reversed
LOOP = (
    DECLARED
    + """
func.func @main(%x: tensor<f32>, %v: tensor<4xi32>) -> (tensor<f32>, tensor<2xi32>) {
  %most = stablehlo.constant dense<100.0> : tensor<f32>
  %r = stablehlo.while(%i = %x) : tensor<f32>
    cond {
      %c = stablehlo.compare LT, %i, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = func.call @encoder.step(%i) : (tensor<f32>) -> tensor<f32>
      stablehlo.return %n : tensor<f32>
    }
  %h:2 = func.call @encoder.split(%v) : (tensor<4xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  %w = stablehlo.reverse %h#0, dims = [0] : tensor<2xi32>
  return %r, %w : tensor<f32>, tensor<2xi32>
}
"""
)
A, S = np.array([1, 2, 3, 4], np.float32), np.float32(1)
WANTED = np.broadcast_to(2 * (A * A + 1) - (A + 1), (2, 4))


def blob(text: str) -> bytes:
    return compiler.compile(text, targets=("reference", "opencl", "spirv"))


@pytest.fixture(scope="module")
def encoder() -> bytes:
    return blob(ENCODER)


@pytest.fixture(scope="module")
def twice() -> bytes:
    return blob(TWICE)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    try:
        opened = open_device(request.param)
    except HalError as error:
        pytest.skip(str(error))
    with opened:
        yield opened


def test_calls_are_right(device: Any, encoder: bytes, twice: bytes) -> None:
    with_module = vm.load(twice, device=device, modules={"encoder": encoder})
    try:
        for _ in range(3):
            np.testing.assert_array_equal(with_module.main(A, S), WANTED)
        assert with_module.statistics()["calls"][-1]["allocations"] == 0
    finally:
        with_module.close()


def test_calls_in_loops_and_of_several_results(device: Any, encoder: bytes) -> None:
    program = vm.load(blob(LOOP), device=device, modules={"encoder": encoder})
    try:
        number, half = program.main(np.float32(3), np.arange(4, dtype=np.int32))
        assert number == 192
        np.testing.assert_array_equal(half, [1, 0])
    finally:
        program.close()


def test_submitted_calls(device: Any, encoder: bytes, twice: bytes) -> None:
    program = vm.load(twice, device=device, modules={"encoder": encoder})
    try:
        futures = [program.main.submit(A * n, S) for n in range(4)]
        for n, future in enumerate(futures):
            a = A * n
            np.testing.assert_array_equal(future.result(60), np.broadcast_to(2 * (a * a + 1) - (a + 1), (2, 4)))

        async def awaited() -> Any:
            return await program.main.submit(A, S)

        np.testing.assert_array_equal(asyncio.run(awaited()), WANTED)
    finally:
        program.close()


def test_a_loaded_program_is_shared_and_stays_open(device: Any, encoder: bytes, twice: bytes) -> None:
    shared = vm.load(encoder, device=device)
    try:
        first = vm.load(twice, modules={"encoder": shared})
        second = vm.load(twice, device=device, modules={"encoder": shared})
        assert first.device.info is device.info
        np.testing.assert_array_equal(first.main(A, S), WANTED)
        np.testing.assert_array_equal(second.main(A, S), WANTED)
        first.close()
        second.close()
        np.testing.assert_array_equal(shared.encode(A, S), np.broadcast_to(A + 1, (2, 4)))
    finally:
        shared.close()


def test_contexts_run_side_by_side(device: Any, encoder: bytes, twice: bytes) -> None:
    program = vm.load(twice, device=device, modules={"encoder": encoder})
    wrong: list[Any] = []

    def work(seed: int) -> None:
        context = program.create_context()
        try:
            for n in range(10):
                a = A * (seed + n)
                got = context.main(a, S)
                if not np.array_equal(got, np.broadcast_to(2 * (a * a + 1) - (a + 1), (2, 4))):
                    wrong.append((seed, n, got))
        finally:
            context.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    program.close()
    assert not wrong


def test_nothing_is_left(device: Any, encoder: bytes, twice: bytes) -> None:
    program = vm.load(twice, device=device, modules={"encoder": encoder})
    program.main(A, S)
    context = program.create_context()
    context.main(A, S)
    context.close()
    program.close()
    gc.collect()
    assert device.leaks == () and len(device.device_state.shares) == 1


def test_modules_may_import_from_those_before_them(device: Any, encoder: bytes, twice: bytes) -> None:
    top = """
    func.func private @middle.main(tensor<4xf32>, tensor<f32>) -> tensor<2x4xf32>
    func.func @main(%a: tensor<4xf32>, %s: tensor<f32>) -> tensor<2x4xf32> {
      %r = func.call @middle.main(%a, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<2x4xf32>
      %n = stablehlo.negate %r : tensor<2x4xf32>
      return %n : tensor<2x4xf32>
    }
    """
    program = vm.load(blob(top), device=device, modules={"encoder": encoder, "middle": twice})
    try:
        np.testing.assert_array_equal(program.main(A, S), -WANTED)
    finally:
        program.close()
    with pytest.raises(UnresolvedImport, match=r"encoder\.encode .* is not there"):
        vm.load(blob(top), device=device, modules={"middle": twice, "encoder": encoder})


def test_sizes_of_the_imported_function_may_be_dynamic(device: Any, twice: bytes) -> None:
    jax = pytest.importorskip("jax")
    from jax import export

    (n,) = export.symbolic_shape("n")
    shapes = jax.ShapeDtypeStruct((n,), np.float32), jax.ShapeDtypeStruct((), np.float32)
    exported = export.export(jax.jit(lambda x, s: jax.numpy.stack([x + s, x + s])))(*shapes)
    text = exported.mlir_module().replace("@main", "@encode")
    program = vm.load(twice, device=device, modules={"encoder": blob(text)})
    try:
        np.testing.assert_array_equal(program.main(A, S), WANTED)
    finally:
        program.close()


def test_the_limits_of_the_imported_module_hold(encoder: bytes, twice: bytes) -> None:
    poor = vm.load(encoder, deadline=1e-9, load_limits=vm.Limits(deadline=60))
    program = vm.load(twice, modules={"encoder": poor})
    try:
        with pytest.raises(DeadlineExceeded, match="1e-09") as caught:
            program.main(A, S)
        assert "encode" in str(caught.value)
    finally:
        program.close()
        poor.close()


def test_the_callers_deadline_ends_the_function(encoder: bytes, twice: bytes) -> None:
    program = vm.load(twice, deadline=1e-9, load_limits=vm.Limits(deadline=60), modules={"encoder": vm.load(encoder)})
    try:
        with pytest.raises(DeadlineExceeded):
            program.main(A, S)
    finally:
        program.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("func.func @encode(%x: tensor<4xf32>) -> tensor<2x4xf32>", "module encoder has encode"),
        ("func.func @other(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<2x4xf32>", "module encoder exports other"),
        ("func.func @encode(%x: tensor<4xf64>, %s: tensor<f32>) -> tensor<2x4xf32>", "module encoder has encode"),
    ],
    ids=["count", "name", "type"],
)
def test_another_type_is_refused(text: str, reason: str, twice: bytes) -> None:
    body = "{\n  %c = stablehlo.constant dense<0.0> : tensor<2x4xf32>\n  return %c : tensor<2x4xf32>\n}"
    with pytest.raises(UnresolvedImport, match=reason):
        vm.load(twice, modules={"encoder": blob(f"{text} {body}")})


def test_missing_modules_are_named(twice: bytes, encoder: bytes) -> None:
    with pytest.raises(UnresolvedImport, match=r"encoder\.encode.*--module=NAME=FILE"):
        vm.load(twice)
    with pytest.raises(UnresolvedImport, match="no module encoder was given"):
        vm.load(twice, modules={"decoder": encoder})
    with pytest.raises(CallerError, match="a module of the runtime"):
        vm.load(twice, modules={"hal": encoder})


def test_modules_are_on_one_device(twice: bytes, encoder: bytes) -> None:
    shared = vm.load(encoder, device="reference")
    try:
        with pytest.raises(CallerError, match="another open device"):
            vm.load(twice, device="reference", modules={"encoder": shared})
    finally:
        shared.close()


def test_a_closed_module_is_named(twice: bytes, encoder: bytes) -> None:
    shared = vm.load(encoder)
    program = vm.load(twice, modules={"encoder": shared})
    shared.close()
    with pytest.raises(vm.VmError, match="module encoder is closed, its function encode cannot be called"):
        program.main(A, S)
    program.close()


#: writes to its argument, and keeps its result for the next call
HOSTILE = """
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.fill (hal.recording, hal.buffer, i32, i64, i64, i64, i32) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.execute (hal.recording, hal.buffer*) -> ()
export @step (x: tensor<f32>) -> (y: tensor<f32>)
program @reference profile "reference" {
  global @kept : hal.buffer mutable
  global @fill : hal.recording mutable
  func @begin () -> () {
    %i0 = i32.const 1
    %r0 = call_import @hal.recording.create(%i0)
    %r1 = ref.null
    %i1 = i32.const 0
    %l0 = i64.const 0
    %l1 = i64.const 4
    %l2 = i64.const 7
    %i2 = i32.const 4
    call_import @hal.recording.fill(%r0, %r1, %i1, %l0, %l1, %l2, %i2)
    call_import @hal.recording.finish(%r0)
    global.store.ref move %r0, @fill
    return ()
  }
  func @step (hal.view, hal.view) -> (hal.view) {
    %r3 = global.load.ref @fill
    %r4 = WHAT
    call_import @hal.execute(%r3, %r4)
    %r5 = call_import @hal.view.buffer(%r1)
    global.store.ref move %r5, @kept
    return (%r1)
  }
  entry @step
  initializer context @begin
}
"""
STEP = (
    DECLARED
    + """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %y = func.call @encoder.step(%x) : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
"""
)


@pytest.mark.parametrize(
    ("what", "reason"),
    [("call_import @hal.view.buffer(%r0)", "write access"), ("global.load.ref @kept", "released|got null|null")],
    ids=["argument", "kept"],
)
def test_a_hostile_module_sees_only_its_call(what: str, reason: str) -> None:
    hostile = vm.load(write(assemble(HOSTILE.replace("WHAT", what))))
    program = vm.load(blob(STEP), modules={"encoder": hostile})
    try:
        with pytest.raises(vm.VmError, match=reason):
            for _ in range(2):
                program.main(np.float32(1))
    finally:
        program.close()
        hostile.close()


def test_a_hostile_module_records_nothing_of_its_caller() -> None:
    """A recording keeps what it names alive, so its later runs would use the caller's memory after the call."""
    recorded = """%r3 = call_import @hal.recording.create(%i1) %r4 = call_import @hal.view.buffer(%r1)
        %l1 = i64.const 4 %i2 = i32.const 4 call_import @hal.recording.fill(%r3, %r4, %i1, %l0, %l1, %l2, %i2)
        return (%r1)"""
    start = HOSTILE.index("%r3 = global.load.ref @fill")
    end = HOSTILE.index("}", start)
    hostile = vm.load(write(assemble(HOSTILE[:start] + recorded + HOSTILE[end:])))
    program = vm.load(blob(STEP), modules={"encoder": hostile})
    try:
        with pytest.raises(vm.VmError, match="buffer of 4 bytes is lent for a call: a recording uses it in a slot"):
            program.main(np.float32(1))
    finally:
        program.close()
        hostile.close()


def test_ranges_of_one_buffer_behind_two_handles_overlap() -> None:
    """A caller may pass one view as argument and as result."""
    with open_device("reference") as device:
        owner = device.allocator.allocate(64)
        first, second = owner.lend(device, True), owner.lend(device, True)
        commands = device.create_command_buffer(2)
        commands.copy(0, 0, 1, 16, 32)
        commands.finish()
        with pytest.raises(HalError, match="overlaps itself"):
            device.queue.execute(commands, [first, second])
        first.give_back(owner)
        second.give_back(owner)
        owner.release()
        commands.release()


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ("func.func private @encode(tensor<4xf32>) -> tensor<4xf32>", "a name like @module.function"),
        ("func.func private @hal.encode(tensor<4xf32>) -> tensor<4xf32>", "module of the runtime"),
        ("func.func private @encoder.encode(tensor<4xf16>) -> tensor<4xf32>", "element types of imported functions"),
        ("func.func private @encoder.encode(tensor<4xcomplex<f32>>) -> tensor<4xf32>", "element types of imported"),
        ("func.func private @encoder.encode(tensor<0xf32>) -> tensor<4xf32>", "known sizes of at least 1"),
        ("func.func private @encoder.encode(tensor<4xf32>)", "has no results"),
    ],
)
def test_declarations_are_refused(declaration: str, reason: str) -> None:
    name = declaration.partition("@")[2].partition("(")[0]
    taken, _, given = declaration.partition("(")[2].partition(")")
    given = given.removeprefix(" -> ")
    made = "%y = " if given else ""
    text = f"""
    {declaration}
    func.func @main(%x: {taken}) -> {taken} {{
      {made}func.call @{name}(%x) : ({taken}) -> ({given})
      return %x : {taken}
    }}
    """
    with pytest.raises(CompileError, match=reason):
        compiler.compile(text, targets=["reference"])


def test_a_public_declaration_is_refused() -> None:
    text = """
    "builtin.module"() ({
      "func.func"() <{function_type = () -> tensor<f32>, sym_name = "encoder.encode"}> ({}) : () -> ()
      "func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({
      ^bb0(%0: tensor<f32>):
        "func.return"(%0) : (tensor<f32>) -> ()
      }) : () -> ()
    }) : () -> ()
    """
    with pytest.raises(CompileError, match="public"):
        compiler.compile(text, targets=["reference"])


def test_only_the_compiler_writes_types_of_imports() -> None:
    with pytest.raises(CompileError, match="only the compiler writes"):
        compiler.compile(ENCODER, targets=["reference"], attributes={"imports.a.b": "f32[] -> f32[]"})


@pytest.mark.parametrize("text", ["f32[4]", "f33[4] -> f32[]", "f32[4],f32[] -> f32[]", "f32[4], -> f32[]", "-> f32[4"])
def test_malformed_types_are_the_modules_fault(text: str, encoder: bytes) -> None:
    from orchestrion.schema.imported import parse_function_type

    with pytest.raises(ModuleError, match="imported function"):
        parse_function_type(text)
