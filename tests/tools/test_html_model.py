"""The analysis of `vm-dump --html`: commands, edges, loops, and the lifetime of values."""

from pathlib import Path

import pytest

from orchestrion import compiler
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.writer import write
from orchestrion.tools.html.model import FunctionView, ModuleView, ProgramView, module_view

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parents[1] / "golden"


def view(source: Path | str, target: str = "reference") -> ModuleView:
    return module_view(read_module(compiler.compile(source, targets=[target])), "test")


def function(found: ModuleView, name: str) -> tuple[ProgramView, FunctionView]:
    (program,) = found.programs
    return program, next(row for row in program.functions if row.name == name)


@pytest.fixture(scope="module")
def mlp() -> ModuleView:
    return view(EXAMPLES / "mlp.mlir")


@pytest.fixture(scope="module", params=["reference", "cpu", "spirv_least"])
def norm(request: pytest.FixtureRequest) -> ModuleView:
    """The loop and the branch are in one recording, or for `spirv_least` between recordings."""
    if request.param == "cpu":
        pytest.importorskip("llvmlite")
    return view(EXAMPLES / "spectral_norm.mlir", request.param)


@pytest.fixture(scope="module", params=["reference", "cpu", "opencl"])
def branch(request: pytest.FixtureRequest) -> ModuleView:
    """The branch is in a recording, or for `opencl` between recordings."""
    if request.param == "cpu":
        pytest.importorskip("llvmlite")
    return view(EXAMPLES / "spectral_norm.mlir", request.param)


def recorded(found: ModuleView) -> bool:
    (program,) = found.programs
    return program.profile != "spirv_least"


def test_each_dispatch_has_its_ops_line_workload_and_tensors(mlp: ModuleView) -> None:
    _, main = function(mlp, "main")
    assert [node.kind for node in main.nodes] == ["arguments", *["dispatch"] * 4, "results"]
    first = main.nodes[1]
    assert first.ops[0] == "stablehlo.dot_general" and "stablehlo.tanh" in first.ops
    assert "mlp.py:33" in first.location
    assert first.workload == [512, 1, 1]
    assert [binding.type for binding in first.bindings][-1] == "tensor<8x64xf32>"
    assert [binding.access for binding in first.bindings] == ["read", "read", "read", "write"]
    assert [binding.length for binding in first.bindings] == [1024, 8192, 256, 2048]


def test_edges_lead_from_who_wrote_to_who_reads(mlp: ModuleView) -> None:
    _, main = function(mlp, "main")
    assert [edge[:3] for edge in main.edges] == [[0, 1, 0], [1, 2, 0], [2, 3, 0], [3, 4, 0], [4, 5, 0]]


def test_values_lie_in_the_arena_while_they_are_needed(mlp: ModuleView) -> None:
    program, main = function(mlp, "main")
    found = [(row.offset, row.length, row.spans) for row in main.ranges]
    assert found == [(0, 2048, [(1, 2)]), (2048, 2048, [(2, 3)])]
    (arena,) = {row.buffer for row in main.ranges}
    assert (program.buffers[arena].kind, program.buffers[arena].size) == ("allocation", 4096)


def test_loops_and_branches_are_followed(norm: ModuleView) -> None:
    _, main = function(norm, "spectral_norm")
    kinds = [node.kind for node in main.nodes]
    assert kinds.count("read") == 2, "a predicate for the branch and one for the loop"
    assert len({node.block for node in main.nodes}) == 7
    ((first, last),) = main.loops
    kinds = [node.kind for node in main.nodes[first : last + 1]]
    if recorded(norm):  # which evaluates the predicate of the next iteration last, and copies the state
        assert kinds == ["read", "dispatch", "dispatch", "dispatch", "copy", "dispatch"]
    else:
        assert kinds == ["dispatch", "read", "dispatch", "dispatch", "dispatch"]


def test_what_a_turn_reads_of_the_turn_before_is_an_edge_back(norm: ModuleView) -> None:
    program, main = function(norm, "spectral_norm")
    ((first, last),) = main.loops
    back = [(writer, reader) for writer, reader, carried, _ in main.edges if carried]
    assert back and all(first <= reader <= writer <= last for writer, reader in back)
    if recorded(norm):
        (copy,) = (at for at in range(first, last) if main.nodes[at].kind == "copy")
        target, state = (binding.buffers for binding in reversed(main.nodes[copy].bindings))
        names = [program.buffers[row].name for row in (*(target or ()), *(state or ()))]
        assert names == ["arena 2", "arena 3"], "no global keeps them, so the page numbers them"
        assert [edge[1:] for edge in main.edges if edge[0] == copy and edge[2]] == [[first + 2, 1, target]]
        assert [edge[2:] for edge in main.edges if edge[1] == copy] == [[0, state]], "it reads the next state"
        assert (last, first) in back, "the predicate"
    else:
        states = {program.buffers[row].name for edge in main.edges if edge[2] for row in edge[3]}
        assert {"spectral_norm_state", "spectral_norm_state_1"} <= states, "the states of the loop swap"


def test_both_ways_of_a_branch_lead_to_who_reads_behind_it(branch: ModuleView) -> None:
    _, main = function(branch, "spectral_norm")
    copy = next(at for at, node in enumerate(main.nodes) if node.kind == "copy")
    other = next(at for at, node in enumerate(main.nodes) if node.block == 2)
    readers = {reader for writer, reader, _, _ in main.edges if writer in (copy, other)}
    assert len(readers) == 1 and all([copy, reader] in [edge[:2] for edge in main.edges] for reader in readers)


DOT = "stablehlo.dot_general {}, %w, contracting_dims = [1] x [0] : ({}, {}) -> {}"


def dynamic(width: int) -> str:
    """Three products of an `?xW` matrix with a `WxW` matrix."""
    rows, square = f"tensor<?x{width}xf32>", f"tensor<{width}x{width}xf32>"
    first, second, third = (DOT.format(name, rows, square, rows) for name in ("%x", "%h", "%y"))
    return f"""
func.func @main(%x: {rows}, %w: {square}) -> {rows} {{
  %h = {first}
  %y = {second}
  %z = {third}
  return %z : {rows}
}}
"""


def test_dynamic_sizes_are_expressions() -> None:
    program, main = function(view(dynamic(16)), "main")
    (size,) = program.sizes
    arena = next(buffer for buffer in program.buffers if buffer.kind == "allocation")
    assert isinstance(arena.size, dict)
    assert program.values[arena.size["e"]] == 2 * 16 * 16 * 4, "two rows of values for 16 rows of 16 floats"
    assert program.expressions[0] == ["size", size]
    assert [row[:3] for row in main.edges if row[0] == 1] == [[1, 2, 0]]
    assert [type(row.length) for row in main.ranges] == [dict, dict]


def test_entries_for_small_sizes_are_chosen_by_the_size() -> None:
    program, main = function(view(dynamic(256), "spirv"), "main")
    node = main.nodes[1]
    assert isinstance(node.entry, dict)
    operation, condition, few, many = program.expressions[node.entry["e"]]
    assert operation == "select" and few != many
    (ordinal,) = node.executables
    entries = [row.name for row in program.executables[ordinal].entries]
    assert entries[few].startswith(entries[many])


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.fb")), ids=lambda path: path.stem)
def test_modules_of_all_kinds_are_shown(path: Path) -> None:
    """Control flow, lists, dynamic sizes, library calls, imports, parameters."""
    found = module_view(read_module(path.read_bytes()), path.name)
    assert found.programs
    for program in found.programs:
        for row in program.functions:
            assert all(0 <= end < len(row.nodes) for edge in row.edges for end in edge[:2])
            assert all(0 <= a <= b < len(row.nodes) for one in row.ranges for a, b in one.spans)


def test_many_branches_cost_no_more_than_their_number() -> None:
    """An untrusted function with 2,000 blocks, each of which may branch to any of 200."""
    table = ", ".join(f"^b{to}" for to in range(200))
    blocks = "\n".join(f"  ^b{at}:\n    br_table %i0, ^b{(at + 1) % 2000}, [{table}]" for at in range(2000))
    text = f"""producer "x"
program @p profile "reference" {{
  func @main () -> () {{
    br ^b0
{blocks}
  }}
}}
"""
    view = module_view(read_module(write(assemble(text))), "x")
    assert view.programs[0].functions == []
