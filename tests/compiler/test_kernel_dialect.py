"""Kernel IR as text: what its ops mean on every target, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import Block
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.verifier import verify
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.dialect import DIALECT, SCALARS
from orchestrion.compiler.scalars.primitives import PRIMITIVES
from orchestrion.compiler.targets.target import target as target_of
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.profiles import INSTRUCTION_SETS

EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])


def entry_text(body: str, accesses: list[str], workgroup_size: int = 4, name: str = "test_main") -> str:
    bindings = ", ".join(f'{{access = "{access}", length = 4 : i64}}' for access in accesses)
    arguments = ", ".join(f"%b{at}: !ll_seq.binding" for at in range(len(accesses)))
    return (
        f'"ll_seq.entry"() <{{sym_name = "{name}", workload = array<i64: 4, 1, 1>, bindings = [{bindings}], '
        f"workgroup_size = array<i64: {workgroup_size}, 1, 1>}}> ({{\n^bb0({arguments}):\n{PREAMBLE}\n{body}\n"
        f'"kernel.return"() : () -> ()\n}}) : () -> ()'
    )


def executable_text(*entries: str) -> str:
    return '"ll_seq.executable"() <{sym_name = "test"}> ({\n' + "\n".join(entries) + "\n}) : () -> ()"


def constant(name: str, value: str, dtype: str) -> str:
    typed = value if dtype == "i1" else f"{value} : {dtype}"
    return f'%{name} = "kernel.constant"() <{{value = {typed}}}> : () -> {dtype}'


#: `%i`, the invocation's number, and some constants
PREAMBLE = "\n".join(
    [
        '%group = "kernel.workgroup_id"() : () -> ui32',
        '%local = "kernel.local_id"() : () -> ui32',
        constant("u0", "0", "ui32"),
        constant("u1", "1", "ui32"),
        constant("u4", "4", "ui32"),
        constant("s0", "0", "i32"),
        constant("s1", "1", "i32"),
        '%base = "kernel.multiply"(%group, %u4) : (ui32, ui32) -> ui32',
        '%i = "kernel.add"(%base, %local) : (ui32, ui32) -> ui32',
    ]
)


def load(name: str, binding: int, dtype: str, index: str = "i") -> str:
    return f'%{name} = "kernel.load"(%b{binding}, %{index}) : (!ll_seq.binding, ui32) -> {dtype}'


def store(value: str, binding: int, dtype: str, index: str = "i") -> str:
    return f'"kernel.store"(%{value}, %b{binding}, %{index}) : ({dtype}, !ll_seq.binding, ui32) -> ()'


Runner = Callable[..., list[np.ndarray]]


@pytest.fixture
def runs(kernel: Callable[..., Any], devices: Any) -> Runner:
    """Runs the body of an entry of four invocations on i32 inputs; one i32 result of four."""

    def run(body: str, name: str, *arrays: np.ndarray, parameters: bytes = b"") -> np.ndarray:
        text = executable_text(entry_text(body, ["read"] * len(arrays) + ["write"]))
        results = [((4,), np.dtype(np.int32))]
        lowered = kernel(text, name, results, 4, len(parameters) // 4)
        return devices.run(lowered, *arrays, parameters=parameters)[0]

    return run


# What ops mean


@EACH_TARGET
def test_a_loop_carries_several_values_at_once(runs: Runner, target: str) -> None:
    """Fibonacci: the next values are each other's old ones."""
    body = f"""{load("n", 0, "ui32")}
      %r:2 = "kernel.for"(%u0, %n, %u1, %s0, %s1) ({{
        ^bb0(%k: ui32, %a: i32, %b: i32):
        %c = "kernel.add"(%a, %b) : (i32, i32) -> i32
        "kernel.yield"(%b, %c) : (i32, i32) -> ()
      }}) : (ui32, ui32, ui32, i32, i32) -> (i32, i32)
      {store("r#0", 1, "i32")}"""
    got = runs(body, target, np.array([0, 1, 7, 20], np.uint32))
    np.testing.assert_array_equal(got, [0, 1, 13, 6765])


@EACH_TARGET
def test_a_loop_may_swap_what_it_carries(runs: Runner, target: str) -> None:
    body = f"""{load("n", 0, "ui32")}
      %r:2 = "kernel.for"(%u0, %n, %u1, %s0, %s1) ({{
        ^bb0(%k: ui32, %a: i32, %b: i32):
        "kernel.yield"(%b, %a) : (i32, i32) -> ()
      }}) : (ui32, ui32, ui32, i32, i32) -> (i32, i32)
      {store("r#0", 1, "i32")}"""
    np.testing.assert_array_equal(runs(body, target, np.array([0, 1, 2, 3], np.uint32)), [0, 1, 0, 1])


@EACH_TARGET
def test_a_loop_carries_sums_of_what_it_carries(runs: Runner, target: str) -> None:
    """OpenCL C has these sums as expressions, which read what the statement before has changed."""
    body = f"""{load("n", 0, "ui32")}
      %r:2 = "kernel.for"(%u0, %n, %u1, %s0, %s1) ({{
        ^bb0(%k: ui32, %a: i32, %b: i32):
        %c = "kernel.add"(%a, %b) : (i32, i32) -> i32
        %d = "kernel.subtract"(%a, %b) : (i32, i32) -> i32
        "kernel.yield"(%c, %d) : (i32, i32) -> ()
      }}) : (ui32, ui32, ui32, i32, i32) -> (i32, i32)
      {store("r#1", 1, "i32")}"""
    np.testing.assert_array_equal(runs(body, target, np.array([0, 1, 2, 3], np.uint32)), [1, -1, 2, -2])


@EACH_TARGET
def test_a_loop_steps_and_may_not_run_at_all(runs: Runner, target: str) -> None:
    body = f"""{load("n", 0, "ui32")}
      {constant("u3", "3", "ui32")}
      %r = "kernel.for"(%u1, %n, %u3, %s0) ({{
        ^bb0(%k: ui32, %a: i32):
        %s = "kernel.convert"(%k) : (ui32) -> i32
        %c = "kernel.add"(%a, %s) : (i32, i32) -> i32
        "kernel.yield"(%c) : (i32) -> ()
      }}) : (ui32, ui32, ui32, i32) -> i32
      {store("r", 1, "i32")}"""
    np.testing.assert_array_equal(runs(body, target, np.array([0, 1, 5, 8], np.uint32)), [0, 0, 1 + 4, 1 + 4 + 7])


@EACH_TARGET
def test_branches_in_loops_in_branches(runs: Runner, target: str) -> None:
    """Counts the odd numbers below n, or gives -1 where n is 1."""
    body = f"""{load("n", 0, "ui32")}
      {constant("m", "-1", "i32")}
      %one = "kernel.compare_eq"(%n, %u1) : (ui32, ui32) -> i1
      %r = "kernel.if"(%one) ({{
        "kernel.yield"(%m) : (i32) -> ()
      }}, {{
        %q = "kernel.for"(%u0, %n, %u1, %s0) ({{
          ^bb0(%k: ui32, %a: i32):
          %bit = "kernel.and"(%k, %u1) : (ui32, ui32) -> ui32
          %odd = "kernel.compare_eq"(%bit, %u1) : (ui32, ui32) -> i1
          %c = "kernel.if"(%odd) ({{
            %d = "kernel.add"(%a, %s1) : (i32, i32) -> i32
            "kernel.yield"(%d) : (i32) -> ()
          }}, {{
            "kernel.yield"(%a) : (i32) -> ()
          }}) : (i1) -> i32
          "kernel.yield"(%c) : (i32) -> ()
        }}) : (ui32, ui32, ui32, i32) -> i32
        "kernel.yield"(%q) : (i32) -> ()
      }}) : (i1) -> i32
      {store("r", 1, "i32")}"""
    np.testing.assert_array_equal(runs(body, target, np.array([0, 1, 6, 9], np.uint32)), [0, -1, 3, 4])


@EACH_TARGET
@pytest.mark.parametrize("dtype", ["i32", "i1"])
def test_shared_memory_is_seen_behind_a_barrier(runs: Runner, target: str, dtype: str) -> None:
    """Each invocation writes its place and reads its neighbour's."""
    numbers = dtype == "i32"
    value = "x" if numbers else "flag"
    got_name = "y" if numbers else "z"
    widen = "" if numbers else '%y = "kernel.select"(%z, %s1, %s0) : (i1, i32, i32) -> i32'
    body = f"""{load("x", 0, "i32")}
      %flag = "kernel.compare_ne"(%x, %s0) : (i32, i32) -> i1
      %m = "kernel.shared"() : () -> !kernel.shared<4x{dtype}>
      "kernel.store_shared"(%{value}, %m, %local) : ({dtype}, !kernel.shared<4x{dtype}>, ui32) -> ()
      "kernel.barrier"() : () -> ()
      {constant("u3", "3", "ui32")}
      %n = "kernel.add"(%local, %u1) : (ui32, ui32) -> ui32
      %o = "kernel.and"(%n, %u3) : (ui32, ui32) -> ui32
      %{got_name} = "kernel.load_shared"(%m, %o) : (!kernel.shared<4x{dtype}>, ui32) -> {dtype}
      {widen}
      {store("y", 1, "i32")}"""
    x = np.array([5, 0, 7, 9], np.int32)
    want = np.roll(x, -1)
    np.testing.assert_array_equal(runs(body, target, x), want if numbers else want != 0)


@EACH_TARGET
def test_parameters_are_words_of_the_dispatch(runs: Runner, target: str) -> None:
    body = f"""%p = "kernel.parameter"() <{{ordinal = 0 : i64}}> : () -> ui32
      %q = "kernel.parameter"() <{{ordinal = 2 : i64}}> : () -> ui32
      %s = "kernel.add"(%p, %q) : (ui32, ui32) -> ui32
      %r = "kernel.convert"(%s) : (ui32) -> i32
      {store("r", 0, "i32")}"""
    got = runs(body, target, parameters=np.array([40, 7, 2], "<u4").tobytes())
    np.testing.assert_array_equal(got, [42] * 4)


@EACH_TARGET
def test_entries_of_one_executable_have_bindings_of_their_own(target: str) -> None:
    one = entry_text(load("x", 0, "f32") + store("x", 1, "f32"), ["read", "write"], name="one")
    two = entry_text(load("x", 1, "i1") + store("x", 0, "i1"), ["write", "read"], 8, name="two")
    module = parse(executable_text(one, two), "test.mlir")
    assert not verify(module)
    payload = target_of(target).serialize(module.block.first)
    assert payload.features.difference(INSTRUCTION_SETS) == {"int8"}
    assert target == "cpu" or (b"one" in payload.data and b"two" in payload.data)


# What is refused

WRONG = [
    ('%w = "kernel.add"(%u0, %s0) : (ui32, i32) -> i32', "does not take (ui32, i32) -> i32"),
    ('%w = "kernel.sqrt"(%s0) : (i32) -> i32', "does not take (i32) -> i32"),
    ('%w = "kernel.convert"(%s0) : (i32) -> i1', "does not take (i32) -> i1"),
    ('%w = "kernel.bitcast"(%s0) : (i32) -> f64', "does not take (i32) -> f64"),
    ('%w = "kernel.constant"() <{value = 1 : i32}> : () -> ui32', "value 1 : i32 of type i32, result of type ui32"),
    ('%w = "kernel.constant"() <{value = "x"}> : () -> ui32', 'value "x" is no number'),
    ('%w = "kernel.constant"() <{value = true}> : () -> i32', "value true of type i1, result of type i32"),
    ('%w = "kernel.parameter"() <{ordinal = 99 : i64}> : () -> ui32', "ordinal 99 is not below 32"),
    (
        '%w = "kernel.shared"() : () -> !kernel.shared<4xf32> '
        '%v = "kernel.load_shared"(%w, %u0) : (!kernel.shared<4xf32>, ui32) -> i32',
        "element of type i32, array of f32",
    ),
    (
        '"kernel.if"(%c) ({ "kernel.yield"() : () -> () }, { "kernel.yield"(%s0) : (i32) -> () }) : (i1) -> ()',
        "region yields (i32), needs ()",
    ),
    (
        '%w = "kernel.for"(%u0, %u1, %u1, %s0) ({ ^bb0(%k: ui32, %a: f32): "kernel.yield"(%a) : (f32) -> () }) '
        ": (ui32, ui32, ui32, i32) -> i32",
        "region arguments (ui32, f32), index and carried values (ui32, i32)",
    ),
    (
        '"kernel.if"(%c) ({ %w = "kernel.shared"() : () -> !kernel.shared<4xf32> "kernel.yield"() : () -> () }, '
        '{ "kernel.yield"() : () -> () }) : (i1) -> ()',
        "stands inside a kernel.if",
    ),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=lambda part: part[:40])
def test_wrong_ops_are_named(line: str, message: str) -> None:
    body = f'%c = "kernel.compare_eq"(%u0, %u1) : (ui32, ui32) -> i1\n{line}'
    found = [diagnostic.message for diagnostic in verify(parse(executable_text(entry_text(body, [])), "test.mlir"))]
    assert message in found


@EACH_TARGET
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('%w = "test.op"() : () -> i32', "test.op: has no place in the body of a kernel"),
        (load("x", 0, "i32") + store("u0", 0, "ui32"), "takes binding 0 as ui32, other ops as i32"),
    ],
)
def test_what_a_target_cannot_render_is_named(target: str, body: str, message: str) -> None:
    module = parse(executable_text(entry_text(body, ["readwrite"])), "test.mlir")
    with pytest.raises(CompileError, match=message):
        target_of(target).serialize(module.block.first)


@pytest.mark.parametrize("target", ["opencl", "cpu"])
def test_bits_of_words_are_stored_on_vulkan_alone(target: str) -> None:
    text = executable_text(
        entry_text('"kernel.store_bits"(%u1, %u1, %b0, %u0) : (ui32, ui32, !ll_seq.binding, ui32) -> ()', ["readwrite"])
    )
    assert b"main" in target_of("spirv").serialize(parse(text, "test.mlir").block.first).data
    with pytest.raises(CompileError, match="kernel.store_bits: (OpenCL|native) kernels have no such op"):
        target_of(target).serialize(parse(text, "test.mlir").block.first)


@EACH_TARGET
def test_an_entry_that_was_not_lowered_is_named(target: str) -> None:
    text = executable_text(entry_text("", [])).replace(", workgroup_size = array<i64: 4, 1, 1>", "")
    with pytest.raises(CompileError, match="was not lowered"):
        target_of(target).serialize(parse(text, "test.mlir").block.first)


def test_each_primitive_is_an_op() -> None:
    assert set(SCALARS) == {row.name for row in PRIMITIVES}
    assert {f"kernel.{name}" for name in SCALARS} <= set(DIALECT.ops)
    assert all(op.__doc__ for op in DIALECT.ops.values())


# The builder


def test_equal_ops_are_one() -> None:
    b = KernelBuilder(Block())
    i = b.workgroup_id()
    assert b.op("add", i, b.local_id()) is b.op("add", i, b.local_id())
    branch = b.begin_if(b.op("compare_lt", i, b.index(3)))
    inside = b.op("multiply", i, i)
    assert b.op("add", i, b.local_id()) is b.numbering.stack[0]["add", "ui32", i, b.local_id()]
    b.end_if(branch)
    assert b.op("multiply", i, i) is not inside


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [("add", 0, True), ("multiply", 1, True), ("or", 0, True), ("and", 0xFFFFFFFF, True), ("subtract", 0, True),
     ("unchecked_divide", 1, True), ("unchecked_shift_left", 0, True), ("add", 1, False), ("subtract", 1, False)],
)  # fmt: skip
def test_ops_that_change_nothing_leave_nothing(name: str, other: int, same: bool) -> None:
    b = KernelBuilder(Block())
    i = b.workgroup_id()
    assert (b.op(name, i, b.index(other)) is i) is same


def test_ops_on_constants_are_computed() -> None:
    b = KernelBuilder(Block())
    assert b.known(b.op("multiply", b.const(-3, "i8"), b.const(50, "i8"))) == 106
    assert b.known(b.op("shift_left", b.const(1, "ui32"), b.const(40, "ui32"))) == 0
    assert b.known(b.op("divide", b.const(1.0, "f32"), b.const(3.0, "f32"))) == np.float32(1) / np.float32(3)
    assert b.known(b.op("compare_lt", b.const(1, "i32"), b.const(2, "i32"))) is True
    nan = b.bits(0x7FC00001, "f32")
    assert b.known(b.op("add", nan, nan)) is None
    assert all(op.name == "kernel.constant" or "add" in op.name for op in b.entry)


@pytest.mark.parametrize("dtype", list(BY_NAME))
def test_constants_keep_their_bits(dtype: str) -> None:
    b = KernelBuilder(Block())
    width = BY_NAME[dtype].bits
    for pattern in {0, 1, (1 << width) - 1, 1 << (width - 1), 0x7F800001 % (1 << width)}:
        made = b.bits(pattern, dtype)
        assert made.owner.bits == pattern
        assert b.bits(pattern, dtype) is made
