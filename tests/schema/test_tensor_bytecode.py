"""Tensor bytecode is read back as written; code that breaks a rule is refused, and only with ModuleError."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion.hal.backend import Entry
from orchestrion.hal.device import Device
from orchestrion.hal.errors import HalError
from orchestrion.hal.libraries import register
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema import tensor_bytecode as bytecode
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.scalars import SCALARS
from orchestrion.schema.tensor_bytecode import BY_CODE, FIELD_KINDS, FORMAT, ROWS, Body, EntryCode, TensorOp
from orchestrion.schema.tensor_disassembler import disassemble
from orchestrion.schema.tensor_encoding import decode, encode
from orchestrion.schema.tensor_shapes import MAX_RANK, ShapeError, TensorType, tensor_type

F32, I32, I1 = DTYPES["f32"], DTYPES["i32"], DTYPES["i1"]


def tensor(*shape: int, dtype: str = "f32") -> TensorType:
    return tensor_type(DTYPES[dtype], shape)


def sum_body(dtype: str = "f32") -> Body:
    body = Body((tensor(dtype=dtype), tensor(dtype=dtype)))
    (total,) = body.emit("add", (0, 1))
    body.finish((total,))
    return body


def index(code: EntryCode, times: int = 1) -> list[int]:
    """A start index, repeated."""
    return list(code.emit("constant", (), tensor(dtype="i32"), bytes(4))) * times


def row_numbers(code: EntryCode) -> int:
    """Three index vectors of one number."""
    return code.emit("constant", (), tensor(3, 1, dtype="i32"), bytes((1, 0, 0, 0) * 3))[0]


def everything() -> EntryCode:
    """An entry with every structural row up to version 1.1."""
    code = EntryCode(4)
    (x,) = code.emit("load_input", (), 0, tensor(4, 6))
    (row,) = code.emit("load_input", (), 1, tensor(6))
    (zero,) = code.emit("constant", (), tensor(), bytes(4))
    (wide,) = code.emit("broadcast_in_dim", (row,), (4, 6), (1,))
    (product,) = code.emit("multiply", (x, wide))
    (count,) = code.emit("iota", (), tensor(4, 6), 1)
    (total,) = code.emit("add", (product, count))
    (turned,) = code.emit("transpose", (total,), (1, 0))
    (part,) = code.emit("slice", (turned,), (0, 1), (6, 4), (2, 1))
    (padded,) = code.emit("pad", (part, zero), (0, -1), (1, 2), (0, 1))
    (double,) = code.emit("concatenate", (padded, padded), 0)
    (back,) = code.emit("reverse", (double,), (0,))
    (flat,) = code.emit("reshape", (back,), (8, 6))
    (whole,) = code.emit("convert", (flat,), I32)
    (dot,) = code.emit("dot_general", (whole, whole), (), (), (1,), (1,), I32)
    (start,) = code.emit("constant", (), tensor(dtype="i32"), bytes(4))
    (window,) = code.emit("dynamic_slice", (dot, start, start), (3, 8))
    (updated,) = code.emit("dynamic_update_slice", (dot, window, start, start))
    (rows,) = code.emit("gather", (updated, row_numbers(code)), (1,), (0,), (), (), (0,), 1, (1, 8))
    (spread,) = code.emit("windows", (rows,), (1,), (2,), (3,), (1,))
    (sums,) = code.emit("reduce", (rows, start), (0,), sum_body("i32"))
    code.emit("reshape", (spread,), (18,))
    (called,) = code.emit("library_call", (sums,), (tensor(8, dtype="i32"),), *CALLED)
    code.emit("store_output", (called,), 2)
    code.emit("store_slice", (zero,), 3, ())
    return code


def added_rows() -> EntryCode:
    """An entry with the structural rows of version 1.2."""
    code = EntryCode(2)
    (rows,) = code.emit("load_input", (), 0, tensor(1, 3, 8, dtype="i32"))
    (at,) = code.emit("number", (), tensor(1, 2, dtype="i32"), (2,))
    (updates,) = code.emit("slice", (rows,), (0, 0, 0), (1, 2, 8), (1, 1, 1))
    (summed,) = code.emit("scatter", (rows, at, updates), sum_body("i32"))
    code.emit("store_output", (summed,), 1)
    return code


def _copy(inputs, outputs, attributes):
    """A library function that programs of these tests call."""
    outputs[0][...] = inputs[0] if inputs and inputs[0].shape == outputs[0].shape else 0


register("schema_tests", {"copy": _copy})
CALLED = ("schema_tests.copy", (("flag", True), ("name", "x"), ("sizes", (1, -2)), ("third", 0.25)))


def test_what_is_written_is_read_back():
    payload = encode([everything(), EntryCode(0)])
    program = decode(memoryview(payload))
    assert encode(program.entries) == payload
    assert program.entries[0].values == everything().values
    assert program.entries[0].accesses == (("read", 96), ("read", 24), ("write", 32), ("readwrite", 4))


def test_every_structural_row_is_in_those_entries():
    payload = encode([everything(), added_rows()])
    assert encode(decode(memoryview(payload)).entries) == payload
    used = {instruction.row.name for code in (everything(), added_rows()) for instruction in code.instructions}
    assert used >= {row.name for row in ROWS if row.scalar is None}


def test_accesses():
    code = EntryCode(3)
    (x,) = code.emit("load_input", (), 1, tensor(4))
    code.emit("load_input", (), 1, tensor(2, dtype="f64"))
    code.emit("store_output", (x,), 1)
    assert code.accesses == (("read", 0), ("readwrite", 16), ("read", 0))


REFUSED = [
    ("operand", lambda c: c.emit("abs", (1,)), "value 1 out of range (1 defined)"),
    ("scalar type", lambda c: c.emit("popcnt", (0,)), "not defined for (f32)"),
    ("scalar shapes", lambda c: c.emit("add", (0, *c.emit("reshape", (0,), (3, 2)))), "differ in shape"),
    ("scalar types", lambda c: c.emit("add", (0, *c.emit("convert", (0,), I32))), "not defined for (f32, i32)"),
    ("bitcast width", lambda c: c.emit("bitcast", (0,), DTYPES["i64"]), "not defined for (f32, i64)"),
    ("select", lambda c: c.emit("select", (0, 0, 0)), "not defined for (f32, f32, f32)"),
    ("binding", lambda c: c.emit("load_input", (), 2, tensor()), "binding 2 out of range (2 bindings)"),
    ("second store", lambda c: [c.emit("store_output", (0,), 1) for _ in range(2)], "binding 1 is stored to twice"),
    (
        "load after store",
        lambda c: (c.emit("store_output", (0,), 0), c.emit("load_input", (), 0, tensor())),
        "binding 0 is loaded from after its store",
    ),
    ("constant", lambda c: c.emit("constant", (), tensor(2), bytes(4)), "4 bytes for tensor<2xf32>, which takes 8"),
    ("bool", lambda c: c.emit("constant", (), tensor(2, dtype="i1"), b"\0\2"), "bytes other than 0 and 1"),
    ("iota axis", lambda c: c.emit("iota", (), tensor(2), 1), "axis [1] for rank 1"),
    ("iota bool", lambda c: c.emit("iota", (), tensor(2, dtype="i1"), 0), "iota of i1"),
    ("broadcast axes", lambda c: c.emit("broadcast_in_dim", (0,), (2, 3), (1, 1)), "axes [1, 1] for rank 2"),
    ("broadcast count", lambda c: c.emit("broadcast_in_dim", (0,), (2, 3), (1,)), "1 axes for an operand of rank 2"),
    (
        "broadcast size",
        lambda c: c.emit("broadcast_in_dim", (0,), (2, 4), (0, 1)),
        "dimension 3 cannot be broadcast to 4",
    ),
    ("reshape", lambda c: c.emit("reshape", (0,), (5,)), "6 elements of tensor<2x3xf32> into 5"),
    ("negative", lambda c: c.emit("reshape", (0,), (-2, -3)), "negative dimension in shape [-2, -3]"),
    ("huge", lambda c: c.emit("reshape", (0,), (2**62, 0)), "bytes, more than"),
    ("transpose", lambda c: c.emit("transpose", (0,), (0, 0)), "[0, 0] is not a permutation of rank 2"),
    ("slice range", lambda c: c.emit("slice", (0,), (0, 0), (2, 4), (1, 1)), "slice 0:4:1 of a dimension of 3"),
    ("slice stride", lambda c: c.emit("slice", (0,), (0, 0), (2, 3), (1, 0)), "slice 0:3:0"),
    ("slice rank", lambda c: c.emit("slice", (0,), (0,), (2, 3), (1, 1)), "1 starts for an operand of rank 2"),
    ("pad value", lambda c: c.emit("pad", (0, 0), (0, 0), (0, 0), (0, 0)), "padding value of type tensor<2x3xf32>"),
    (
        "pad size",
        lambda c: c.emit("pad", (0, *c.emit("constant", (), tensor(), bytes(4))), (-3, 0), (0, 0), (0, 0)),
        "padding (-3, 0, 0) of a dimension of 2",
    ),
    ("concatenate none", lambda c: c.emit("concatenate", (), 0), "no operands"),
    (
        "concatenate",
        lambda c: c.emit("concatenate", (0, *c.emit("reshape", (0,), (3, 2))), 0),
        "beside tensor<2x3xf32>",
    ),
    ("reverse", lambda c: c.emit("reverse", (0,), (2,)), "axes [2] for rank 2"),
    ("window rank", lambda c: c.emit("dynamic_slice", (0, *index(c), *index(c)), (1,)), "1 sizes for an operand of"),
    ("window size", lambda c: c.emit("dynamic_slice", (0, *index(c), *index(c)), (2, 4)), "slice of 4 of a dimension"),
    ("window negative", lambda c: c.emit("dynamic_slice", (0, *index(c), *index(c)), (-1, 3)), "slice of -1 of a"),
    ("starts", lambda c: c.emit("dynamic_slice", (0, *index(c)), (2, 3)), "1 starts for an operand of rank 2"),
    ("start type", lambda c: c.emit("dynamic_slice", (0, 0, 0), (2, 3)), "start of type tensor<2x3xf32>"),
    ("update", lambda c: c.emit("dynamic_update_slice", (0, *index(c), *index(c))), "update tensor<i32> of tensor<2x3"),
    (
        "update size",
        lambda c: c.emit("dynamic_update_slice", (0, *c.emit("reshape", (0,), (3, 2)), *index(c), *index(c))),
        "slice of 3 of a dimension of 2",
    ),
    *(
        (f"gather {name}", lambda c, a=attributes: c.emit("gather", (0, *c.emit("convert", (0,), I32)), *a), message)
        for name, attributes, message in (
            ("vector", ((), (0, 1), (), (), (0, 1), 3, (1, 1)), "index_vector_dim 3 for indices of rank 2"),
            ("map", ((), (0, 1), (), (), (0, 1), 1, (1, 1)), "start_index_map has 2 axes for index vectors of 3"),
            ("map twice", ((), (0, 1), (), (), (0, 0), 0, (1, 1)), "start_index_map and operand_batching_dims [0, 0]"),
            ("collapsed", ((), (1, 0), (), (), (0, 1), 0, (1, 1)), "collapsed_slice_dims [1, 0] are not in order"),
            ("collapsed size", ((), (0, 1), (), (), (0, 1), 0, (1, 0)), "slice of 0 along axis 1"),
            ("sizes", ((0,), (0,), (), (), (0, 1), 0, (1, 4)), "slice of 4 of a dimension of 3"),
            ("offsets", ((), (0,), (), (), (0, 1), 0, (1, 3)), "0 offset_dims for 1 axes"),
            ("offset", ((2,), (0,), (), (), (0, 1), 0, (1, 3)), "offset_dims [2] for rank 2"),
            ("batching", ((0,), (), (0,), (2,), (1,), 2, (1, 3)), "start_indices_batching_dims [2] for rank 2"),
            ("batching vector", ((0,), (), (0,), (0,), (1,), 0, (1, 3)), "start_index_map has 1 axes"),
            ("batching sizes", ((1,), (), (0,), (1,), (1,), 2, (1, 3)), "batching axes [0] of tensor<2x3xf32> and [1]"),
        )
    ),
    (
        "gather type",
        lambda c: c.emit("gather", (0, 0), (), (0, 1), (), (), (0, 1), 0, (1, 1)),
        "indices of type tensor<2x3xf32>",
    ),
    *(
        (f"windows {name}", lambda c, a=attributes: c.emit("windows", (0,), *a), message)
        for name, attributes, message in (
            ("axis", ((2,), (1,), (1,), (1,)), "axes [2] for rank 2"),
            ("axis twice", ((0, 0), (1, 1), (1, 1), (1, 1)), "axes [0, 0] for rank 2"),
            ("sizes", ((0,), (1, 1), (1,), (1,)), "sizes [1, 1] for 1 axes"),
            ("size", ((0,), (0,), (1,), (1,)), "sizes [0] for 1 axes, must be positive"),
            ("stride", ((0,), (1,), (-1,), (1,)), "strides [-1] for 1 axes, must be positive"),
            ("dilation", ((0,), (1,), (1,), (0,)), "dilations [0] for 1 axes, must be positive"),
            ("huge", ((0, 1), (2**62, 2), (1, 1), (2**62, 1)), "bytes, more than"),
        )
    ),
    ("in place rank", lambda c: c.emit("store_slice", (0,), 1, (2,)), "update tensor<2x3xf32> of tensor<2xf32>"),
    ("in place size", lambda c: c.emit("store_slice", (0, *index(c, 2)), 1, (2, 2)), "slice of 3 of a dimension of 2"),
    ("in place shape", lambda c: c.emit("store_slice", (0, *index(c, 2)), 1, (2, -3)), "negative dimension"),
    ("in place binding", lambda c: c.emit("store_slice", (0, *index(c, 2)), 2, (2, 3)), "binding 2 out of range"),
    (
        "in place twice",
        lambda c: [c.emit("store_slice", (0, *index(c, 2)), 1, (2, 3)) for _ in range(2)],
        "binding 1 is stored to twice",
    ),
    (
        "reduce operands",
        lambda c: c.emit("reduce", (0, 0, 0), (0,), sum_body()),
        "3 operands, expected inputs and as many",
    ),
    ("reduce initial", lambda c: c.emit("reduce", (0, 0), (0,), sum_body()), "with initial value tensor<2x3xf32>"),
    ("dot types", lambda c: c.emit("dot_general", (0, 0), (), (), (1,), (1,), I32), "f32 times f32 giving i32"),
    (
        "dot sizes",
        lambda c: c.emit("dot_general", (0, 0), (), (), (0,), (1,), F32),
        "contracting dimensions [2] of the left",
    ),
    (
        "dot counts",
        lambda c: c.emit("dot_general", (0, 0), (), (), (0, 1), (1,), F32),
        "contracting dimensions [2, 3] of",
    ),
    (
        "call name",
        lambda c: c.emit("library_call", (0,), (tensor(),), "gemm", ()),
        "'gemm' is not the name of a library function",
    ),
    ("call results", lambda c: c.emit("library_call", (0,), (), "a.b", ()), "results (): one is needed"),
    (
        "call of nothing",
        lambda c: c.emit("library_call", (0,), (tensor(0),), "a.b", ()),
        "results (tensor<0xf32>): one is needed, and none without elements",
    ),
    (
        "call order",
        lambda c: c.emit("library_call", (0,), (tensor(),), "a.b", (("y", 1), ("x", 1))),
        "attribute x comes after y: the order is that of the names",
    ),
    (
        "call twice",
        lambda c: c.emit("library_call", (0,), (tensor(),), "a.b", (("y", 1), ("y", 1))),
        "attribute y comes after y",
    ),
    (
        "call key",
        lambda c: c.emit("library_call", (0,), (tensor(),), "a.b", (("a b", 1),)),
        "'a b' is no name of an attribute",
    ),
    ("dot axes", lambda c: c.emit("dot_general", (0, 0), (0,), (0,), (0,), (0,), F32), "left axes [0, 0] for rank 2"),
]


@pytest.mark.parametrize(("build", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_breaks_a_rule_is_refused_when_written_and_when_read(build, message, monkeypatch):
    code = EntryCode(2)
    code.emit("load_input", (), 0, tensor(2, 3))
    with pytest.raises(ShapeError) as refused:
        build(code)
    assert message in str(refused.value)

    def unchecked(self, row: TensorOp, operands: tuple, attributes: tuple) -> range:
        """Like `append`, but allows a wrong result type, as an attacker would write it."""
        self.instructions.append(bytecode.Instruction(row, operands, attributes, len(self.values), ()))
        if not row.writes:
            self.values.append(tensor())
        return range(len(self.values) - 1, len(self.values))

    forged = EntryCode(2)
    forged.emit("load_input", (), 0, tensor(2, 3))
    with monkeypatch.context() as patch:
        patch.setattr(EntryCode, "append", unchecked)
        build(forged)
    with pytest.raises(ModuleError) as refused:
        decode(encode([forged]))
    assert message in str(refused.value)
    assert "entry[0] instruction[" in str(refused.value)
    assert refused.value.offset is not None


def test_bodies_hold_elementwise_ops_on_scalars_only():
    body = Body((tensor(), tensor()))
    with pytest.raises(ShapeError, match="reshape inside a body"):
        body.emit("reshape", (0,), ())
    with pytest.raises(ShapeError, match=r"constant of type tensor<2xf32> inside a body"):
        body.emit("constant", (), tensor(2), bytes(8))
    with pytest.raises(ShapeError, match=r"body gives \(tensor<f32>, tensor<f32>\), expected \(tensor<f32>\)"):
        body.finish((0, 1))
    with pytest.raises(ShapeError, match="value 2 out of range"):
        body.finish((2,))


def test_a_payload_states_the_least_version_that_has_its_rows():
    payload = bytearray(encode([everything()]))
    assert payload[6] == 1 and encode([EntryCode(0)])[6] == 0
    payload[6] = 0
    with pytest.raises(ModuleError, match="unknown opcode 0xe in version 1.0"):
        decode(payload)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "truncated (0 bytes)"),
        (b"OTBX" + bytes(8), "starts with b'OTBX'"),
        (struct.pack("<4sHHI", b"OTBC", 2, 0, 0), "version 2.0, this reader takes 1.0 to 1.2"),
        (struct.pack("<4sHHI", b"OTBC", 1, 3, 0), "version 1.3"),
        (struct.pack("<4sHHI", b"OTBC", 1, 0, 2**32 - 1), "truncated"),
        (struct.pack("<4sHHI", b"OTBC", 1, 0, 0) + b"x", "1 bytes after the last entry"),
        (struct.pack("<4sHHIHI", b"OTBC", 1, 0, 1, 0, 2**32 - 1), "truncated"),
        (struct.pack("<4sHHIHIH", b"OTBC", 1, 0, 1, 0, 1, 99), "unknown opcode 0x63"),
        (struct.pack("<4sHHIHIHHHH", b"OTBC", 1, 0, 1, 1, 1, 1, 0, 5, 0), "unknown element type 0x5"),
        (
            struct.pack("<4sHHIHIHHHH", b"OTBC", 1, 0, 1, 1, 1, 1, 0, 0x420, 65),
            "65 numbers, above the greatest rank 64",
        ),
        (struct.pack("<4sHHIHIHI", b"OTBC", 1, 0, 1, 0, 1, 10, 2**31), "truncated"),
    ],
)
def test_layout_faults(payload, message):
    with pytest.raises(ModuleError) as refused:
        decode(payload)
    assert message in str(refused.value)


def test_every_truncation_is_refused():
    payload = encode([everything()])
    for length in range(len(payload)):
        with pytest.raises(ModuleError):
            decode(payload[:length])


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_mutants_are_refused_or_read_to_a_fixed_point(data):
    payload = bytearray(encode([everything()]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, payload[at] ^ 1, (payload[at] + 1) % 256]))
    try:
        program = decode(payload)
    except ModuleError:
        return
    again = encode(program.entries)
    assert (again[:6], again[8:]) == (payload[:6], payload[8:]) and again[6:8] <= payload[6:8]
    disassemble(bytes(payload))


def test_mutants_that_are_accepted_run_to_a_result_or_a_named_error():
    """On the reference device, under a memory limit: NumPy can run any code that the verifier accepts."""
    random = np.random.default_rng(11)
    seed = encode([everything()])
    driver = ReferenceDriver()
    ran = 0
    with Device.of(driver.open(driver.devices()[0])) as device, device.share(memory_limit=1 << 22) as share:
        for _ in range(3000):
            payload = bytearray(seed)
            for at in random.integers(0, len(seed), random.integers(1, 3)):
                payload[at] = random.choice([0, 1, 2, 3, 4, 6, 8, 0xFF, payload[at] ^ 1 << int(random.integers(8))])
            try:
                accesses = decode(payload).entries[0].accesses
            except ModuleError:
                continue
            try:
                run_payload(share, payload, accesses)
                ran += 1
            except HalError:
                continue
    assert ran > 50


def run_payload(device: Device, payload: bytearray, accesses: tuple[tuple[str, int], ...]) -> None:
    executable = device.create_executable(FORMAT, memoryview(payload), (Entry("f", accesses, 0, (1, 1, 1)),))
    buffers = [device.allocator.allocate(length) for _, length in accesses]
    commands = device.create_command_buffer(len(buffers))
    commands.dispatch(executable, 0, (1, 1, 1), [(slot, 0, buffer.size) for slot, buffer in enumerate(buffers)])
    commands.finish()
    device.queue.execute(commands, buffers)


def test_sizes_that_no_memory_holds_are_counted_not_allocated():
    code = EntryCode(1)
    (one,) = code.emit("constant", (), tensor(), bytes(4))
    (wide,) = code.emit("broadcast_in_dim", (one,), (2**30, 2**30), ())
    (sums,) = code.emit("reduce", (wide, one), (1,), sum_body())
    code.emit("store_output", (sums,), 0)
    decoded = decode(encode([code])).entries[0]
    assert decoded.values[wide].bytes == 4 << 60 and decoded.accesses == (("write", 4 << 30),)
    assert tensor(*[1] * MAX_RANK).rank == MAX_RANK
    with pytest.raises(ShapeError, match="rank 65 above 64"):
        tensor(*[1] * 65)


def test_disassembly():
    assert disassemble(encode([everything()])).splitlines() == [
        "entry[0]: bindings (read 96, read 24, write 32, readwrite 4)",
        "  %0 = load_input binding=0 : tensor<4x6xf32>",
        "  %1 = load_input binding=1 : tensor<6xf32>",
        "  %2 = constant 0.0 : tensor<f32>",
        "  %3 = broadcast_in_dim %1 shape=[4, 6] axes=[1] : tensor<4x6xf32>",
        "  %4 = multiply %0 %3 : tensor<4x6xf32>",
        "  %5 = iota axis=1 : tensor<4x6xf32>",
        "  %6 = add %4 %5 : tensor<4x6xf32>",
        "  %7 = transpose %6 axes=[1, 0] : tensor<6x4xf32>",
        "  %8 = slice %7 starts=[0, 1] limits=[6, 4] strides=[2, 1] : tensor<3x3xf32>",
        "  %9 = pad %8 %2 low=[0, -1] high=[1, 2] interior=[0, 1] : tensor<4x6xf32>",
        "  %10 = concatenate %9 %9 axis=0 : tensor<8x6xf32>",
        "  %11 = reverse %10 axes=[0] : tensor<8x6xf32>",
        "  %12 = reshape %11 shape=[8, 6] : tensor<8x6xf32>",
        "  %13 = convert %12 : tensor<8x6xi32>",
        "  %14 = dot_general %13 %13 left_batch=[] right_batch=[] left_contract=[1] right_contract=[1] "
        ": tensor<8x8xi32>",
        "  %15 = constant 0 : tensor<i32>",
        "  %16 = dynamic_slice %14 %15 %15 sizes=[3, 8] : tensor<3x8xi32>",
        "  %17 = dynamic_update_slice %14 %16 %15 %15 : tensor<8x8xi32>",
        "  %18 = constant [[1], [1], [1]] : tensor<3x1xi32>",
        "  %19 = gather %17 %18 offset_dims=[1] collapsed_slice_dims=[0] operand_batching_dims=[] "
        "start_indices_batching_dims=[] start_index_map=[0] index_vector_dim=1 slice_sizes=[1, 8] : tensor<3x8xi32>",
        "  %20 = windows %19 axes=[1] sizes=[2] strides=[3] dilations=[1] : tensor<3x3x2xi32>",
        "  %21 = reduce %19 %15 axes=[0] : tensor<8xi32>",
        "    body (%0: tensor<i32>, %1: tensor<i32>)",
        "      %2 = add %0 %1 : tensor<i32>",
        "      yield %2",
        "  %22 = reshape %20 shape=[18] : tensor<18xi32>",
        '  %23 = library_call %21 function=schema_tests.copy {flag = true, name = "x", sizes = [1, -2], third = 0.25} '
        ": tensor<8xi32>",
        "  store_output %23 binding=2",
        "  store_slice %2 binding=3 whole=[]",
    ]


def test_rows():
    assert len(bytecode.BY_CODE) == len(bytecode.BY_NAME) == len(ROWS)
    assert {kind for row in ROWS for _, kind in row.fields} == set(FIELD_KINDS)
    assert all(row.doc for row in ROWS)
    assert [row.scalar for row in ROWS if row.scalar] == [row for row in SCALARS if row.name != "fma"]


def test_codes_never_change():
    """Append to this list only. The meaning of a code in a module never changes."""
    assert [(row.code, row.name) for row in ROWS if row.scalar is None and row.name != "library_call"] == list(
        enumerate(
            "load_input store_output constant iota broadcast_in_dim reshape transpose slice pad concatenate reverse "
            "reduce dot_general dynamic_slice dynamic_update_slice store_slice gather windows scatter number".split(),
            1,
        )
    )
    assert BY_CODE[64].name == "library_call"
    assert [row.name for row in SCALARS] == (
        "abs negate sign not popcnt count_leading_zeros ceil floor round_nearest_afz round_nearest_even is_finite "
        "exponential exponential_minus_one log log_plus_one logistic sqrt rsqrt cbrt sine cosine tan tanh add subtract "
        "multiply divide remainder power atan2 maximum minimum and or xor shift_left shift_right_arithmetic "
        "shift_right_logical compare_eq compare_ne compare_lt compare_le compare_gt compare_ge compare_total_eq "
        "compare_total_ne compare_total_lt compare_total_le compare_total_gt compare_total_ge select clamp fma convert "
        "bitcast erf erfc"
    ).split()


def test_long_programs():
    code = EntryCode(1)
    (x,) = code.emit("load_input", (), 0, tensor(4))
    for _ in range(20_000):
        (x,) = code.emit("negate", (x,))
    payload = encode([code])
    assert len(decode(payload).entries[0].instructions) == 20_001
