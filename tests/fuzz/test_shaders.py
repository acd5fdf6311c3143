"""The SPIR-V checker is sound: what it accepts breaks no promise when it runs with hostile values.

Shaders are grown from seeds, so a finding names one: `python tests/fuzz/shader_run.py --seed=n --count=1` shrinks it.
Each seeded bug is a checker with one fault, which the same search must find within 10,000 shaders.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
import shader_proposals
from everyday import is_everyday, of_the_day
from random_shaders import Grower, generate
from shader_rules import RULES
from shader_trials import kind_of, shrink, trial, trials
from shader_words import ModuleWords
from spirv_program import _READERS
from spirv_values import MEANINGS, meaning

from orchestrion.hal.vulkan import spirv_check, spirv_flow, spirv_harden, spirv_rules, spirv_uniform
from orchestrion.schema.spirv import EXT_BY_CODE, EXT_INSTS, OPS, STORAGE_CLASSES, ExtInst, Op

COUNT = int(os.environ.get("ORCHESTRION_SHADERS", "4000"))
#: shaders in which a seeded bug must be found
LIMIT = 10_000
ROWS: tuple[Op | ExtInst, ...] = (*OPS, *EXT_INSTS)
WORKGROUP = STORAGE_CLASSES["Workgroup"]


def test_every_row_is_grown_and_interpreted() -> None:
    names = {row.rule for row in OPS} | {row.rule for row in EXT_INSTS}
    assert names == set(RULES)
    methods = [rule for rule in RULES.values() if isinstance(rule, str)]
    assert all(hasattr(Grower, method) or hasattr(ModuleWords, method) for method in methods)
    known = {row.name for row in OPS if row.code in _READERS} | set(MEANINGS)
    assert {row.name for row in ROWS} <= known


def test_accepted_shaders_keep_every_promise(pytestconfig: pytest.Config) -> None:
    """And they hold every row of the subset, every kind of access, construct and barrier."""
    report, least = trials(of_the_day(pytestconfig, range(COUNT), 3)), 1 if is_everyday(pytestconfig) else 3
    assert not report.findings
    assert 0.5 < report.accepted / report.proposed < 0.9
    rows = {row.name for row in ROWS}
    assert not {name for name in rows if report.uses[name] < least}
    forms = {name for name in report.uses if name not in rows}
    assert len(forms) > 20 and {"loop: divergent", "loop: uniform", "barrier: 2 deep", "index: clamp again"} <= forms


@pytest.mark.long
def test_every_proposal_is_made_and_refused() -> None:
    """Each is refused where it stands alone, but for values that a right clamp or a uniform value happened to make."""
    report = trials(range(COUNT, 2 * COUNT))
    tables = (shader_proposals.INDICES, shader_proposals.LEAVES, shader_proposals.EXITS, shader_proposals.STATEMENTS)
    for name in (name for table in tables for name in table):
        assert report.refused[name] >= 3 and report.refused[name] > 3 * report.passed[name], name


def test_a_seed_gives_the_same_shader() -> None:
    assert [generate(seed) for seed in range(50)] == [generate(seed) for seed in range(50)]


#: instruction, its types, its operands, what it gives: None where the specification leaves it open
VALUES: tuple[tuple[str, str, tuple[str, ...], tuple[Any, ...], Any], ...] = (
    ("OpUDiv", "u32", ("u32", "u32"), (7, 0), None),
    ("OpUMod", "u32", ("u32", "u32"), (7, 0), None),
    ("OpUDiv", "u8", ("u8", "u8"), (200, 7), 28),
    ("OpSDiv", "u32", ("u32", "u32"), (0xFFFFFFF9, 2), 0xFFFFFFFD),
    ("OpSDiv", "u32", ("u32", "u32"), (0x80000000, 0xFFFFFFFF), None),
    ("OpSDiv", "u32", ("u32", "u32"), (5, 0), None),
    ("OpIAdd", "u8", ("u8", "u8"), (255, 2), 1),
    ("OpISub", "u32", ("u32", "u32"), (0, 1), 0xFFFFFFFF),
    ("OpIMul", "u64", ("u64", "u64"), (1 << 63, 2), 0),
    ("OpShiftLeftLogical", "u32", ("u32", "u32"), (3, 31), 0x80000000),
    ("OpShiftLeftLogical", "u32", ("u32", "u32"), (3, 32), None),
    ("OpShiftRightArithmetic", "u16", ("u16", "u16"), (0x8000, 15), 0xFFFF),
    ("OpShiftRightLogical", "u8", ("u8", "u64"), (255, 8), None),
    ("OpSConvert", "u64", ("u8",), (0x80,), (1 << 64) - 128),
    ("OpUConvert", "u8", ("u32",), (0x1FF,), 0xFF),
    ("OpConvertFToU", "u32", ("f32",), (float("nan"),), None),
    ("OpConvertFToU", "u32", ("f32",), (4294967296.0,), None),
    ("OpConvertFToU", "u32", ("f32",), (-0.5,), 0),
    ("OpConvertFToS", "u8", ("f32",), (-128.9,), 128),
    ("OpConvertFToS", "u8", ("f32",), (128.0,), None),
    ("OpConvertUToF", "f32", ("u32",), (0xFFFFFFFF,), 4294967296.0),
    ("OpConvertUToF", "f32", ("u64",), ((1 << 63) + (1 << 39) + 1,), float((1 << 63) + (1 << 40))),
    ("OpConvertSToF", "f32", ("u32",), (0xFFFFFFFF,), -1.0),
    ("OpFAdd", "f32", ("f32", "f32"), (16777216.0, 1.0), 16777216.0),
    ("OpFMul", "f32", ("f32", "f32"), (1e30, 1e30), float("inf")),
    ("OpFDiv", "f32", ("f32", "f32"), (1.0, 0.0), None),
    ("RoundEven", "f32", ("f32",), (2.5,), 2.0),
    ("OpBitcast", "u32", ("f32",), (1.0,), 0x3F800000),
    ("OpBitcast", "u32", ("f32",), (float("nan"),), None),
    ("UMin", "u32", ("u32", "u32"), (0xFFFFFFFF, 3), 3),
    ("SMin", "u32", ("u32", "u32"), (0xFFFFFFFF, 3), 0xFFFFFFFF),
    ("OpULessThan", "bool", ("u32", "u32"), (1, 0x80000000), True),
    ("OpSLessThan", "bool", ("u32", "u32"), (1, 0x80000000), False),
    ("OpFUnordNotEqual", "bool", ("f32", "f32"), (float("nan"), 1.0), True),
    ("OpFOrdEqual", "bool", ("f32", "f32"), (float("nan"), float("nan")), False),
)


@pytest.mark.parametrize(("name", "result", "types", "operands", "wanted"), VALUES)
def test_values(name: str, result: str, types: tuple[str, ...], operands: tuple[Any, ...], wanted: Any) -> None:
    function = meaning(name, result, *types)
    assert function is not None and function(*operands) == wanted


def test_types_must_agree() -> None:
    for name, result, types in (
        ("OpIAdd", "u32", ("u32", "u64")),
        ("OpFAdd", "u32", ("u32", "u32")),
        ("OpULessThan", "u32", ("u32", "u32")),
        ("OpBitcast", "u32", ("f64",)),
        ("OpUConvert", "u32", ("u32",)),
        ("OpSelect", "u32", ("u32", "u32", "u32")),
    ):
        assert meaning(name, result, *types) is None, name


# seeded bugs


def _any_index(scope: Any, variable: Any, indices: Any) -> Any:
    """Demands no clamp."""
    return variable.content.element


def _bounded(scope: Any, variable: Any, indices: Any, most: int, widths: tuple[int, ...] = (32,)) -> Any:
    spirv_rules._count(scope, indices, 1)
    (index,) = indices
    bound = scope.clamped.get(index, scope.constants.get(index))
    if bound is None or bound > most or scope.values[index].width not in widths:
        scope.refuse("index")
    return variable.content.element


def no_clamp(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(spirv_rules._REACHES, WORKGROUP, _any_index)


def length_for_length_minus_one(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(
        spirv_rules._REACHES,
        WORKGROUP,
        lambda scope, variable, indices: _bounded(scope, variable, indices, variable.content.length),
    )


def signed_minimum(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(EXT_BY_CODE, 39, ExtInst(39, "SMin", 2, "clamp"))


def maximum_for_minimum(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(EXT_BY_CODE, 41, ExtInst(41, "UMax", 2, "clamp"))


def step_behind_the_clamp(patch: pytest.MonkeyPatch) -> None:
    """Arithmetic keeps the bound of an operand."""
    _keeps_bounds(patch, "int", max)


def _keeps_bounds(patch: pytest.MonkeyPatch, name: str, choose: Callable[..., int]) -> None:
    right = spirv_rules.VALUE_RULES[name]

    def rule(scope: Any, op: Any, type: Any, id: int, operands: Any) -> None:
        right(scope, op, type, id, operands)
        bounds = [scope.clamped[operand] for operand in operands if operand in scope.clamped]
        if bounds:
            scope.clamped[id] = choose(bounds)

    patch.setitem(spirv_rules.VALUE_RULES, name, rule)


def quotient_of_a_constant(patch: pytest.MonkeyPatch) -> None:
    """A quotient is no larger than its dividend."""
    right = spirv_rules.VALUE_RULES["int"]

    def rule(scope: Any, op: Any, type: Any, id: int, operands: Any) -> None:
        right(scope, op, type, id, operands)
        if op.name == "OpUDiv" and operands[0] in scope.constants:
            scope.clamped[id] = scope.constants[operands[0]]

    patch.setitem(spirv_rules.VALUE_RULES, "int", rule)


def select_of_a_clamp(patch: pytest.MonkeyPatch) -> None:
    _keeps_bounds(patch, "select", min)


def narrow_index(patch: pytest.MonkeyPatch) -> None:
    """A clamp of 8 or 16 bits bounds an index, too."""
    right = spirv_rules.VALUE_RULES["clamp"]

    def rule(scope: Any, op: Any, type: Any, id: int, operands: Any) -> None:
        right(scope, op, type, id, operands)
        bounds = [scope.constants[operand] for operand in operands if operand in scope.constants]
        if bounds:
            scope.clamped[id] = min(bounds)

    patch.setitem(spirv_rules.VALUE_RULES, "clamp", rule)
    patch.setitem(
        spirv_rules._REACHES,
        WORKGROUP,
        lambda scope, variable, indices: _bounded(scope, variable, indices, variable.content.length - 1, (8, 16, 32)),
    )


def barrier_anywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spirv_check, "check_barriers", lambda *given: None)


def phi_without_its_condition(patch: pytest.MonkeyPatch) -> None:
    """A phi of uniform values is uniform, whatever chooses among them."""
    right = spirv_uniform.spread

    def spread(uses: Any, divergent: Any) -> Any:
        uses = list(uses)
        return right(
            [(result, operands[:2] if len(operands) == 3 else operands) for result, operands in uses], divergent
        )

    patch.setattr(spirv_uniform, "spread", spread)


def loads_are_uniform(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spirv_uniform, "spread", lambda uses, divergent: set())


def values_of_other_arms(patch: pytest.MonkeyPatch) -> None:
    """A value is visible behind the arm that makes it."""
    patch.setattr(spirv_flow.Flow, "visible", lambda flow, value: True)


def store_to_what_is_read(patch: pytest.MonkeyPatch) -> None:
    def store(scope: Any, op: Any, operands: Any) -> None:
        """Asks for nothing."""

    patch.setitem(spirv_rules.ACTION_RULES, "store", store)


def parameter_beyond(patch: pytest.MonkeyPatch) -> None:
    """A member that the block has, or any other, is a u32."""
    patch.setitem(
        spirv_rules._REACHES,
        STORAGE_CLASSES["PushConstant"],
        lambda scope, variable, indices: variable.content.members[0],
    )


def no_buffer_clamp(patch: pytest.MonkeyPatch) -> None:
    """The loader leaves indices into buffers as they are."""
    patch.setattr(spirv_harden._Module, "clamp_buffers", lambda module: None)


def buffer_length_for_last_index(patch: pytest.MonkeyPatch) -> None:
    """The loader clamps to the length of the binding."""

    def last_index(module: Any, function: Any, variable: int, width: int, last: Any) -> Any:
        length = made = module._new()
        function.first.append([spirv_harden.ARRAY_LENGTH, module._u32(), length, variable, 0])
        if width == 64:
            made = module._new()
            function.first.append([113, module._type("OpTypeInt", 64, 0), made, length])
        return made

    patch.setattr(spirv_harden._Module, "_last_index", last_index)


def narrow_buffer_clamp(patch: pytest.MonkeyPatch) -> None:
    """The loader leaves indices of 64 bits as they are."""
    right = spirv_harden._Module._clamped

    def clamped(module: Any, function: Any, body: Any, row: Any, width: int, last: Any) -> Any:
        return row if width == 64 else right(module, function, body, row, width, last)

    patch.setattr(spirv_harden._Module, "_clamped", clamped)


def no_clearing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spirv_harden._Module, "clear_shared", lambda module: None)


def no_null_initializers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spirv_harden._Module, "initialize_shared", lambda module: None)


def clearing_without_its_barrier(patch: pytest.MonkeyPatch) -> None:
    right = spirv_harden._Module._clear

    def clear(module: Any, function: Any, arrays: Any) -> None:
        right(module, function, arrays)
        function.first.clear()

    patch.setattr(spirv_harden._Module, "_clear", clear)


#: bug -> the kinds of findings that show it
BUGS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], set[str]], ...] = (
    (no_clamp, {"access"}),
    (length_for_length_minus_one, {"access"}),
    (signed_minimum, {"access"}),
    (maximum_for_minimum, {"access"}),
    (step_behind_the_clamp, {"access"}),
    (quotient_of_a_constant, {"access"}),
    (select_of_a_clamp, {"access"}),
    (narrow_index, {"access"}),
    (barrier_anywhere, {"barrier"}),
    (phi_without_its_condition, {"barrier"}),
    (loads_are_uniform, {"barrier"}),
    (values_of_other_arms, {"undefined value"}),
    (store_to_what_is_read, {"access", "type"}),
    (parameter_beyond, {"access"}),
    (no_buffer_clamp, {"access"}),
    (buffer_length_for_last_index, {"access"}),
    (narrow_buffer_clamp, {"access"}),
    (no_clearing, {"uninitialised"}),
    (no_null_initializers, {"uninitialised"}),
    (clearing_without_its_barrier, {"uninitialised"}),
)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("bug", "kinds"), BUGS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_seeded_bug_is_found(
    bug: Callable[[pytest.MonkeyPatch], None], kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    for seed in range(LIMIT):
        made = trial(seed)
        if made.finding.partition(":")[0] in kinds:
            break
    else:
        pytest.fail(f"not found in {LIMIT} shaders")
    shrunk = shrink(made.shader, seed)
    assert kind_of(shrunk, seed) == kind_of(made.shader, seed) in kinds
    assert len(shrunk.payload) < len(made.shader.payload)
