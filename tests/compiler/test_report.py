"""The placement report of a compilation: no op of a source is missing, and what is said of it is so."""

import random
import re
from pathlib import Path

import pytest
from placements import check, compiled, ends, entries_of, places

from orchestrion import compiler
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.placement import Place, Report
from orchestrion.schema.container import open_bytes
from orchestrion.schema.decoder import decode
from orchestrion.schema.writer import write

pytestmark = pytest.mark.usefixtures("one_level")

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCES = [path for path in sorted(EXAMPLES.glob("*.mlir")) if ".hl_seq." not in path.name]
#: real programs that compile within a second or two
SMALL = ("convnet", "encoder", "lstm", "fft_convolution", "k_means", "life", "conjugate_gradient", "dropout_gradient")

TWO_FUNCTIONS = """
func.func private @half(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.5> : tensor<4xf32>
  %y = stablehlo.multiply %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @nobody(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.negate %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %two = stablehlo.add %one, %one : tensor<4xf32>
  %a = stablehlo.add %x, %two : tensor<4xf32>
  %b = stablehlo.add %x, %two : tensor<4xf32>
  %dead = stablehlo.sine %b : tensor<4xf32>
  %same = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<4xf32>
  %h = func.call @half(%same) : (tensor<4xf32>) -> tensor<4xf32>
  %p = stablehlo.multiply %h, %b : tensor<4xf32>
  %q = stablehlo.convert %x : tensor<4xf32>
  return %p, %q, %one : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""

#: two dispatches whose executables are equal
TWICE = """
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = stablehlo.tanh %a : tensor<8x8xf32>
  %c = stablehlo.dot_general %b, %w, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = stablehlo.tanh %c : tensor<8x8xf32>
  return %d : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize("source", SOURCES, ids=[path.stem for path in SOURCES])
def test_no_op_of_an_example_is_missing(source: Path) -> None:
    compiled(source, ["reference"] if source.stem == "library_call" else None)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", SMALL)
def test_no_op_of_a_real_program_is_missing(name: str) -> None:
    jax = pytest.importorskip("jax")
    from real_programs import PROGRAMS

    function, arguments = next(program for program in PROGRAMS if program.name == name).made()
    with jax.enable_x64(False):
        text = jax.jit(function).lower(*arguments).as_text()
    compiled(text)


def test_no_op_of_a_program_with_symbolic_sizes_is_missing() -> None:
    jax = pytest.importorskip("jax")
    from jax import export
    from real_programs import PROGRAMS

    program = next(program for program in PROGRAMS if program.name == "convnet")
    function, arguments = program.made()
    leaves, tree = jax.tree.flatten(arguments)
    with jax.enable_x64(False):
        compiled(export.export(jax.jit(function))(*program.symbolic(leaves, tree)))


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("seed", range(24))
def test_no_op_of_a_random_program_is_missing(seed: int) -> None:
    from random_programs import generate

    source = random.Random(seed)
    compiled(generate(source, source.choice((5, 8, 12, 20))).text)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("encodings", ["none", "always", "test"])
def test_no_op_is_missing_in_other_layouts(encodings: str) -> None:
    report, _ = compiled(EXAMPLES / "mlp.mlir", encodings=encodings)
    made = [entry.entry for program in report.programs for entry in program.entries if "encoding" in entry.entry]
    assert bool(made) == (encodings != "none")


def test_what_becomes_of_ops() -> None:
    report, _ = compiled(TWO_FUNCTIONS, ["reference"])
    folded = "dispatch main_dispatch_0 (folded into a constant by canonicalize) in main"
    dispatch = "dispatch main_dispatch_0 in main"
    half, one = places(report, "stablehlo.constant")
    assert half == [dispatch] and one == ["fill in main"]
    assert places(report, "stablehlo.add") == [[folded], [dispatch], [dispatch]]  # the last two are one op
    assert places(report, "stablehlo.multiply") == [[dispatch], [dispatch]]
    assert ends(report, "stablehlo.sine") == [("removed by expand: nothing needs its values", ())]
    (reshape,) = ends(report, "stablehlo.reshape")
    adds = [row.number for row in report.ops if row.op == "stablehlo.add"]
    assert reshape[0].endswith("its values are those of other ops") and set(reshape[1]) & set(adds)
    assert ends(report, "stablehlo.convert") == [("removed by canonicalize: its values are arguments", ())]
    (call,) = ends(report, "func.call")
    assert call[0] == "inlined by inline: the ops of the function stand in its place"
    assert [report.ops[number].op for number in call[1]] == ["stablehlo.multiply"]
    assert ends(report, "stablehlo.negate") == [("removed: it is in a function that nobody calls", ())]


def test_equal_executables_keep_their_ops_apart() -> None:
    """One executable serves both dots; the report names it for each, and the main op of each dispatch is the dot."""
    report, blob = compiled(TWICE, ["reference"])
    assert list(entries_of(decode(open_bytes(blob)))["reference"]) == [("main_dispatch_0", "main_dispatch_0")]
    assert places(report, "stablehlo.dot_general") == places(report, "stablehlo.tanh")
    assert places(report, "stablehlo.dot_general") == [["dispatch main_dispatch_0 in main"]] * 2
    assert [row.op for row in report.ops if any(place.is_main for place in row.places)] == ["stablehlo.dot_general"] * 2


def test_an_op_that_stands_for_hundreds_keeps_them_all() -> None:
    """Locations keep 256 places of a merged op, origins are all kept."""
    lines = [f"%c{i} = stablehlo.constant dense<2.0> : tensor<4xf32>" for i in range(300)]
    sums = [f"%s{i + 1} = stablehlo.add %s{i}, %c{i} : tensor<4xf32>" for i in range(300)]
    body = "\n".join([*lines, *sums]).replace("%s0,", "%x,")
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\nreturn %s300 : tensor<4xf32>\n}}"
    report, _ = compiled(text, ["reference"])
    assert all(row.places for row in report.ops)


def test_control_flow() -> None:
    report, _ = compiled(EXAMPLES / "spectral_norm.mlir", ["reference"])
    assert places(report, "stablehlo.while") == [["recording in spectral_norm"]]
    assert "recording in spectral_norm" in places(report, "stablehlo.if")[0]
    loop = next(row for row in report.ops if row.op == "stablehlo.while")
    inside = [row for row in report.ops if row.parent == loop.number]
    assert {row.op for row in inside} >= {"stablehlo.dot_general", "stablehlo.return"}


def test_a_loop_that_is_unrolled() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4xf32>
    cond { %c = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %one : tensor<i32>
      %z = stablehlo.sine %y : tensor<4xf32>
      stablehlo.return %j, %z : tensor<i32>, tensor<4xf32> }
  return %r#1 : tensor<4xf32>
}"""
    report, _ = compiled(text, ["reference"])
    (loop,) = ends(report, "stablehlo.while")
    assert loop[0] == "unrolled by unroll-short-loops: copies of its body stand in its place"
    assert [report.ops[number].op for number in loop[1]] == ["stablehlo.add", "stablehlo.sine"]
    assert places(report, "stablehlo.sine") == [["dispatch main_dispatch_0 in main"]]


def test_sizes_of_calls() -> None:
    """Arithmetic on sizes is nowhere computed; what it demands of a call the host checks."""
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %b = stablehlo.dynamic_broadcast_in_dim %c, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %y = stablehlo.multiply %x, %b : tensor<?xf32>
  return %y : tensor<?xf32>
}"""
    report, _ = compiled(text, ["reference"])
    sizes = [("removed by refine-shapes: it computes sizes, which types say", ())]
    assert ends(report, "stablehlo.get_dimension_size") == ends(report, "stablehlo.reshape") == sizes
    assert places(report, "stablehlo.dynamic_broadcast_in_dim") == [["dispatch main_dispatch_0 in main"]]


def test_work_of_an_initializer() -> None:
    report, _ = compiled(EXAMPLES / "matmul_static.mlir", ["reference"])
    (iota,) = places(report, "stablehlo.sine")
    assert iota == ["dispatch initializer_dispatch_0 in initializer"]


def test_parameters(tmp_path: Path) -> None:
    """Constants that lie beside the module, and arguments that do."""
    report, _ = compiled(EXAMPLES / "mlp.mlir", ["reference"], parameters=tmp_path / "w.safetensors")
    large = [place for place in places(report, "stablehlo.constant") if place and "parameter" in place[0]]
    assert len(large) == 2 and all(len(place) == 1 for place in large)
    assert all(place.detail for row in report.ops for place in row.places if place.kind == "parameter")


def test_a_library_call() -> None:
    report, _ = compiled(EXAMPLES / "library_call.mlir", ["reference"])
    (call,) = [row for row in report.ops if row.op == "stablehlo.custom_call(blas.gemm)"]
    (place,) = call.places
    assert (place.kind, place.detail, place.is_main) == ("library call", "blas.gemm", True)


def test_refusals_name_their_targets() -> None:
    report = Report()
    with pytest.raises(compiler.CompileError) as failed:
        compiler.compile(EXAMPLES / "library_call.mlir", targets=["reference", "spirv", "opencl"], report=report)
    assert [row.targets for row in report.refusals] == [("spirv",), ("opencl",)]
    assert [row.reason for row in report.refusals] == [one.message for one in failed.value.diagnostics]
    assert {row.location for row in report.refusals} == {"library_call.mlir:6:10"}
    assert not report.programs and len(report.ops) == 5 and not any(row.places for row in report.ops)
    assert "    spirv: calls library function blas.gemm" in report.text()


def test_what_no_target_takes_is_refused_by_all() -> None:
    report = Report()
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.custom_call @nope(%x)\n"
    with pytest.raises(compiler.CompileError):
        text += "    : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}"
        compiler.compile(text, targets=["spirv", "reference"], report=report)
    assert [row.targets for row in report.refusals] == [("spirv", "reference")]
    assert report.refusals[0].op == "stablehlo.custom_call"


def test_a_report_is_of_the_last_compilation() -> None:
    report = Report()
    compiler.compile(TWICE, targets=["reference"], report=report)
    compiler.compile(EXAMPLES / "simple_mul.mlir", targets=["spirv"], report=report)
    assert [program.name for program in report.programs] == ["spirv"]
    assert [row.op for row in report.ops] == ["stablehlo.multiply", "func.return"]


def test_schedules() -> None:
    report, _ = compiled(EXAMPLES / "matmul_static.mlir", ["reference", "spirv"])
    reference, spirv = ({entry.entry: entry.schedule for entry in program.entries} for program in report.programs)
    assert set(reference.values()) == {""}
    assert re.fullmatch(r"tile\(m, \d+\), tile\(n, \d+\), bind\(.*\)", spirv["matmul_static_dispatch_0"])
    assert re.fullmatch(r"tile\(e, \d+\), bind\(grid, invocation, \d+\)", spirv["encoding_0"])


def test_entries_for_few_rows() -> None:
    """A call brings the rows: `spirv` has an entry for few, and the report says that other machines would not."""
    text = """
func.func @main(%x: tensor<?x256xf32>, %w: tensor<256x256xf32>) -> tensor<?x256xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x256xf32>, tensor<256x256xf32>) -> tensor<?x256xf32>
  return %y : tensor<?x256xf32>
}"""
    report, _ = compiled(text, ["spirv", "opencl"], encodings="none")
    spirv, opencl = report.programs
    every, few = spirv.entries
    assert every.calls == "" and re.fullmatch(r"d0 <= \d+", few.calls)
    assert "specialize(m, .." in few.schedule and "specialize" not in every.schedule
    assert [entry.calls for entry in opencl.entries] == [""]
    missed = [row for row in report.not_taken if row.what.startswith("specialization")]
    assert [row.programs for row in missed] == [("opencl",)]
    assert missed[0].reason == f"dispatches with {few.calls} have no kernel of their own on this machine"


def test_layouts_that_are_not_taken() -> None:
    report, _ = compiled(EXAMPLES / "matmul_static.mlir")
    reasons = {(row.programs, row.what): row.reason for row in report.not_taken}
    right = "another layout for the right operand of a dot"
    assert "row-major" in reasons[("reference",), right]
    assert reasons[("opencl",), right] == "the columns of the dot are neighbours in memory already"
    assert not any("spirv" in programs for programs, _ in reasons)
    report, _ = compiled(EXAMPLES / "matmul_static.mlir", encodings="none")
    assert {row.reason for row in report.not_taken} == {"--encodings=none"}
    report, _ = compiled(EXAMPLES / "mlp.mlir", ["reference"])
    assert [row.programs for row in report.not_taken] == [()] * 3
    assert all("dots are worth it from 8 along each axis" in row.reason for row in report.not_taken)


def test_machines() -> None:
    report, _ = compiled(EXAMPLES / "mlp.mlir", ["reference", "spirv"], machines=("gpu", "cpu"))
    assert [(row.name, row.machine, row.features) for row in report.programs] == [
        ("reference", "cpu", ()),
        ("spirv_gpu", "gpu", ("gpu",)),
        ("spirv", "cpu", ()),
    ]
    (row,) = [row for row in report.not_taken if row.what == "a program for machine gpu"]
    assert (row.programs, row.reason) == (("reference",), "target reference makes the same code for all machines")


@pytest.mark.parametrize("phase", ["stablehlo", "flow"])
def test_a_report_of_the_text_of_a_phase(phase: str) -> None:
    """What the text still has of the source: its ops in functions, later those in executables."""
    report = Report()
    text = Compilation(targets=("reference", "spirv")).text(EXAMPLES / "mlp.mlir", phase)
    job = Compilation(targets=("reference", "spirv"), start=phase, report=report)
    check(report, decode(open_bytes(write(job.rows(text.encode())))))
    assert [row.op for row in report.ops].count("stablehlo.dot_general") == 3


def test_a_report_of_programs() -> None:
    """From `hl_seq` on each program has ops of its own."""
    report = Report()
    text = Compilation(targets=("reference", "spirv")).text(EXAMPLES / "mlp.mlir", "hl_seq")
    Compilation(targets=("reference", "spirv"), start="hl_seq", report=report).rows(text.encode())
    assert [row.op for row in report.ops].count("stablehlo.dot_general") == 6
    for row in report.ops:
        assert row.end or {place.program for place in row.places} == {row.function}


def test_the_text_of_a_late_phase_has_no_ops_of_a_source() -> None:
    with pytest.raises(compiler.CompileError, match="the text of phase ll_seq has no ops of a source"):
        Compilation(start="ll_seq", report=Report())


def test_phases_print_the_same(tmp_path: Path) -> None:
    """Locations with an origin print as others do."""
    for report, name in ((None, "without"), (Report(), "with")):
        job = Compilation(targets=("reference", "spirv"), dump=tmp_path / name, report=report)
        job.rows(EXAMPLES / "spectral_norm.mlir")
    files = sorted(path.name for path in (tmp_path / "without").iterdir())
    assert len(files) == 7
    for file in files:
        assert (tmp_path / "with" / file).read_text() == (tmp_path / "without" / file).read_text()


def test_places_in_words() -> None:
    assert Place("p", "dispatch", "main", "linked_0", "a").what == "dispatch linked_0/a in main"
    assert Place("p", "constant", "", detail="c").what == "constant (c)"


def test_text_holds_no_escapes_of_a_source() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("\\1B[2J\\0A")
  return %0 : tensor<4xf32>
}"""
    report, _ = compiled(text, ["reference"])
    assert "1B" in report.ops[0].location and "\x1b" not in report.text()
    assert len(report.text().splitlines()) == 7
