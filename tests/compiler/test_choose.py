"""Which schedules are chosen: clear-cut cases of each pattern, and that what is chosen fits and stays within bounds.

Numbers of steps are not held here: they are tuned. A case says which steps a schedule has.
"""

import re
from collections.abc import Callable
from math import prod
from typing import Any

import pytest
from dots import Dot, dots, matmul
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stablehlo_text import apply, ints, main, reducer, reduction, tensor

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.ir.attributes import ArrayAttr, DialectAttr
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import choose
from orchestrion.compiler.kernel.lower import illegal
from orchestrion.compiler.profiles import MACHINES
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.target import TARGETS
from orchestrion.compiler.targets.target import target as target_of

Chosen = Callable[..., str]
EACH_TARGET = pytest.mark.parametrize("target", ["opencl", "spirv"])
EACH_MACHINE = pytest.mark.parametrize("machine", list(target_of("spirv").machines))

#: what schedules have in common that do the same
EACH = r"\[bind\(grid, invocation, \d+\)(, unroll\(k, \d+\))?\]"
TREE = r"\[bind\(grid, workgroup\), reduce\(k, tree, \d+\)\]"
COLUMNS = r"\[bind\(e, local, 8\), bind\(grid, workgroup\), reduce\(k, tree, 16\)\]"
TILED = r"\[tile\(m, \d+\), tile\(n, \d+\), bind\(grid, invocation, \d+\).*\]"
STAGED = r"\[tile\(m, \d+\), tile\(n, \d+\), bind\(grid, workgroup\), .*stage\(lhs, shared, .*\]"
ROW = r"\[bind\(grid, invocation, \d+\), stage\(k, register\)\]"
HELD = r"\[bind\(grid, workgroup\), reduce\(k, tree, \d+\), stage\(k, register\)\]"


def test_machines_of_targets() -> None:
    """A target has no machines, or the default one and others that exist."""
    found = {name: set(target_of(name).machines) for name in TARGETS}
    gpus = {"cpu", "gpu"}
    assert found == {"reference": set(), "spirv": gpus, "spirv_least": gpus, "opencl": gpus, "cpu": {"cpu", "mcu"}}
    assert set().union(*found.values()) == set(MACHINES)


@pytest.fixture
def chosen(entry: Any) -> Chosen:
    """`chosen(text, target, machine)`: the schedule of `@main` of StableHLO text, which is the only one."""

    def run(text: str, target: str, machine: str = "cpu") -> str:
        (body,) = (Body.of_entry(op) for op in entry(text).walk() if isinstance(op, ll_seq.Entry))
        made, row = choose(body, target_of(target).row(machine)), target_of(target).row(machine)
        assert not made.specialized and not list(illegal(body, [made.schedule], row))
        return made.schedule.attribute.body

    return run


# reductions


def summed(shape: list[int], dims: list[int]) -> str:
    return reduction(shape, dims, "add", "f32", "0.0")


@EACH_TARGET
@EACH_MACHINE
@pytest.mark.parametrize(
    ("shape", "dims", "wanted"),
    [
        ([4], [0], EACH),
        ([100_000, 4], [1], EACH),
        ([100_000, 3, 400], [2], EACH),
        ([100_000], [0], TREE),
        ([3, 100_000], [1], TREE),
        ([100_000, 3], [0], TREE),
    ],
    ids=str,
)
def test_a_long_and_lone_reduction_is_shared_by_a_workgroup(
    chosen: Chosen, target: str, machine: str, shape: list[int], dims: list[int], wanted: str
) -> None:
    assert re.fullmatch(wanted, chosen(summed(shape, dims), target, machine))


@pytest.mark.parametrize(("shape", "dims"), [([1, 56, 56, 144], [1, 2]), ([400, 16], [0])], ids=str)
def test_long_reductions_of_axes_in_front_are_lanes_of_vectors_in_native_code(
    chosen: Chosen, shape: list[int], dims: list[int]
) -> None:
    assert re.fullmatch(EACH, chosen(summed(shape, dims), "cpu"))
    assert re.fullmatch(TREE, chosen(summed(shape, dims), "opencl"))
    assert re.fullmatch(TREE, chosen(summed([400, 8], [0]), "cpu"))  # fewer than lanes


def test_lanes_of_vectors_take_rows_and_wide_pieces_of_rows_in_native_code(chosen: Chosen) -> None:
    assert chosen(summed([4096, 1024], [1]), "cpu") == "[bind(grid, workgroup), reduce(k, tree, 32)]"
    assert chosen(summed([4096, 16, 32], [1, 2]), "cpu") == "[bind(grid, workgroup), reduce(k, tree, 32)]"
    assert chosen(summed([512, 512], [1]), "cpu") == "[bind(grid, workgroup), reduce(k, tree, 32)]"
    assert re.fullmatch(EACH, chosen(summed([4096, 255], [1]), "cpu"))
    assert re.fullmatch(EACH, chosen(reduction([4096, 1024], [1], "subtract", "f32", "0.0"), "cpu"))
    assert chosen(summed([512, 4096], [0]), "cpu").startswith("[bind(grid, invocation, 128)")
    for shape in ([512, 1024], [64, 512, 64]):  # few columns, short rows
        assert re.fullmatch(EACH, chosen(summed(shape, [len(shape) - 2]), "cpu"))


@EACH_MACHINE
def test_a_reduction_that_no_loop_of_an_invocation_finishes_is_shared(chosen: Chosen, machine: str) -> None:
    """On llvmpipe, however many there are. Where loops have no limit each of many is an invocation's, but not if that
    leaves most of a graphics processor idle.
    """
    shape = [2000, 9_000_000]
    assert re.fullmatch(TREE, chosen(summed(shape, [1]), "spirv", machine))
    assert re.fullmatch(EACH if machine == "cpu" else TREE, chosen(summed(shape, [1]), "opencl", machine))


@EACH_TARGET
@pytest.mark.parametrize(
    ("shape", "dims", "wanted"),
    [
        ([4096, 4096], [1], TREE),
        ([4096, 64], [1], EACH),
        ([4096, 4096], [0], COLUMNS),
        ([4096, 40_000], [0], EACH),
        ([40_000, 4096], [1], EACH),
    ],
    ids=str,
)
def test_long_reductions_are_shared_on_gpus_unless_they_fill_one(
    chosen: Chosen, target: str, shape: list[int], dims: list[int], wanted: str
) -> None:
    """Invocations beside each other then read neighbours: elements of one reduction, or of neighbouring ones."""
    assert re.fullmatch(wanted, chosen(summed(shape, dims), target, "gpu"))
    assert re.fullmatch(EACH, chosen(summed(shape, dims), target, "cpu"))


@EACH_TARGET
@pytest.mark.parametrize(("length", "runs"), [(1 << 20, True), (1000, False), ((1 << 20) + 1, False)])
def test_many_elements_are_computed_in_runs_on_gpus(chosen: Chosen, target: str, length: int, runs: bool) -> None:
    t = tensor([length], "f32")
    text = main([t], ["%r = " + apply("negate", "%a0", "", [t], t)], [("%r", t)])
    assert ("tile(e, " in chosen(text, target, "gpu")) == runs
    assert "tile" not in chosen(text, target, "cpu")


def test_elements_are_an_invocation_s_each(chosen: Chosen) -> None:
    t = tensor([1000], "f32")
    text = main([t], ["%r = " + apply("negate", "%a0", "", [t], t)], [("%r", t)])
    assert re.fullmatch(r"\[bind\(grid, invocation, \d+\)\]", chosen(text, "spirv"))


@pytest.mark.parametrize(
    ("shape", "order", "wanted"),
    [
        ((128, 256), (1, 0), "tile(t, 16), bind(grid, invocation, 64)"),
        ((40, 37), (1, 0), "tile(t, 16), bind(grid, invocation, 32), guard(t, shift)"),
        ((2, 14, 14, 32), (0, 3, 1, 2), "tile(t, 16), bind(grid, invocation, 64), guard(t, shift)"),
        ((15, 64), (1, 0), "bind(grid, invocation, 64)"),  # few columns
        ((64, 15), (1, 0), "bind(grid, invocation, 64)"),  # few rows
        ((8, 32, 64), (1, 0, 2), "bind(grid, invocation, 64)"),  # neighbours stay neighbours
    ],
)
def test_what_is_read_across_is_computed_in_tiles(
    chosen: Chosen, shape: tuple[int, ...], order: tuple[int, ...], wanted: str
) -> None:
    t, out = tensor(list(shape), "f32"), tensor([shape[axis] for axis in order], "f32")
    attributes = f"permutation = array<i64: {', '.join(map(str, order))}>"
    moved = ["%m = " + apply("transpose", "%a0", attributes, [t], out), "%r = " + apply("negate", "%m", "", [out], out)]
    text = main([t], moved, [("%r", out)])
    assert chosen(text, "cpu") == f"[{wanted}]"
    assert "tile(t" not in chosen(text, "opencl")


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((100, 1001), "bind(e, local, 128), bind(grid, workgroup), guard(e, shift)"),
        ((3, 40, 56), "bind(e, local, 32), bind(grid, workgroup), guard(e, shift)"),
        ((100, 24), "bind(e, local, 16), bind(grid, workgroup), guard(e, shift)"),
        ((100, 64), "bind(grid, invocation, 64)"),  # whole vectors
        ((100, 7), "bind(grid, invocation, 64)"),  # short lines
        ((1, 1001), "bind(grid, invocation, 64)"),  # one line
    ],
)
def test_lines_that_are_no_whole_vectors_are_computed_by_workgroups(
    chosen: Chosen, shape: tuple[int, ...], wanted: str
) -> None:
    row, out = tensor([shape[-1]], "f32"), tensor(list(shape), "f32")
    spread = "%m = " + apply(
        "broadcast_in_dim", "%a0", f"broadcast_dimensions = array<i64: {len(shape) - 1}>", [row], out
    )
    text = main([row], [spread, "%r = " + apply("negate", "%m", "", [out], out)], [("%r", out)])
    assert chosen(text, "cpu") == f"[{wanted}]"
    assert "local" not in chosen(text, "opencl")


@pytest.mark.parametrize(
    ("size", "wanted"),
    [(56, "bind(e, local, 32)"), (16, "bind(e, local, 16), bind(grid, workgroup)]"), (14, "bind(e, local, 8)")],
)
def test_depthwise_convolutions_of_planes_are_computed_in_lines(chosen: Chosen, size: int, wanted: str) -> None:
    t, w = tensor([1, 24, size, size], "f32"), tensor([24, 1, 3, 3], "f32")
    layout = "dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]}"
    text = f"""
    func.func @main(%a: {t}, %b: {w}) -> {t} {{
      %r = stablehlo.convolution(%a, %b) {layout}
        {{batch_group_count = 1 : i64, feature_group_count = 24 : i64}} : ({t}, {w}) -> {t}
      return %r : {t}
    }}"""
    assert wanted in Compilation(targets=("cpu",)).text(text, "hl_seq")
    assert "bind(e, local" not in Compilation(targets=("opencl",)).text(text, "hl_seq")


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((100, 2), "tile(e, 2), bind(grid, invocation, 64)"),
        ((10, 9, 4), "tile(e, 4), bind(grid, invocation, 64)"),
        ((100, 5), "bind(grid, invocation, 64)"),
    ],
)
def test_results_that_alternate_are_an_invocation_s(chosen: Chosen, shape: tuple[int, ...], wanted: str) -> None:
    t = tensor(list(shape), "f32")
    text = main(
        [t], ["%r = " + apply("reverse", "%a0", f"dimensions = array<i64: {len(shape) - 1}>", [t], t)], [("%r", t)]
    )
    assert chosen(text, "cpu") == f"[{wanted}]"
    assert "tile" not in chosen(text, "opencl")


@pytest.mark.parametrize("replaced", [True, False])
def test_parts_of_lines_that_may_replace_an_operand_are_not_moved_back(chosen: Chosen, replaced: bool) -> None:
    """The last part would read results of the part before."""
    row, out = tensor([1001], "f32"), tensor([100, 1001], "f32")
    spread = "%m = " + apply("broadcast_in_dim", "%a0", "broadcast_dimensions = array<i64: 1>", [row], out)
    other = "%o = " + apply("reverse", "%a1", "dimensions = array<i64: 0>", [out], out)
    total = "%r = " + apply("add", "%m, " + ("%a1" if replaced else "%o"), "", [out, out], out)
    text = main([row, out], [spread, *([] if replaced else [other]), total], [("%r", out)])
    assert ("guard(e, shift)" in chosen(text, "cpu")) != replaced
    assert "bind(e, local, 128)" in chosen(text, "cpu")


# dots


@EACH_TARGET
@pytest.mark.parametrize(
    ("shape", "on_cpu", "on_gpu"),
    [
        ((1024, 1024, 1024), TILED, STAGED),
        ((64, 64, 64), TILED, STAGED),
        ((1, 64, 2048), TILED, EACH),
        ((1, 64, 1_000_000), TILED, TILED),
        ((4096, 64, 1), EACH, EACH),
        ((3, 4, 3), EACH, EACH),
        ((4, 100_000, 16), TILED, TREE),
        ((20, 100_000, 1), TREE, TREE),
    ],
    ids=str,
)
def test_a_dot_is_tiled_where_loads_serve_several_products(
    chosen: Chosen, target: str, shape: tuple[int, int, int], on_cpu: str, on_gpu: str
) -> None:
    """And staged on graphics processors if it fills the block of a workgroup."""
    text = matmul(*shape).text(["f32"] * 3)
    assert re.fullmatch(on_cpu, chosen(text, target, "cpu"))
    assert re.fullmatch(on_gpu, chosen(text, target, "gpu"))


def tile_of(schedule: str) -> dict[str, int]:
    """Results that an invocation computes along dimensions of a dot."""
    return {dim: int(count) for dim, count in re.findall(r"tile\((\w), (\d+)\)", schedule)}


@EACH_TARGET
def test_a_block_leaves_work_for_many(chosen: Chosen, target: str) -> None:
    """Smaller products have smaller blocks, so that all compute units have one."""
    small, large = (
        prod(tile_of(chosen(matmul(size, 64, size).text(["f32"] * 3), target, "gpu")).values()) for size in (64, 2048)
    )
    assert small < large


@EACH_TARGET
def test_blocks_of_large_products_have_square_tiles(chosen: Chosen, target: str) -> None:
    """Of few invocations, which compute 8 x 8 results each. The other schedule has tiles of 8 x 4 at most."""
    large = chosen(matmul(2048, 64, 2048).text(["f32"] * 3), target, "gpu")
    assert tile_of(large) == {"m": 8, "n": 8} and "unroll(k, 8)" in large
    assert tile_of(chosen(matmul(512, 64, 512).text(["f32"] * 3), target, "gpu")) == {"m": 4, "n": 2}


@EACH_TARGET
@EACH_MACHINE
@pytest.mark.parametrize("ops", [["sine", "tan", "cosine"], ["tanh"], ["power"]], ids=str)
def test_the_code_stays_bounded_behind_expensive_ops(
    chosen: Chosen, lowered: Any, target: str, machine: str, ops: list[str]
) -> None:
    """The results of a tile times the ops of each: drivers take seconds for code that is longer."""
    dot, last, lines = matmul(65, 40, 67), "%r", []
    t = tensor(dot.out, "f32")
    for at, op in enumerate(ops):
        values = [last, last] if op == "power" else [last]
        lines.append(f"%z{at} = " + apply(op, ", ".join(values), "", [t] * len(values), t))
        last = f"%z{at}"
    arguments = [tensor(dot.lhs, "f32"), tensor(dot.rhs, "f32")]
    text = main(arguments, [dot.line("%r", "%a0", "%a1", ["f32"] * 3), *lines], [(last, t)])
    plain = tile_of(chosen(dot.text(["f32"] * 3), target, machine))
    assert prod(tile_of(chosen(text, target, machine)).values()) <= prod(plain.values())
    assert sum(1 for _ in lowered(text, target, machine).module.walk()) < 7000


@pytest.mark.parametrize("shape", [(48, 64, 1024), (64, 256, 1024), (500, 333, 257), (512, 512, 512), (4096, 64, 4096)])
def test_blocks_with_panels_are_large_and_leave_work_for_threads(chosen: Chosen, shape: tuple[int, int, int]) -> None:
    """Every tile of a block has a row. Blocks of more than 32 tiles leave 16 blocks."""
    schedule = chosen(matmul(*shape).text(["f32"] * 3), "cpu")
    tiles = {dim: int(count) for dim, count in re.findall(r"bind\((m|n), local, (\d+)\)", schedule)}
    tile, (down, across) = tile_of(schedule), (tiles.get(dim, 1) for dim in ("m", "n"))
    assert "stage(rhs, panel)" in schedule and 16 <= down * across <= 128
    assert tile["m"] * (down - 1) < 2 * shape[0] and tile["n"] * across <= shape[2]
    blocks = -(-shape[0] // (tile["m"] * down)) * -(-shape[2] // (tile["n"] * across))
    assert down * across <= 32 or blocks >= 16


@EACH_TARGET
def test_vectors_are_of_floats(chosen: Chosen, target: str) -> None:
    floats, integers = (chosen(matmul(64, 64, 64).text([dtype] * 3), target) for dtype in ("f32", "i32"))
    assert ("vectorize" in floats) == (target == "opencl") and "vectorize" not in integers


# rows


def centred(shape: list[int], expensive: bool = False) -> str:
    """Rows without their sums, negated or exponentials of that, times the sums of those."""
    rows, source, scalar = tensor(shape[:1], "f32"), tensor(shape, "f32"), tensor([], "f32")
    spread = f'"stablehlo.broadcast_in_dim"(%s) <{{broadcast_dimensions = {ints([0])}}}> : ({rows}) -> {source}'
    fold = f"<{{dimensions = {ints([1])}}}> {reducer('add', 'f32')} : ({source}, {scalar}) -> {rows}"
    lines = [
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {scalar}}}> : () -> {scalar}',
        f'%s = "stablehlo.reduce"(%a0, %c) {fold}',
        f"%b = {spread}",
        f'%d = "stablehlo.subtract"(%a0, %b) : ({source}, {source}) -> {source}',
        f'%e = "stablehlo.{"exponential" if expensive else "negate"}"(%d) : ({source}) -> {source}',
        f'%t = "stablehlo.reduce"(%e, %c) {fold}',
        f"%u = {spread.replace('%s', '%t')}",
        f'%r = "stablehlo.multiply"(%e, %u) : ({source}, {source}) -> {source}',
    ]
    return main([source], lines, [("%r", source)])


@EACH_TARGET
@EACH_MACHINE
@pytest.mark.parametrize(("shape", "wanted"), [([64, 8], ROW), ([64, 256], HELD), ([64, 30_000], TREE)], ids=str)
def test_rows_stay_in_registers_if_a_workgroup_holds_one(
    chosen: Chosen, target: str, machine: str, shape: list[int], wanted: str
) -> None:
    """A short row in those of one invocation, a longer one in those of a workgroup; the longest are read again."""
    assert re.fullmatch(wanted, chosen(centred(shape), target, machine))


@pytest.mark.parametrize(
    ("target", "rows", "expensive", "shared"),
    [
        ("opencl", 100_000, False, False),
        ("opencl", 100_000, True, True),
        ("opencl", 16, False, True),
        ("spirv", 100_000, False, True),
    ],
)
def test_many_cheap_rows_are_an_invocation_s_each_on_opencl(
    chosen: Chosen, target: str, rows: int, expensive: bool, shared: bool
) -> None:
    """One invocation has nowhere to keep what is expensive, and PoCL has no cheap barriers."""
    assert ("reduce(k, tree" in chosen(centred([rows, 100], expensive), target)) == shared


# kernels that are no loop nests


FFT = '"flow.fft"(%a0, %a1) <{dimension = 1 : i64, inverse = false}>'
SOLVE = '"flow.solve_rows"(%a0, %a1) <{factor = true}>'
#: kind, types of arguments, op, the argument of whose type its result is
LIBRARY = [
    ("fft", ["tensor<3x64x2xf32>", "tensor<64x2xf32>"], FFT, 0),
    ("row_solve", ["tensor<1x32x32xf32>", "tensor<1x40x32xf32>"], SOLVE, 1),
]


@EACH_MACHINE
@pytest.mark.parametrize(("kind", "arguments", "call", "result"), LIBRARY, ids=lambda part: str(part)[:9])
def test_library_kernels_schedule_themselves(
    chosen: Chosen, machine: str, kind: str, arguments: list[str], call: str, result: int
) -> None:
    out = arguments[result]
    text = main(arguments, [f"%r = {call} : ({', '.join(arguments)}) -> {out}"], [("%r", out)])
    assert re.fullmatch(rf"\[library\({kind}, \d+\)\]", chosen(text, "spirv", machine))


# dynamic sizes


def of_compilation(text: str, target: str, machine: str = "cpu", encodings: str = "default") -> list[str]:
    """The schedules of the only entry that has a hero, or else of the only one."""
    made = Compilation(targets=(target,), machines=(machine,), encodings=encodings).text(text, "hl_seq")
    entries = [op for op in parse(made, "text").walk() if isinstance(op, Func) and op.kind is not None]
    if len(entries) > 1:
        entries = [op for op in entries if op.kind is not None and op.kind.value != "elementwise"]
    (found,) = entries
    assert isinstance(found.schedules, ArrayAttr)
    return [item.body for item in found.schedules if isinstance(item, DialectAttr)]


def dynamic_dot(lhs: str, rhs: str, out: str) -> str:
    line = matmul(1, 1, 1).line("%r", "%a0", "%a1", ["f32"] * 3).partition(" : (")[0]
    types = [f"tensor<{shape}xf32>" for shape in (lhs, rhs, out)]
    return main(types[:2], [f"{line} : ({types[0]}, {types[1]}) -> {types[2]}"], [("%r", types[2])])


def test_dispatches_with_few_rows_have_a_schedule_of_their_own() -> None:
    """On the CPU by Vulkan. PoCL's compiler has code for few rows in what it makes of a tile."""
    text = dynamic_dot("?x64", "64x256", "?x256")
    few, many = of_compilation(text, "spirv")
    assert few.startswith("[specialize(m, ..") and few.endswith("guard(m, clamp)]")
    assert many.startswith("[assume(m, ") and many.endswith("guard(m, shift)]")
    (one,) = of_compilation(text, "opencl")
    assert "guard(m, clamp)" in one


def test_dispatches_with_few_columns_have_a_schedule_of_their_own() -> None:
    few, many = of_compilation(dynamic_dot("256x64", "64x?", "256x?"), "opencl")
    assert few.startswith("[specialize(n, ..") and few.endswith("guard(n, clamp)]")
    assert many.startswith("[assume(n, ") and many.endswith("guard(n, shift)]")


@EACH_TARGET
def test_short_reductions_of_few_results_wait_for_nobody(target: str) -> None:
    fold = f"<{{dimensions = {ints([1])}}}> {reducer('add', 'f32')}"
    types = "(tensor<9x?xf32>, tensor<f32>) -> tensor<9xf32>"
    lines = [
        '%c = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>',
        f'%r = "stablehlo.reduce"(%a0, %c) {fold} : {types}',
    ]
    *few, many = of_compilation(main(["tensor<9x?xf32>"], lines, [("%r", "tensor<9xf32>")]), target)
    assert re.fullmatch(TREE, many)
    assert len(few) == (target == "spirv") and all(one.startswith("[specialize(k, ..") for one in few)


# operands in tiles


@EACH_TARGET
def test_tiles_of_operands_in_memory_are_tiles_of_the_dot(target: str) -> None:
    """What puts an operand in tiles writes rows of them; a dot reads padding where its last tile has some."""
    text = matmul(61, 64, 75).text(["f32"] * 3)
    made = Compilation(targets=(target,), encodings="always").text(text, "hl_seq")
    entries = [op for op in parse(made, "text").walk() if isinstance(op, Func) and op.schedules is not None]
    found = sorted((str(op.kind), str(op.schedules)) for op in entries)
    assert [kind for kind, _ in found] == ['"contraction"', '"elementwise"', '"elementwise"']
    dot, *packs = [schedule for _, schedule in found]
    assert "guard(m, pad), guard(n, pad)]" in dot
    assert all(re.search(r"\[tile\(e, \d+\), bind\(grid, invocation, \d+\)\]", one) for one in packs)


# whatever is chosen


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dot=dots(),
    dtype=st.sampled_from(["f32", "i32", "i8", "f64"]),
    target=st.sampled_from(["opencl", "spirv"]),
    machine=st.sampled_from(list(target_of("spirv").machines)),
)
def test_a_tile_fits_its_dot(chosen: Chosen, dot: Dot, dtype: str, target: str, machine: str) -> None:
    """`chosen` asks whether it is legal."""
    schedule = chosen(dot.text([dtype] * 3), target, machine)
    batch, left = len(dot.dims.lhs_batch), len(dot.dims.free(len(dot.lhs), True))
    sizes = {"m": prod(dot.out[batch : batch + left]), "n": prod(dot.out[batch + left :])}
    if "stage(" not in schedule:
        assert all(count <= sizes[dim] for dim, count in tile_of(schedule).items())
