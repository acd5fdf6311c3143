"""What makes an instruction of each row of the SPIR-V subset, for `random_shaders`: RULES by the row's rule.

A row whose rule has an entry is grown at once; a rule without an entry fails a test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shader_words import BITS

from orchestrion.schema.spirv import EXT_INSTS, OPS, ExtInst, Op

if TYPE_CHECKING:
    from random_shaders import Grower

Rule = Callable[["Grower", Any], None]


def _count(row: Op | ExtInst) -> int:
    return row.operands if isinstance(row, ExtInst) else row.layout.count("v")


def _ints(grower: Grower, row: Any) -> None:
    kind = grower.pick(grower.kinds)
    grower.apply(row, kind, tuple(grower.value(kind) for _ in range(_count(row))))


def _floats(grower: Grower, row: Any) -> None:
    if grower.floats:
        kind = grower.pick(grower.floats)
        grower.apply(row, kind, tuple(grower.value(kind) for _ in range(_count(row))))


def _bools(grower: Grower, row: Any) -> None:
    grower.apply(row, "bool", tuple(grower.value("bool") for _ in range(_count(row))))


def _shifts(grower: Grower, row: Any) -> None:
    kind = grower.pick(grower.kinds)
    grower.apply(row, kind, (grower.value(kind), grower.value(kind)))


def _selects(grower: Grower, row: Any) -> None:
    kind = grower.pick(grower.kinds + grower.floats)
    grower.apply(row, kind, (grower.value("bool"), grower.value(kind), grower.value(kind)))


def _compares(floats: bool) -> Rule:
    def rule(grower: Grower, row: Any) -> None:
        kinds = grower.floats if floats else grower.kinds
        if kinds:
            kind = grower.pick(kinds)
            grower.apply(row, "bool", tuple(grower.value(kind) for _ in range(_count(row))))

    return rule


def _converts(sources: str, targets: str, resize: bool) -> Rule:
    """From "int" or "float" to one of them; a `resize` changes the width."""

    def rule(grower: Grower, row: Any) -> None:
        kinds = {"int": grower.kinds, "float": grower.floats}
        if kinds[sources] and kinds[targets]:
            source, target = grower.pick(kinds[sources]), grower.pick(kinds[targets])
            if not resize or BITS[source] != BITS[target]:
                grower.apply(row, target, (grower.value(source),))

    return rule


def _bitcasts(grower: Grower, row: Any) -> None:
    """Between integers and floats of one width."""
    pairs = [(a, b) for a in grower.floats for b in grower.kinds if BITS[a] == BITS[b]]
    if pairs:
        source, target = grower.pick(pairs + [pair[::-1] for pair in pairs])
        grower.apply(row, target, (grower.value(source),))


def _clamps(grower: Grower, row: Any) -> None:
    kind = grower.pick(grower.kinds)
    if kind == "u32" and grower.random() < 0.5:
        grower.clamp(grower.pick(grower.arrays).length - 1)
    else:
        grower.apply(row, kind, (grower.value(kind), grower.value(kind)))


#: rule of a row -> what makes such rows, or the method of `Grower` or `ModuleWords` that writes them
RULES: dict[str, Rule | str] = {
    "int": _ints,
    "clamp": _clamps,
    "float": _floats,
    "shift": _shifts,
    "bool": _bools,
    "select": _selects,
    "compare_int": _compares(False),
    "compare_float": _compares(True),
    "float_to_int": _converts("float", "int", False),
    "int_to_float": _converts("int", "float", False),
    "int_resize": _converts("int", "int", True),
    "float_resize": _converts("float", "float", True),
    "bitcast": _bitcasts,
    "ext_inst": "extended",
    "composite_construct": "store_buffer",
    "composite_extract": "load_buffer",
    "load": "load",
    "store": "store",
    "atomic": "change_buffer",
    "access_chain": "chain",
    "control_barrier": "barrier",
    "phi": "phi",
    "loop_merge": "loop",
    "selection_merge": "branch",
    "label": "begin",
    "branch": "arm",
    "branch_conditional": "branch",
    "return": "function",
    "function": "begin_function",
    "function_end": "function",
    "variable": "variable",
    "capability": "words",
    "extension": "words",
    "ext_inst_import": "library",
    "memory_model": "words",
    "entry_point": "entry_point",
    "execution_mode": "entry_point",
    "decorate": "decorate",
    "member_decorate": "_block",
    "type_void": "begin_function",
    "type_bool": "type",
    "type_int": "type",
    "type_float": "type",
    "type_vector": "type",
    "type_array": "workgroup",
    "type_runtime_array": "buffer",
    "type_struct": "buffer",
    "type_pointer": "pointer",
    "type_function": "begin_function",
    "constant_bool": "constant",
    "constant": "constant",
}

COMPARISONS = [row for row in OPS if row.rule == "compare_int"]
_ROWS: tuple[Op | ExtInst, ...] = (*OPS, *EXT_INSTS)
#: rows of `arithmetic`, those that reach indices more often
ARITHMETIC: list[tuple[Op | ExtInst, Rule]] = [
    (row, rule)
    for row in _ROWS
    if not isinstance(rule := RULES.get(row.rule, ""), str)
    for _ in range(4 if row.rule in ("int", "shift", "clamp") else 1)
]
