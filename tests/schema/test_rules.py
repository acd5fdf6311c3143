"""The rules that the schema cannot express: each refuses invalid rows with the row's name and both values."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from orchestrion.schema import decoder, dtypes, rows, rules, writer
from orchestrion.schema.errors import ModuleError

Patch = Callable[[bytes, str, int, int, int], bytes]
Change = Callable[[writer.Module], writer.Module]

F32, I64 = dtypes.BY_NAME["f32"], dtypes.BY_NAME["i64"]


def argument(dims: tuple[int, ...]) -> Change:
    return lambda m: replace(m, exports=[writer.Export("main", [writer.Value("a", I64, dims)]), m.exports[1]])


def constant(constant: writer.Constant) -> Change:
    return lambda m: replace(m, programs=[replace(m.programs[0], constants=[constant])])


def executable(sizes: list[tuple[int, int, int]]) -> Change:
    variant = writer.Variant("spirv", b"code", sizes)
    made = writer.Executable("x", [writer.Entry("e")], [variant])
    return lambda m: replace(m, programs=[replace(m.programs[0], executables=[made])])


# rule, what breaks it, what it says
WRITTEN: list[tuple[str, Change, str]] = [
    ("_shapes", argument((1,) * 65), r"arguments\[0\] has 65 dimensions, the limit is 64"),
    ("_shapes", argument((2**62, 2)), rf"arguments\[0\] has {2**66} bytes, the limit is {2**63 - 1}"),
    ("_names", lambda m: replace(m, exports=[m.exports[0]] * 2), r"2 exports are called 'main'"),
    ("_names", lambda m: replace(m, programs=[m.programs[0]] * 2), r"2 programs are called 'for reference'"),
    ("_programs", lambda m: replace(m, exports=m.exports[:1]), r"programs\[0\] has 3 entries for 1 exports"),
    ("_executables", executable([]), r"variants\[0\] has 0 workgroup sizes; executables\[0\] has 1 entries"),
    ("_executables", executable([(8, 0, 1)]), r"workgroup_sizes\[0\]: \(8, 0, 1\) has no threads"),
    (
        "_constants",
        constant(writer.Constant("c", np.zeros(3, np.float32), F32, (4,))),
        r"constants\[0\] has 16 bytes, segments\[\d\] 12",
    ),
]
# rule, vector, row, position, value, what it says: damage that the writer cannot be brought to do
DAMAGED = [
    ("_dims", "dims", 3, 0, -4, r"dims\[3\]: -4; there are 2 expressions for dynamic dimensions"),
    ("_dims", "dims", 11, 0, -1, r"constants\[\d+\] has a dynamic dimension"),
    ("_shapes", "dims", 3, 0, 2**62, r"results\[0\]|arguments\[\d\] has \d+ bytes"),
    ("_programs", "programs", 1, -2, 0, r"programs\[1\] asks for 0 devices"),
    ("_programs", "functions", 1, 5, 0, r"programs\[0\]: its functions take \d+ bytes, the bytecode has \d+"),
    ("_globals", "globals", 0, 0, 1, r"globals\[0\]: initial value 0x1 does not fit hal.executable"),
    ("_globals", "globals", 1, 0, 2**32, r"globals\[1\]: initial value 0x100000000 does not fit i32"),
    ("_segments", "segments", 7, 0, 2**21, r"segments\[7\] has 1 chunks for 2097152 bytes, 0 or 2 wanted"),
    ("_segments", "segments", 10, 5, rows.NONE, "a custom segment has no name"),
    ("_segments", "segments", 11, 5, 52, "2 custom segments are called 'org.example.tokens'"),
    ("_attributes", "attributes", 1, 0, 14, "2 attributes of the module are called 'licence'"),
    ("_attributes", "attributes", 2, 3, 0, "attributes of the module: the text of 'icon' is not UTF-8"),
    ("_attributes", "export_attributes", 1, 0, 17, r"2 attributes of exports\[0\] are called 'task'"),
    ("_attributes", "program_attributes", 1, 0, 47, r"2 attributes of programs\[0\] are called 'tuned.for'"),
    ("_constants", "constants", 0, 2, I64.code, r"constants\[0\] has 160 bytes, segments\[\d+\] 80"),
]


@pytest.mark.parametrize(("rule", "change", "message"), WRITTEN)
def test_the_writer_refuses(source: writer.Module, rule: str, change: Change, message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        writer.write(change(source))


@pytest.mark.parametrize(("rule", "vector", "row", "position", "value", "message"), DAMAGED)
def test_the_decoder_refuses(
    data: bytes, patch: Patch, rule: str, vector: str, row: int, position: int, value: int, message: str
) -> None:
    with pytest.raises(ModuleError, match=message):
        decoder.read_module(patch(data, vector, row, position, value))


def test_every_rule_has_a_case() -> None:
    assert {rule.__name__ for rule in rules.RULES} == {case[0] for case in (*WRITTEN, *DAMAGED)}


def test_a_huge_number_of_equal_names_is_found_in_linear_time() -> None:
    exports = [writer.Export(f"f{i}") for i in range(20_000)] + [writer.Export("f19999")]
    program = writer.Program("p", "reference", [writer.Function("f", b"")], [0] * len(exports))
    with pytest.raises(ModuleError, match="2 exports are called 'f19999'"):
        writer.write(writer.Module([program], exports))
