"""Target cpu: rows and ops are complete, images are reproducible, and what is no image is refused by name."""

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from stablehlo_text import apply, main, reduction, tensor

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.dialect import DIALECT
from orchestrion.compiler.scalars.primitives import PRIMITIVES
from orchestrion.compiler.targets.cpu import llvm_child, target
from orchestrion.compiler.targets.cpu.body import _OPS
from orchestrion.compiler.targets.cpu.entry import EntryText
from orchestrion.compiler.targets.cpu.levels import LEVELS, levels_named
from orchestrion.compiler.targets.cpu.linker import LinkError, link
from orchestrion.compiler.targets.cpu.scalars import CONVERSIONS, INSTRUCTIONS, literal
from orchestrion.schema import native_image
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.native_image import Entry, decode
from orchestrion.schema.profiles import INSTRUCTION_SETS
from orchestrion.schema.scalar_meanings import maximum_float, minimum_float

PROGRAM = """
func.func @main(%x: tensor<40x30xf32>, %y: tensor<30x20xf32>) -> (tensor<40x20xf32>, tensor<40xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<40x30xf32>, tensor<30x20xf32>) -> tensor<40x20xf32>
  %e = stablehlo.exponential %d : tensor<40x20xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<40x30xf32>, tensor<f32>) -> tensor<40xf32>
  return %e, %s : tensor<40x20xf32>, tensor<40xf32>
}
"""  # noqa: E501
#: a product of matrices, whose entry copies parts of an operand to the stack
LARGE = """
func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %d : tensor<512x512xf32>
}
"""  # noqa: E501
HEAD = 'target triple = "{triple}"\n'
BODY = "define hidden void @e0(ptr %a, i64 %b, i64 %c) nounwind {{\n{body}\n  ret void\n}}\n"


def test_each_primitive_has_a_row_for_each_kind_and_no_other() -> None:
    wanted = {(row.name, kind) for row in PRIMITIVES for kind in row.kinds}
    assert set(INSTRUCTIONS) == {key for key in wanted if key[0] not in {"select", *CONVERSIONS}}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("number", [0.0, -0.0, 6.0, -1.5, float("inf"), float("-inf"), float("nan")], ids=str)
def test_extrema_with_a_number_are_those_of_the_reference(computes: Any, number: float, dtype: str) -> None:
    """NaN, and the sign of zero, on either side."""
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 1.5, -1.5, 6.0, 7.0, -7.0, 3e38]
    x = np.array(special * 5, {"f32": np.float32, "f64": np.float64}[dtype])
    type, text = tensor(x.shape, dtype), f"0x{np.array(number, x.dtype).view(f'u{x.itemsize}'):0{2 * x.itemsize}X}"
    pairs = {"a": ("maximum", "%a0, %c"), "b": ("maximum", "%c, %a0"), "d": ("minimum", "%a0, %c"),
             "e": ("minimum", "%c, %a0")}  # fmt: skip
    lines = [f'%c = "stablehlo.constant"() <{{value = dense<{text}> : {type}}}> : () -> {type}']
    lines += [f"%{name} = {apply(op, given, '', [type, type], type)}" for name, (op, given) in pairs.items()]
    found = computes(main([type], lines, [(f"%{name}", type) for name in pairs]), "cpu", x)
    c = np.full_like(x, number)
    for got, meaning in zip(found, [maximum_float] * 2 + [minimum_float] * 2, strict=True):
        want = meaning(x, c)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


def test_each_op_is_rendered() -> None:
    outside = {"kernel.shared", "kernel.barrier"}  # those divide a workgroup
    outside |= {"kernel.store_bits"}  # of devices without narrow integers
    outside |= {"kernel.while"}  # of devices that record no loops
    assert set(_OPS) | outside == set(DIALECT.ops)


def test_levels_are_features() -> None:
    assert set(LEVELS) == set(INSTRUCTION_SETS)
    assert [row.name for row in levels_named(("x86-64-v2", "aarch64", "x86-64-v4"))] == [
        "x86-64-v4",
        "x86-64-v2",
        "aarch64",
    ]
    with pytest.raises(
        CompileError, match="no processor is called 'pentium'; there are x86-64-v4-bf16, x86-64-v4-vnni, "
    ):
        compiler.compile(PROGRAM, targets=["cpu"], target_cpu="pentium")


@pytest.mark.parametrize(("columns", "lanes"), [(48, 16), (96, 32), (64, 64), (128, 128)])
def test_several_vectors_reduce_at_once_where_they_fit_a_row(lowered: Any, columns: int, lanes: int) -> None:
    """Sums over the middle axis, with 9 elements: lanes load neighbours, of whole vectors of AVX-512."""
    entry = lowered(reduction((40, 9, columns), (1,), "add", "f32", "0.0"), "cpu")
    entries = target.Lowered.of(entry.module.block.first).entries
    ((text, _),) = target.texts_of(entries, LEVELS["x86-64-v4"])
    assert f"load <{lanes} x float>" in text and "gather" not in text


@pytest.mark.parametrize(("columns", "asks"), [(1000, True), (10, False)])
def test_a_pass_over_a_long_row_asks_for_the_next_one(
    columns: int, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short rows are loaded once, and ask for nothing."""
    shape, one = f"tensor<40x{columns}xf32>", "tensor<40xf32>"
    applied = f"across dimensions = [1] : ({shape}, tensor<f32>) -> {one}"
    module = f"""func.func @main(%x: {shape}) -> {shape} {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %a = stablehlo.reduce(%x init: %zero) applies stablehlo.add {applied}
      %b = stablehlo.broadcast_in_dim %a, dims = [0] : ({one}) -> {shape}
      %c = stablehlo.subtract %x, %b : {shape}
      %d = stablehlo.multiply %c, %c : {shape}
      %e = stablehlo.reduce(%d init: %zero) applies stablehlo.add {applied}
      %f = stablehlo.broadcast_in_dim %e, dims = [0] : ({one}) -> {shape}
      %g = stablehlo.divide %c, %f : {shape}
      return %g : {shape}
    }}"""
    texts, text_of = list[str](), EntryText.text
    monkeypatch.setattr(EntryText, "text", lambda entry: texts.append(text_of(entry)) or texts[-1])
    compiler.compile(module, targets=["cpu"], target_cpu="x86-64-v3")
    assert [("llvm.prefetch" in text) for text in texts] == [asks]


@pytest.mark.parametrize("bits", [0x7FC00001, 0xFF800000, 0x7F800001, 0x80000000, 1, 0x3F800000])
def test_float_literals_keep_their_bits(bits: int) -> None:
    (wide,) = struct.unpack("<d", struct.pack("<Q", int(literal(bits, BY_NAME["f32"]), 16)))
    if wide == wide:
        assert struct.pack("<f", wide) == struct.pack("<I", bits)
    else:
        assert int(literal(bits, BY_NAME["f32"]), 16) >> 29 & 0x7FFFFF == bits & 0x7FFFFF


def test_images_are_reproducible_for_every_level() -> None:
    first = compiler.compile(PROGRAM, targets=["cpu"], target_cpu="all")
    assert compiler.compile(PROGRAM, targets=["cpu"], target_cpu="all") == first
    assert compiler.compile(PROGRAM, targets=["cpu"], target_cpu="x86-64-v3") != first


def test_an_image_has_a_row_per_entry(lowered: Callable[..., Any]) -> None:
    text = main(
        ["tensor<9xf32>"],
        ['%r = "stablehlo.negate"(%a0) : (tensor<9xf32>) -> tensor<9xf32>'],
        [("%r", "tensor<9xf32>")],
    )
    payload = lowered(text, "cpu").payload
    (entry,) = decode(payload.data).entries
    assert (entry.bindings, entry.parameters) == (2, 0)
    best = next(level for level in levels_named(()) if not level.base)
    assert payload.features == {best.name}  # without products of bytes or of bf16, the image is that of the base


def test_sums_of_products_stay_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop of multiply-adds for a level with few registers uses the frame of its function."""
    given, level = list[str](), LEVELS["x86-64-v3"]

    def add(self: llvm_child.ObjectFiles, text: str, *rest: Any) -> Any:
        given.append(text)
        return real(self, text, *rest)

    real = llvm_child.ObjectFiles.add
    monkeypatch.setattr(llvm_child.ObjectFiles, "add", add)
    compiler.compile(LARGE, targets=["cpu"], target_cpu=level.name)
    (text,) = given
    assembly = llvm_child.object_file(text, level, "entry", text_only=True).data.decode()
    blocks = [block.split("\n.LBB")[-1] for block in re.split(r"\n\s+j\w+\s+\.LBB", assembly)]
    loops = [block for block in blocks if block.count("vfmadd") >= level.registers]
    assert loops
    for loop in loops:
        assert "(%rsp)" not in loop, loop


@pytest.mark.parametrize("level", [name for name, row in LEVELS.items() if not row.base])
def test_an_image_says_how_much_of_the_stack_entries_use(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least the arrays that their text reserves, with room for a few registers."""
    arrays = dict[str, int]()
    text_of = EntryText.text

    def noted(entry: EntryText) -> str:
        text = text_of(entry)
        arrays[entry.signature.name] = entry.stack
        return text

    monkeypatch.setattr(EntryText, "text", noted)
    stacks = dict[str, int]()

    def encode(architecture: str, entries: Sequence[Entry], code: bytes) -> bytes:
        stacks.update(zip(arrays, [entry.stack for entry in entries], strict=True))
        return bytes(8)

    monkeypatch.setattr(native_image, "encode", encode)
    compiler.compile(LARGE, targets=["cpu"], target_cpu=level)
    assert max(arrays.values()) > 30_000
    for name, size in arrays.items():
        assert size < stacks[name] < size + 4000
    monkeypatch.setattr(native_image, "MOST_STACK", 10_000)
    with pytest.raises(CompileError, match=rf"entry \w+ for {level} uses \d+ bytes of the stack, 10000 are allowed"):
        compiler.compile(LARGE, targets=["cpu"], target_cpu=level)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  call void @elsewhere()", "symbol elsewhere is not defined"),
        ("  store i32 1, ptr @state", r"section \.bss|section \.data"),
    ],
)
@pytest.mark.parametrize("level", ["x86-64-v3", "aarch64"])
def test_code_that_is_no_image_is_refused(body: str, message: str, level: str) -> None:
    row = LEVELS[level]
    text = HEAD.format(triple=row.triple) + BODY.format(body=body)
    text += "declare hidden void @elsewhere()\n@state = hidden global i32 7\n"
    text = text if "@state" in body else text.replace("@state = hidden global i32 7\n", "")
    with pytest.raises(LinkError, match=message):
        link(row.architecture, [llvm_child.object_file(text, row, "e0").data], ["e0"])


def test_damaged_object_files_are_refused() -> None:
    row = LEVELS["x86-64-v3"]
    data = llvm_child.object_file(HEAD.format(triple=row.triple) + BODY.format(body=""), row, "e0").data
    assert link("x86-64", [data], ["e0"]).functions["e0"][1] > 0
    with pytest.raises(LinkError, match="defines e1"):
        link("x86-64", [data], ["e1"])
    with pytest.raises(LinkError, match="aarch64 is 183"):
        link("aarch64", [data], ["e0"])
    for size in (0, 10, 63, 64, len(data) // 2):
        with pytest.raises(LinkError):
            link("x86-64", [data[:size]], ["e0"])


def test_a_crash_of_llvm_is_an_error_with_the_entry() -> None:
    row = LEVELS["aarch64"]
    body = '  call void asm sideeffect "nop", ""()'
    with pytest.raises(CompileError, match=r"LLVM failed on my_entry for aarch64: the process"):
        llvm_child.object_file(HEAD.format(triple=row.triple) + BODY.format(body=body), row, "my_entry")
    with pytest.raises(CompileError, match="LLVM refused my_entry for aarch64: RuntimeError"):
        llvm_child.object_file("no text of LLVM IR", row, "my_entry")


def test_object_files_are_linked_to_one_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries in one object file, and in one each, with a function that both call and constants of their own."""
    text = """
    func.func @main(%x: tensor<40xf32>, %y: tensor<30x20xf64>) -> (tensor<40xf32>, tensor<30xf64>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f64>
      %a = stablehlo.exponential %x : tensor<40xf32>
      %b = stablehlo.exponential %y : tensor<30x20xf64>
      %c = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<30x20xf64>, tensor<f64>) -> tensor<30xf64>
      return %a, %c : tensor<40xf32>, tensor<30xf64>
    }
    """  # noqa: E501
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(40, np.float32), rng.standard_normal((30, 20))
    results = []
    for characters in (1 << 30, 1):
        monkeypatch.setattr(target, "PART", characters)
        module = compiler.compile(text, targets=["cpu"], target_cpu="host")
        results.append(vm.load(module, device="cpu", allow_native_code=True).main(x, y))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    np.testing.assert_allclose(np.asarray(results[0][0]), np.exp(x), rtol=1e-6)
