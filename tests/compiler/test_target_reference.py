"""The reference target: bodies in StableHLO, lowered, serialized and run, beside the same text compiled by XLA."""

import re

import numpy as np
import pytest

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.verifier import verify
from orchestrion.compiler.targets.reference.dialect import DIALECT, OPS, Yield
from orchestrion.compiler.targets.target import target
from orchestrion.hal.backend import Entry
from orchestrion.hal.device import Device
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.tensor_bytecode import FORMAT, ROWS
from orchestrion.schema.tensor_disassembler import disassemble
from orchestrion.schema.tensor_encoding import decode

#: name -> argument types, result types, body in generic syntax with arguments %a0, %a1, ... and results %r0, ...
CASES: dict[str, tuple[str, str, str]] = {
    "multiply": (
        "4xf32 4xf32",
        "4xf32",
        '%r0 = "stablehlo.multiply"(%a0, %a1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
    ),
    "identity": ("3x2xi8", "3x2xi8", '%r0 = "stablehlo.reshape"(%a0) : (tensor<3x2xi8>) -> tensor<3x2xi8>'),
    "splat": (
        "2x3xf32",
        "2x3xf32",
        """
        %c = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<2x3xf32>}> : () -> tensor<2x3xf32>
        %s = "stablehlo.constant"() <{value = dense<2.5> : tensor<2x3xf32>}> : () -> tensor<2x3xf32>
        %n = "stablehlo.maximum"(%c, %a0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        %t = "stablehlo.is_finite"(%n) : (tensor<2x3xf32>) -> tensor<2x3xi1>
        %r0 = "stablehlo.select"(%t, %n, %s) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        """,
    ),
    "constants": (
        "2xi32",
        "2xi32 2xi1",
        """
        %c = "stablehlo.constant"() <{value = dense<[7, -9]> : tensor<2xi32>}> : () -> tensor<2xi32>
        %r0 = "stablehlo.add"(%c, %a0) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
        %r1 = "stablehlo.constant"() <{value = dense<[true, false]> : tensor<2xi1>}> : () -> tensor<2xi1>
        """,
    ),
    "scalar operands": (
        "i1 5xf32 f32 5xf32",
        "5xf32 5xf32",
        """
        %r0 = "stablehlo.select"(%a0, %a1, %a3) : (tensor<i1>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
        %c = "stablehlo.constant"() <{value = dense<0.25> : tensor<f32>}> : () -> tensor<f32>
        %r1 = "stablehlo.clamp"(%a2, %a1, %c) : (tensor<f32>, tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
        """,
    ),
    "comparisons": (
        "6xf32 6xf32 6xui8",
        "6xi1 6xi1 6xi1",
        """
        %r0 = "stablehlo.compare"(%a0, %a1) <{comparison_direction = #stablehlo<comparison_direction LE>}>
          : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
        %r1 = "stablehlo.compare"(%a0, %a1) <{comparison_direction = #stablehlo<comparison_direction GT>,
          compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
        %r2 = "stablehlo.compare"(%a2, %a2) <{comparison_direction = #stablehlo<comparison_direction NE>,
          compare_type = #stablehlo<comparison_type UNSIGNED>}> : (tensor<6xui8>, tensor<6xui8>) -> tensor<6xi1>
        """,
    ),
    "types": (
        "5xf32",
        "5xi8 5xui32 5xf64 5xi1",
        """
        %r0 = "stablehlo.convert"(%a0) : (tensor<5xf32>) -> tensor<5xi8>
        %r1 = "stablehlo.bitcast_convert"(%a0) : (tensor<5xf32>) -> tensor<5xui32>
        %r2 = "stablehlo.convert"(%r1) : (tensor<5xui32>) -> tensor<5xf64>
        %r3 = "stablehlo.convert"(%a0) : (tensor<5xf32>) -> tensor<5xi1>
        """,
    ),
    "movement": (
        "3x4xi32",
        "4x3xi32 2x2xi32 9x4xi32 6x4xi32 3x4xi32 2x3x5x4xi32",
        """
        %zero = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
        %r0 = "stablehlo.transpose"(%a0) <{permutation = array<i64: 1, 0>}> : (tensor<3x4xi32>) -> tensor<4x3xi32>
        %r1 = "stablehlo.slice"(%a0) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 3, 4>,
          strides = array<i64: 2, 2>}> : (tensor<3x4xi32>) -> tensor<2x2xi32>
        %r2 = "stablehlo.pad"(%a0, %zero) <{edge_padding_low = array<i64: 1, -1>, edge_padding_high = array<i64: 3, 1>,
          interior_padding = array<i64: 1, 0>}> : (tensor<3x4xi32>, tensor<i32>) -> tensor<9x4xi32>
        %r3 = "stablehlo.concatenate"(%a0, %a0) <{dimension = 0 : i64}>
          : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
        %r4 = "stablehlo.reverse"(%a0) <{dimensions = array<i64: 1>}> : (tensor<3x4xi32>) -> tensor<3x4xi32>
        %r5 = "stablehlo.broadcast_in_dim"(%a0) <{broadcast_dimensions = array<i64: 1, 3>}>
          : (tensor<3x4xi32>) -> tensor<2x3x5x4xi32>
        """,
    ),
    "iota": (
        "f32",
        "2x3xui8 2x3xf64",
        """
        %r0 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xui8>
        %r1 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2x3xf64>
        """,
    ),
    "dot": (
        "2x5x3xf32 3x2x4xf32",
        "2x5x4xf32",
        """
        %r0 = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<
          lhs_batching_dimensions = [0], rhs_batching_dimensions = [1],
          lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}>
          : (tensor<2x5x3xf32>, tensor<3x2x4xf32>) -> tensor<2x5x4xf32>
        """,
    ),
    "sum": (
        "3x4xf32",
        "4xf32",
        """
        %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %r0 = "stablehlo.reduce"(%a0, %zero) <{dimensions = array<i64: 0>}> ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%z) : (tensor<f32>) -> ()
        }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
        """,
    ),
    "two at once": (
        "3x4xi32 3x4xf32",
        "3xi32 3xf32",
        """
        %one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %low = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
        %r0, %r1 = "stablehlo.reduce"(%a0, %a1, %one, %low) <{dimensions = array<i64: 1>}> ({
        ^bb0(%i: tensor<i32>, %x: tensor<f32>, %j: tensor<i32>, %y: tensor<f32>):
          %three = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
          %both = "stablehlo.xor"(%i, %j) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %same = "stablehlo.reshape"(%both) : (tensor<i32>) -> tensor<i32>
          %none = "stablehlo.subtract"(%three, %three) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %sum = "stablehlo.or"(%same, %none) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %more = "stablehlo.maximum"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%sum, %more) : (tensor<i32>, tensor<f32>) -> ()
        }) : (tensor<3x4xi32>, tensor<3x4xf32>, tensor<i32>, tensor<f32>) -> (tensor<3xi32>, tensor<3xf32>)
        """,
    ),
    "at run time": (
        "5x6xf32 2x3xf32 ui8 ui8",
        "3x2xf32 5x6xf32 6x5xf32",
        """
        %n = "stablehlo.constant"() <{value = dense<[[4], [-3], [0], [1], [99]]> : tensor<5x1xi8>}>
          : () -> tensor<5x1xi8>
        %r2 = "stablehlo.gather"(%a0, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [0],
          collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}>
          : (tensor<5x6xf32>, tensor<5x1xi8>) -> tensor<6x5xf32>
        %r0 = "stablehlo.dynamic_slice"(%a0, %a2, %a3) <{slice_sizes = array<i64: 3, 2>}>
          : (tensor<5x6xf32>, tensor<ui8>, tensor<ui8>) -> tensor<3x2xf32>
        %r1 = "stablehlo.dynamic_update_slice"(%a0, %a1, %a3, %a2)
          : (tensor<5x6xf32>, tensor<2x3xf32>, tensor<ui8>, tensor<ui8>) -> tensor<5x6xf32>
        """,
    ),
    "stored twice": (
        "4xf32",
        "4xf32 4xf32",
        """
        %r0 = "stablehlo.negate"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
        %r1 = "stablehlo.negate"(%r0) : (tensor<4xf32>) -> tensor<4xf32>
        """,
    ),
}


def shape_and_type(text: str) -> tuple[tuple[int, ...], np.dtype]:
    *sizes, name = text.split("x")
    return tuple(map(int, sizes)), BY_NAME[name].numpy


def nbytes(text: str) -> int:
    shape, dtype = shape_and_type(text)
    return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize


def executable(arguments: str, results: str, body: str) -> Operation:
    """The `ll_seq.executable` that the sequencer would make of the case."""
    inputs, outputs = arguments.split(), results.split()
    bindings = [("read", nbytes(one)) for one in inputs] + [("write", nbytes(one)) for one in outputs]
    rows = ", ".join(f'{{access = "{access}", length = {length} : i64}}' for access, length in bindings)
    blocks = ", ".join(f"%b{i}: !ll_seq.binding" for i in range(len(bindings)))
    loads = [f'%a{i} = "ll_seq.load_input"(%b{i}) : (!ll_seq.binding) -> tensor<{one}>' for i, one in enumerate(inputs)]
    stores = [
        f'"ll_seq.store_output"(%r{i}, %b{len(inputs) + i}) : (tensor<{one}>, !ll_seq.binding) -> ()'
        for i, one in enumerate(outputs)
    ]
    text = f"""
      "ll_seq.executable"() <{{sym_name = "e"}}> ({{
        "ll_seq.entry"() <{{sym_name = "f", workload = array<i64: 1, 1, 1>, bindings = [{rows}]}}> ({{
        ^bb0({blocks}):
          {" ".join(loads)}
          {body}
          {" ".join(stores)}
          "ll_seq.end"() : () -> ()
        }}) : () -> ()
      }}) : () -> ()"""
    op = parse(text, "case.mlir").block.first
    assert op is not None
    return op


def lowered(arguments: str, results: str, body: str) -> Operation:
    op = executable(arguments, results, body)
    for entry in op.regions[0].block:
        target("reference").lower(entry)
    return op


def argument(text: str, seed: int) -> np.ndarray:
    shape, dtype = shape_and_type(text)
    random = np.random.default_rng(seed)
    if dtype.kind == "f":
        return np.asarray(random.normal(size=shape, scale=2).astype(dtype))
    return np.asarray(random.integers(0, 2 if dtype.kind == "b" else 50, shape).astype(dtype))


@pytest.mark.parametrize("name", CASES)
def test_lowered_bodies_give_what_xla_gives(name, xla):
    arguments, results, body = CASES[name]
    arrays = [argument(text, seed) for seed, text in enumerate(arguments.split())]
    payload = target("reference").serialize(lowered(*CASES[name])).data
    driver = ReferenceDriver()
    with Device.of(driver.open(driver.devices()[0])) as device:
        accesses = decode(payload).entries[0].accesses
        code = device.create_executable(FORMAT, memoryview(payload), (Entry("f", accesses, 0, (1, 1, 1)),))
        buffers = [device.allocator.allocate(nbytes(text)) for text in f"{arguments} {results}".split()]
        for array, buffer in zip(arrays, buffers, strict=False):
            buffer.write(array)
        commands = device.create_command_buffer(len(buffers))
        ranges = [(slot, 0, buffer.size) for slot, buffer in enumerate(buffers)]
        commands.dispatch(code, 0, (1, 1, 1), ranges)
        commands.finish()
        device.queue.execute(commands, buffers)
        got = [np.empty(*shape_and_type(text)) for text in results.split()]
        for out, buffer in zip(got, buffers[len(arrays) :], strict=True):
            buffer.read(out)
        for item in (code, commands, *buffers):
            item.release()
    parameters = ", ".join(f"%a{i}: tensor<{text}>" for i, text in enumerate(arguments.split()))
    types = ", ".join(f"tensor<{text}>" for text in results.split())
    values = ", ".join(f"%r{i}" for i in range(len(got)))
    for out, want in zip(
        got,
        xla(f"func.func @main({parameters}) -> ({types}) {{ {body} return {values} : {types} }}", *arrays),
        strict=True,
    ):
        assert out.dtype == want.dtype
        np.testing.assert_allclose(out, want, rtol=1e-6 if out.dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", CASES)
def test_the_text_after_lowering_gives_the_same_bytes(name):
    op = lowered(*CASES[name])
    module = op.parent_op
    assert module is not None and list(verify(module)) == []
    again = parse(str(module), "again.mlir")
    assert str(again) == str(module)
    first = again.block.first
    assert first is not None
    assert target("reference").serialize(first) == target("reference").serialize(op)
    (entry,) = op.regions[0].block
    assert str(entry.get("workgroup_size")) == "array<i64: 1, 1, 1>"
    assert not re.search(r"stablehlo\.", str(module))


def test_the_cases_use_every_structural_row():
    """But those that no op of StableHLO becomes alone: updates in place (test_in_place.py), scatters, of which flow
    makes rows (tests/e2e/test_scatter.py), and numbers of templates (tests/schema/test_tensor_template.py).
    """
    used = {op.name for case in (*CASES.values(), LIBRARY_CALL, WINDOWS) for op in lowered(*case).walk()}
    used |= {f"tensor_bytecode.{name}" for name in ("store_slice", "scatter", "number")}
    assert used >= {f"tensor_bytecode.{row.name}" for row in ROWS if row.scalar is None}


#: not for XLA, which has other libraries
LIBRARY_CALL = (
    "2x3xf32 3x4xf32",
    "2x4xf32",
    """
    %r0 = "stablehlo.custom_call"(%a0, %a1) <{api_version = 4 : i32, call_target_name = "blas.gemm",
      backend_config = {alpha = 2.0 : f64, name = "N", sizes = array<i64: 1, 2>, exact = true}}>
      : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    """,
)


#: not for XLA: an op of the flow dialect
WINDOWS = (
    "4x9xf32",
    "4x3x2xf32",
    """
    %r0 = "flow.windows"(%a0) <{axes = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 3>,
      dilations = array<i64: 2>}> : (tensor<4x9xf32>) -> tensor<4x3x2xf32>
    """,
)


def test_windows_are_a_row():
    payload = target("reference").serialize(lowered(*WINDOWS)).data
    wanted = "  %1 = windows %0 axes=[1] sizes=[2] strides=[3] dilations=[2] : tensor<4x3x2xf32>"
    assert wanted in disassemble(payload).splitlines()


def test_a_library_call_has_its_name_and_attributes():
    payload = target("reference").serialize(lowered(*LIBRARY_CALL)).data
    assert (
        '  %2 = library_call %0 %1 function=blas.gemm {alpha = 2.0, exact = true, name = "N", sizes = [1, 2]} '
        ": tensor<2x4xf32>" in disassemble(payload).splitlines()
    )


def test_the_text_of_a_library_call_gives_the_same_bytes():
    op = lowered(*LIBRARY_CALL)
    again = parse(str(op.parent_op), "again.mlir")
    assert str(again) == str(op.parent_op)
    assert target("reference").serialize(again.block.first) == target("reference").serialize(op)


def test_the_verifier_finds_what_is_wrong_with_a_library_call():
    text = str(lowered(*LIBRARY_CALL).parent_op)
    for old, new, message in (
        ("blas.gemm", "gemm", "'gemm' is not the name of a library function"),
        ("2.000000e+00 : f64", "[1 : i64]", "[1 : i64] is not supported; supported are bool, int"),
        ("array<i64: 1, 2>", "9223372036854775808 : ui64", "9223372036854775808 does not fit 64 bits"),
    ):
        found = verify(parse(text.replace(old, new), "broken.mlir"))
        assert message in str(found[0])


def test_every_op_without_a_row_is_reported_with_its_place():
    body = """
      %0 = "stablehlo.sort"(%a0) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":3:1)
      %1 = "stablehlo.convert"(%0) : (tensor<4xf32>) -> tensor<4xf16> loc("model.py":4:1)
      %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %r0 = "stablehlo.reduce"(%a0, %zero) <{dimensions = array<i64: 0>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %w = "stablehlo.broadcast_in_dim"(%x) <{broadcast_dimensions = array<i64>}>
          : (tensor<f32>) -> tensor<2xf32> loc("model.py":6:1)
        "stablehlo.return"(%y) : (tensor<f32>) -> ()
      }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    """
    with pytest.raises(CompileError) as refused:
        lowered("4xf32", "f32", body)
    assert [str(line) for line in refused.value.diagnostics] == [
        "model.py:3:1: stablehlo.sort: no tensor bytecode computes this op",
        "model.py:4:1: stablehlo.convert: no tensor bytecode for values of type tensor<4xf16>",
        "model.py:6:1: stablehlo.broadcast_in_dim: no tensor bytecode computes this op inside a reducer",
    ]


def test_several_entries_are_serialized_in_order():
    first, second = lowered(*CASES["multiply"]), lowered(*CASES["sum"])
    entry = second.regions[0].block.first
    assert entry is not None
    entry.detach()
    first.regions[0].block.append(entry)
    assert [code.accesses for code in decode(target("reference").serialize(first).data).entries] == [
        (("read", 16), ("read", 16), ("write", 16)),
        (("read", 48), ("write", 16)),
    ]


def test_the_verifier_finds_types_that_the_row_does_not_give():
    text = str(lowered(*CASES["multiply"]).parent_op)
    text = re.sub(r"(multiply.*-> )tensor<4xf32>", r"\1tensor<3xf32>", text)
    text = re.sub(r"(store_output.*: \()tensor<4xf32>", r"\1tensor<3xf32>", text)
    (found,) = verify(parse(text, "broken.mlir"))
    assert "result types must be (tensor<4xf32>), are (tensor<3xf32>)" in str(found)


def test_the_verifier_finds_a_body_that_yields_something_else():
    text = str(lowered(*CASES["two at once"]).parent_op)
    text = re.sub(r"(yield.*)\(%(\d+), %(\d+)\) : \((.*), (.*)\) ->", r"\1(%\3, %\2) : (\5, \4) ->", text)
    (found,) = verify(parse(text, "broken.mlir"))
    assert "what the body yields must be (tensor<i32>, tensor<f32>), are (tensor<f32>, tensor<i32>)" in str(found)


def test_text_that_is_no_program_is_the_callers_mistake():
    text = str(lowered(*CASES["stored twice"]).parent_op)
    store = re.search(r'\n.*store_output"\(%\d+, %1\).*', text)
    assert store is not None
    broken = parse(text.replace(store[0], store[0] * 2), "broken.mlir").block.first
    assert broken is not None
    with pytest.raises(CompileError, match="store_output: binding 1 is stored to twice"):
        target("reference").serialize(broken)


def test_the_dialect_has_a_class_per_row():
    assert set(OPS) == {row.name for row in ROWS}
    assert set(DIALECT.ops) == {cls.name for cls in OPS.values()} | {Yield.name}


def test_what_is_serialized_is_tensor_bytecode():
    payload = target("reference").serialize(lowered(*CASES["dot"]))
    assert payload.data[:4] == b"OTBC" and payload.features == frozenset() and payload.shared_memory_bytes == 0
    with pytest.raises(ModuleError):
        decode(payload.data[:-1])
