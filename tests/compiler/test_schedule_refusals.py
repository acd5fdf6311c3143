"""Every reason why a schedule is refused: a case with the message, and no reason without a case."""

import pytest
from schedule_reasons import reason_of, reasons
from schedule_runs import Judge, entry_of, module_of
from scheduled_bodies import BODIES, many_reductions

from orchestrion.compiler.ir.attributes import DialectAttr, StringAttr
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.lower import lower_entry
from orchestrion.compiler.kernel.machine import PLAIN
from orchestrion.compiler.kernel.rows.values import parts_bytes, shared_row_bytes
from orchestrion.compiler.kernel.schedule import ATTRIBUTE, Schedule, ScheduleError, Step, parse
from orchestrion.compiler.kernel.signature import signature_of

GRID, GROUP, TILE = "bind(grid, invocation, 32)", "bind(grid, workgroup)", "tile(m, 4), tile(n, 4)"


def staged(slices: str, rows: int = 2, more: str = "") -> str:
    """A block of workgroups of 4 by 4 invocations."""
    local = "bind(m, local, 4), bind(n, local, 4)"
    guards = "guard(m, clamp), guard(n, clamp)"
    return f"tile(m, {rows}), tile(n, 2), {GROUP}, {local}, {more}{slices}, {guards}"


def slices(depth: int) -> str:
    return f"stage(lhs, shared, {depth}), stage(rhs, shared, {depth})"


def panels(stages: str, bind: str = f"{GROUP}, bind(m, local, 4)", more: str = "") -> str:
    """A block of 4 by 1 tiles."""
    return f"{TILE}, {bind}, vectorize(n, 4), {stages}, guard(m, clamp){more}"


def lane_sums(rows: int = 8, local: int = 4, lanes: int = 4, stages: str = "stage(out, lanes)") -> str:
    """A block of 4 columns per invocation, with vectors along the reduction."""
    bind = f"{GROUP}, bind(n, local, {local})"
    return f"tile(m, {rows}), tile(n, 4), {bind}, vectorize(k, {lanes}), {stages}, guard(n, shift)"


def squares(
    depth: int = 16, local: int = 16, columns: int = 32, more: str = "", lanes: str = ", vectorize(n, 16)"
) -> str:
    """A block of transformed results of a convolution."""
    bind = f"{GROUP}, bind(m, local, {local})"
    return f"tile(m, 4), tile(n, {columns}), {bind}{lanes}, stage(out, winograd, {depth}), guard(m, clamp){more}"


def weighted(
    stage: str = "stage(out, rows, 24)", lanes: int = 16, tiles: str = "tile(k, 4), tile(m, 4), tile(n, 4)",
    vector: str = "vectorize(n, 4)", local: str = "", guards: str = "",
) -> str:  # fmt: skip
    """A block of rows of an attention."""
    shared = f"reduce(k, tree, {lanes}), " * (lanes > 1)
    return f"{tiles}, {GROUP}{local}, {vector}, {shared}{stage}{guards}"


def lines(rows: int = 4, channels: int = 8, results: int = 3, more: str = "") -> str:
    """A block of lines of results of a depthwise convolution."""
    bind = f"bind(b, local, {channels}), {GROUP}"
    return f"tile(b, {results}), {bind}{more}, stage(out, windows, {rows})"


#: body, its schedules, the message, and the target if it is not OpenCL
CASES: list[tuple[str, list[str], str] | tuple[str, list[str], str, str]] = [
    # kinds, dimensions, counts
    ("elements", ["library(elements, 64)"], "a body of kind elementwise has no library kernel"),
    ("scatter", [GRID], "a body of kind scatter is scheduled by #kernel.schedule<[library(scatter, 64)]> alone"),
    ("elements", [f"tile(m, 8), {GRID}"], "tile(m, 8): a body of kind elementwise has e there"),
    (
        "elements", [f"{GRID}, stage(lhs, shared, 8)"],
        "stage(lhs, shared, 8): a body of kind elementwise has nothing of that name there",
    ),
    ("elements", ["tile(e, 2)"], "the step bind(grid, ...) is missing"),
    ("dot", [f"tile(m, 0), {GRID}"], "tile(m, 0): the count is 1 or more"),
    ("rows", [f"{GROUP}, reduce(k, tree)"], "reduce(k, tree): the count is 1 or more"),
    ("dot", [f"{GROUP}, bind(m, local)"], "bind(m, local): the count is 1 or more"),
    (
        "rows", [f"bind(e, local, 16), {GROUP}"],
        "bind(e, local, 16): a body of kind rows has grid there",
    ),
    (
        "padded elements", [f"tile(e, 5), bind(e, local, 16), {GROUP}"],
        "invocations of a workgroup that take elements side by side compute one at a time",
    ),
    (
        "reduction", [f"bind(e, local, 8), {GROUP}"],
        "bind(e, local, 8): the results have no lines of one known shape",
    ),
    (
        "transposed elements", [f"bind(e, local, 8), {GROUP}, guard(e, clamp)"],
        "guard(e, clamp): a part of a line is moved back, if the line is as long and no result may replace an operand",
    ),
    (
        "transposed elements", [f"bind(e, local, 32), {GROUP}, guard(e, shift)"],
        "guard(e, shift): a part of a line is moved back, if the line is as long and no result may replace an operand",
    ),
    # results that read an operand across
    (
        "transposed elements", [f"tile(e, 2), tile(t, 4), {GRID}, guard(t, shift)"],
        "tile(t, 4): invocations compute results along t alone",
    ),
    ("transposed elements", [f"tile(t, 8), {GRID}"], "tiles of 8 by 32 exceed the 40 places along t and 24 columns"),
    (
        "transposed elements", ["tile(t, 16), bind(grid, invocation, 8)"],
        "tiles of 16 by 8 do not divide the 40 places along t and 24 columns: they need a guard",
    ),
    (
        "transposed elements", ["tile(t, 16), bind(grid, invocation, 8), guard(t, clamp)"],
        "guard(t, clamp): a tile is moved back, and only if no result may replace an operand",
    ),
    # sizes
    ("elements", [f"assume(e, 8..), {GRID}"], "assume(e, 8..): the extent of e is 60, not dynamic"),
    (
        "dynamic reduction", [f"specialize(k, ..0), {GRID}", GRID],
        "specialize(k, ..0): the extent of k is from 1 to 2147483647",
    ),
    ("dynamic dot", [f"specialize(k, ..4), specialize(m, ..4), {GRID}", GRID], "a schedule has one condition"),
    (
        "dot", [f"tile(m, 32), tile(n, 16), {GRID}, guard(m, clamp), guard(n, clamp)"],
        "an invocation computes 256 results at most",
    ),
    # workgroups
    (
        "elements", ["bind(grid, workgroup, 7)"],
        "bind(grid, workgroup, 7): the grid is bound to a workgroup, or to an invocation with the size of its "
        "workgroup",
    ),
    (
        "dot", [f"{TILE}, {GROUP}, bind(m, local, 3), guard(m, clamp)"],
        "bind(m, local, 3): a dimension is bound to local, with a power of two",
    ),
    (
        "dot", [f"{TILE}, {GRID}, bind(m, local, 4), guard(m, clamp)"],
        "invocations of a workgroup share work only if the grid is bound to a workgroup",
    ),
    ("elements", ["bind(grid, invocation, 256)"], "a workgroup of 256 invocations; it has from 1 to 128"),
    # reductions
    ("reduction", [f"{GROUP}, reduce(k, tree, 3)"], "reduce(k, tree, 3): k is shared by a power of two of invocations"),
    ("elements", [f"{GROUP}, reduce(e, tree, 8)"], "reduce(e, tree, 8): k is shared by a power of two of invocations"),
    ("reduction of nothing", [f"{GROUP}, reduce(k, tree, 8)"], "reduce(k, tree, 8): there is nothing to reduce"),
    ("reduction", [f"{GRID}, unroll(k, 128)"], "unroll(k, 128): k is unrolled by a power of two up to 64"),
    (
        "dot", [f"tile(m, 8), tile(n, 32), {GRID}, unroll(k, 64), guard(n, clamp)"],
        "unroll(k, 64): an iteration takes 16384 elements for all results, 4096 at most",
    ),
    ("rows", [f"{GRID}, unroll(k, 4)"], "unroll(k, 4): only loops of one invocation over memory or over "
     "slices in shared memory are unrolled"),
    (
        "dynamic rows", [GRID], "an invocation would reduce 120000 elements, loops of the machine take 32768 at most",
        "spirv",
    ),
    (
        "very long rows", [GRID],
        "loops of an invocation would take 182142 iterations, those of the machine take 62000 at most", "spirv",
    ),
    # elements in the order of memory
    ("elements", [f"{GRID}, guard(e, clamp)"], "guard(e, clamp): only a dot in tiles along m and n takes this step"),
    ("reduction", [f"tile(k, 4), {GRID}"], "a reduction is not tiled"),
    ("elements of two sizes", [f"tile(e, 2), {GRID}"], "results of several sizes are computed element by element"),
    (
        "reduction of two sizes", [f"{GROUP}, reduce(k, tree, 8)"],
        "a reduction is shared only if all results have its size",
    ),
    (
        "reduction of many", [f"tile(e, 64), {GROUP}, reduce(k, tree, 128)"],
        "parts of 64 results take 36864 bytes of shared memory; every device has 16384",
    ),
    (
        "elements", [f"tile(e, 4), {GRID}"],
        "tile(e, 4): the last dimension in memory has 10 elements, which is no multiple",
    ),
    # tiles of dots
    ("dot", [f"{TILE}, {GROUP}, reduce(k, tree, 8)"], "the reduction of a dot in tiles is not shared"),
    ("dot", [f"tile(k, 4), {TILE}, {GRID}"], "tile(k, 4): a dot is tiled along m and n, or along e alone"),
    (
        "dot", [f"{TILE}, reorder(m, m), {GRID}"],
        "reorder(m, m): rows may count faster than columns, reorder(n, m)",
    ),
    (
        "dot", [f"{TILE}, {GRID}, vectorize(n, 8)"],
        "vectorize(n, 8): vectors have 2, 4, 8, 16 lanes along n, which divide its tile",
    ),
    (
        "dot", [f"{TILE}, {GRID}, vectorize(n, 4)"], "vectorize(n, 4): the machine has vectors of 1 lanes", "spirv",
    ),
    (
        "dot", [staged(slices(4), more="vectorize(n, 2), ")],
        "vectorize(n, 2): products of staged operands are computed one by one",
    ),
    ("dot", [f"tile(m, 3), tile(n, 4), {GRID}"], "tiles of 3 do not divide m, of extent 8: it needs a guard"),
    (
        "dot", [f"tile(m, 16), tile(n, 4), {GRID}, guard(m, shift)"],
        "guard(m, shift): a tile is moved back only if the extent, 8, is a tile or more",
    ),
    (
        "dot", [f"{TILE}, {GRID}, guard(n, pad)"],
        "guard(n, pad): the operand does not lie in tiles that 4 divides",
    ),
    # staged operands
    (
        "dot", [staged("stage(lhs, shared, 4)")],
        "both operands are staged in shared memory, in slices of one depth",
    ),
    ("dot", [f"{TILE}, {GRID}, {slices(4)}"], "operands are staged by the invocations of a workgroup"),
    (
        "dot", [staged(slices(4), rows=3)],
        "slices of 4 by 12 and 8: powers of two up to the workgroup's 16",
    ),
    (
        "dot", [staged(slices(4)).replace("stage(lhs", "unroll(k, 8), stage(lhs")],
        "an iteration takes 8 places, which does not divide slices of 4",
    ),
    (
        "dot", [staged(slices(1))], "slices of 1 by 8 and 8 leave some of 16 invocations nothing to fetch",
    ),
    (
        "large dot of f64",
        [f"tile(m, 8), tile(n, 8), {GROUP}, bind(m, local, 8), bind(n, local, 8), {slices(64)}"],
        "slices take 67584 bytes of shared memory; every device has 16384",
    ),
    (
        "dot of dynamic length", [staged(slices(4))], "a reduction of d0 elements is not staged on this machine",
    ),
    ("outer product", [staged(slices(4))], "a dot that reduces nothing has no slices to stage"),
    # panels
    (
        "dot", [panels("stage(out, panel)")],
        "sums and operands are staged in panels, with a depth at stage(out, panel, ...) alone", "cpu",
    ),
    ("dot", [panels("stage(out, panel, 64)")], "stage(out, panel, 64): the machine has no memory for panels"),
    (
        "dot", [panels("stage(out, panel, 64)", "bind(grid, invocation, 4)")],
        "stage(out, panel, 64): the invocations of a workgroup share a block", "cpu",
    ),
    (
        "dot", [panels("stage(out, panel, 64)").replace(", vectorize(n, 4)", "")],
        "stage(out, panel, 64): results are computed in vectors along m or n", "cpu",
    ),
    (
        "dot", [panels("stage(out, panel, 64)", f"{GROUP}, bind(m, local, 16)").replace("tile(n, 4)", "tile(n, 12)")],
        "stage(out, panel, 64): 16 invocations take whole rows of 12 results", "cpu",
    ),
    (
        "dot", [panels("stage(out, panel, 64)", more=", guard(n, clamp)")],
        "stage(out, panel, 64): the last tile is moved back, padded, or clamped in a panel along the vectors, "
        "else clamped", "cpu",
    ),
    (
        "outer product", [panels("stage(out, panel, 64)")],
        "stage(out, panel, 64): the number of products is not 0", "cpu",
    ),
    (
        "dot of two axes", [panels("stage(out, panel, 2), stage(rhs, panel)")],
        "stage(out, panel, 2): a block of a sum of 15 products has more elements", "cpu",
    ),
    (
        "large dot of f64",
        [
            f"tile(m, 8), tile(n, 32), {GROUP}, bind(m, local, 128), vectorize(n, 8), stage(lhs, panel), "
            "stage(out, panel, 64)",
        ],
        "panels and sums take 526336 bytes; the machine has 327680", "cpu",
    ),
    (
        "dot", [panels("stage(out, stream, 24)")],
        "stage(out, stream, 24): passes add a power of two of products, 64 at most, along one axis, of operands in "
        "memory", "cpu",
    ),
    # sums in lanes
    (
        "dot", [lane_sums(stages="stage(out, lanes, 8)")],
        "stage(out, lanes, 8): a workgroup shares a block, with vectors along k, on machines with panels", "cpu",
    ),
    (
        "dot", [lane_sums(rows=4)],
        "stage(out, lanes): an invocation has all 8 places along m, and the last tile is moved back along n", "cpu",
    ),
    ("dot", [lane_sums(lanes=16, local=2)], "stage(out, lanes): vectors of 16 results divide a block of 8", "cpu"),
    (
        "dot", [lane_sums()],
        "stage(out, lanes): a known number of products, 4 or more, are neighbours in both operands", "cpu",
    ),
    # panels of words
    ("dot of bytes", [panels("stage(out, bytes, 64)")], "stage(out, bytes, 64): the machine has no products of bytes"),
    (
        "dot of bytes", [panels("stage(out, bytes, 64), stage(rhs, panel)")],
        "stage(out, bytes, 64): the invocations of a workgroup share a block, with a depth at this step alone", "cpu",
    ),
    (
        "dot of bytes", [panels("stage(out, bytes, 64)").replace(", vectorize(n, 4)", "")],
        "stage(out, bytes, 64): 4 invocations take whole rows of 4 results, in vectors of 4 lanes or more along n",
        "cpu",
    ),
    (
        "dot of bytes", [panels("stage(out, bytes, 64)", more=", guard(n, clamp)")],
        "stage(out, bytes, 64): the last tile is moved back along n, and clamped along m", "cpu",
    ),
    (
        "dot", [panels("stage(out, bytes, 64)")],
        "stage(out, bytes, 64): only products of bytes, the right ones signed, are summed in words", "cpu",
    ),
    (
        "outer product", [panels("stage(out, bytes, 64)")],
        "stage(out, bytes, 64): only a known number of products is summed in words", "cpu",
    ),
    ("dot", [panels("stage(out, pairs, 64)")], "stage(out, pairs, 64): the machine has no products of pairs"),
    (
        "dot", [panels("stage(out, pairs, 64)")],
        "stage(out, pairs, 64): only products of bf16 are summed in pairs, of an even number along the innermost axis",
        "cpu",
    ),
    (
        "dot of bf16",
        [panels("stage(out, pairs, 64)", f"{GROUP}, bind(n, local, 1)").replace("tile(m, 4)", "tile(m, 1)")],
        "stage(out, pairs, 64): vectors of 1 places and 1 rows of a tile are searched for exponents", "cpu",
    ),
    (
        "dot of bf16 along two axes", [panels("stage(out, pairs, 2)")],
        "stage(out, pairs, 2): a block of a sum of 48 products has more elements", "cpu",
    ),
    (
        "large dot of bf16",
        [f"tile(m, 8), tile(n, 32), {GROUP}, bind(m, local, 16), bind(n, local, 4), vectorize(n, 16), "
         "stage(out, pairs, 2048)"],
        "panels and sums take 2101248 bytes; the machine has 327680", "cpu",
    ),
    # squares of results
    (
        "convolution", [squares(local=8)], "stage(out, winograd, 16): 16 invocations of a workgroup share rows", "cpu",
    ),
    (
        "convolution", [squares(columns=24, more=", guard(n, shift)", lanes=", vectorize(n, 8)")],
        "stage(out, winograd, 16): vectors lie along n, and 16 divides its tile", "cpu",
    ),
    (
        "convolution", [squares().replace("guard(m, clamp)", "guard(m, shift)")],
        "stage(out, winograd, 16): the last tile is moved back along n, and clamped along m", "cpu",
    ),
    (
        "dot", [squares(columns=16)],
        "stage(out, winograd, 16): only convolutions of floats by windows of 3 x 3, side by side, have factors", "cpu",
    ),
    (
        "convolution", [squares(24)], "stage(out, winograd, 24): slices of a multiple of 16 channels divide 32", "cpu",
    ),
    (
        "convolution", [squares().replace("tile(m, 4)", "tile(m, 8)")],
        "factors and sums take 134208 bytes; the machine has 0",
    ),
    # rows of an attention
    (
        "attention", [weighted(lanes=1)],
        "the invocations of a workgroup share rows, by reduce(k, tree, ...) and stage(out, rows, ...)", "cpu",
    ),
    (
        "attention", [weighted(tiles="tile(b, 2), tile(k, 4), tile(m, 4), tile(n, 4)")],
        "stage(out, rows, 24): tiles lie along k, m and n", "cpu",
    ),
    (
        "attention", [weighted(tiles="tile(k, 4), tile(m, 4), tile(n, 8)")],
        "tiles of 8 do not divide n, of extent 12: it needs a guard", "cpu",
    ),
    (
        "attention", [weighted(guards=", guard(m, shift)")],
        "guard(m, shift): the last tile is clamped along m, and moved back along k and n", "cpu",
    ),
    (
        "attention", [weighted(tiles="tile(k, 32), tile(m, 4), tile(n, 4)", guards=", guard(k, shift)")],
        "guard(k, shift): a tile is moved back only if the extent, 24, is a tile or more", "cpu",
    ),
    (
        "attention", [weighted(vector="vectorize(n, 8)")],
        "stage(out, rows, 24): vectors of up to 16 lanes lie along n, in tiles of one or more", "cpu",
    ),
    (
        "attention", [weighted(local=", bind(k, local, 2), bind(m, local, 16)", guards=", guard(m, clamp)")],
        "stage(out, rows, 24): 16 invocations take 32 tiles, and whole rows of 8 results along k", "cpu",
    ),
    (
        "attention of two types", [weighted()],
        "stage(out, rows, 24): scores, weights and results are floats of one type", "cpu",
    ),
    (
        "attention of long rows", [weighted("stage(out, rows, 128)", local=", bind(m, local, 4)")],
        "scores and panels take 322560 bytes; the machine has 212992", "cpu",
    ),
    # lines of results
    (
        "depthwise convolution", [lines(more=", vectorize(n, 8)")],
        "stage(out, windows, 4): a workgroup takes channels of a block, bind(b, local, ...), and results of a line, "
        "tile(b, ...)", "cpu",
    ),
    (
        "convolution", [lines()],
        "stage(out, windows, 4): only depthwise convolutions with windows along two axes have lines", "cpu",
    ),
    (
        "depthwise convolution", [lines(9)],
        "stage(out, windows, 9): the results have 8 rows and 9 columns", "cpu",
    ),
    (
        "depthwise convolution", [lines(channels=16)],
        "stage(out, windows, 4): 16 channels of a workgroup divide 24", "cpu",
    ),
    ("depthwise convolution", [lines()], "rows take 1056 bytes; the machine has 0"),
    # rows
    ("rows", [f"tile(m, 4), {GRID}"], "tile(m, 4): rows are not tiled"),
    ("rows", [f"{GROUP}, reduce(k, tree, 8), stage(k, shared)"], "stage(k, shared): rows stay in registers"),
    (
        "rows that may be empty", [f"{GROUP}, reduce(k, tree, 8), stage(k, register)"],
        "stage(k, register): rows may be empty",
    ),
    (
        "long rows", [f"{GROUP}, reduce(k, tree, 8), stage(k, register)"],
        "stage(k, register): an invocation would hold 375 elements of a row, more than 64",
    ),
    (
        "rows with many reductions", [f"{GROUP}, reduce(k, tree, 128)"],
        "rows take 17280 bytes of shared memory; every device has 16384",
    ),
    # several schedules
    (
        "dynamic reduction", [GRID, GRID],
        f"#kernel.schedule<[{GRID}]> has no condition, and stands in front of others",
    ),
    (
        "dynamic reduction", [f"specialize(k, ..8), {GRID}"],
        f"#kernel.schedule<[specialize(k, ..8), {GRID}]> is for all other dispatches, and has a condition",
    ),
    (
        "dynamic reduction", [f"assume(k, 8..), {GRID}"],
        f"assume(k, 8..): smaller dispatches take #kernel.schedule<[assume(k, 8..), {GRID}]>, too",
    ),
]  # fmt: skip

#: an attribute that is no schedule, and the message
NO_SCHEDULES = [
    (StringAttr("tile(m, 8)"), '"tile(m, 8)" is not a #kernel.schedule<[...]>'),
    (
        DialectAttr(ATTRIBUTE, "tile(m, 8)"),
        "#kernel.schedule<tile(m, 8)> is not a list of steps such as tile(m, 8)",
    ),
    (
        DialectAttr(ATTRIBUTE, f"[{GRID}, tile(e, 2)]"),
        f"the steps of #kernel.schedule<[{GRID}, tile(e, 2)]> do not stand in the order library, specialize, assume, "
        "tile, reorder, bind, vectorize, unroll, reduce, stage, guard, by dimension",
    ),
    (
        DialectAttr(ATTRIBUTE, "[tile(n, 2), tile(m, 2)]"),
        "the steps of #kernel.schedule<[tile(n, 2), tile(m, 2)]> do not stand in the order library, specialize, "
        "assume, tile, reorder, bind, vectorize, unroll, reduce, stage, guard, by dimension",
    ),
    (
        DialectAttr(ATTRIBUTE, "[tile(m, 2), tile(m, 4)]"),
        "#kernel.schedule<[tile(m, 2), tile(m, 4)]> has tile(m) twice",
    ),
    (
        DialectAttr(ATTRIBUTE, "[split(m, 2)]"),
        "no step is called split; steps are library, specialize, assume, tile, reorder, bind, vectorize, unroll, "
        "reduce, stage, guard",
    ),
    (DialectAttr(ATTRIBUTE, "[tile(m)]"), "tile(m) is not of the form tile(d, n)"),
    (
        DialectAttr(ATTRIBUTE, "[guard(m, mask)]"),
        "guard(m, mask): mask is none of shift, clamp, pad",
    ),
    (
        DialectAttr(ATTRIBUTE, "[bind(grid, workgroup, 0)]"),
        "bind(grid, workgroup, 0) is not of the form bind(grid, workgroup)",
    ),
]  # fmt: skip


def schedule(text: str) -> Schedule:
    return parse(DialectAttr(ATTRIBUTE, f"[{text}]"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[2]}")
def test_a_schedule_that_does_not_fit_is_refused_with_the_reason(
    case: tuple[str, list[str], str] | tuple[str, list[str], str, str],
) -> None:
    body, texts, message, *target = case
    said = Judge().refusals(BODIES[body](), list(map(schedule, texts)), target[0] if target else "opencl", "cpu")
    assert message in [one.split(" does not fit: ")[-1] for one in said]


@pytest.mark.parametrize(("attribute", "message"), NO_SCHEDULES, ids=lambda part: str(part)[:50])
def test_a_text_that_is_no_schedule_is_refused_with_the_reason(
    attribute: DialectAttr | StringAttr, message: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse(attribute)
    assert str(caught.value) == message


def test_every_reason_has_a_case() -> None:
    messages = [case[2] for case in CASES] + [message for _, message in NO_SCHEDULES]
    assert {reason_of(message) for message in messages} == set(reasons())


@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("lanes", [2, 16, 32, 128])
def test_the_shared_memory_of_rows_is_what_their_kernel_takes(lanes: int, in_registers: bool) -> None:
    stage = ", stage(k, register)" if in_registers else ""
    module = module_of(many_reductions(3, 100), [schedule(f"{GROUP}, reduce(k, tree, {lanes}){stage}")])
    entry = entry_of(module)
    body = Body.of_entry(entry)
    kept = shared_row_bytes(body.rows, lanes) - parts_bytes(body.ops, lanes)
    lower_entry(entry, PLAIN)
    counted = parts_bytes(body.ops, lanes) + (0 if in_registers else kept)
    assert signature_of(entry).shared_bytes == counted


def test_a_schedule_has_one_text() -> None:
    steps = [Step("tile", "n", count=2), Step("bind", "grid", "invocation", 32), Step("tile", "m", count=4)]
    assert Schedule.of(*steps) == Schedule.of(*reversed(steps)) == schedule(f"tile(m, 4), tile(n, 2), {GRID}")
