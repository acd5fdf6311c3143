"""Entries for short rows beside one for all: each schedule is one, their text continues, and what is refused of it."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.schema.writer import write


def _text(most: int | None) -> bytes:
    jax = pytest.importorskip("jax")
    from jax import export

    scope = export.SymbolicScope(() if most is None else (f"s <= {most}",))
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, s", scope=scope), "float32")
    made: bytes = export.export(jax.jit(lambda x: x - x.sum(-1, keepdims=True)))(shape).mlir_module_serialized
    return made


#: rows of up to 100 elements in the registers of one invocation and of eight, longer ones in loops
ONE = "[specialize(k, ..16), bind(grid, invocation, 64), stage(k, register)]"
EIGHT = "[specialize(k, ..64), assume(k, 17..), bind(grid, workgroup), reduce(k, tree, 8), stage(k, register)]"
LONGER = "[assume(k, 65..), bind(grid, workgroup), reduce(k, tree, 8), stage(k, register)]"
LOOPS = "[bind(grid, workgroup), reduce(k, tree, 128)]"
#: most elements of a row -> schedules
SCHEDULES = {
    None: [ONE, EIGHT, LOOPS],
    100: [ONE, EIGHT, LONGER],
    64: [ONE, EIGHT.replace("specialize(k, ..64), ", "")],
}


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int | None, str], Path]:
    """`lowered(most, target)`: rows of up to so many elements, by `SCHEDULES`, as IR after the executables phase."""
    place, made = tmp_path_factory.mktemp("phases"), dict[tuple[int | None, str], Path]()

    def lower(most: int | None, target: str) -> Path:
        if (most, target) not in made:
            folder = place / f"{most}-{target}"
            folder.mkdir()
            text = Compilation(targets=(target,)).text(_text(most), "hl_seq")
            schedules = ", ".join(f"#kernel.schedule<{one}>" for one in SCHEDULES[most])
            text, count = re.subn(r"schedules = \[.*?>\]", f"schedules = [{schedules}]", text)
            assert count == 1
            module = write(Compilation(start="hl_seq", dump=folder).rows(text))
            (folder / "module.fb").write_bytes(module)
            (made[most, target],) = folder.glob("*-executables.mlir")
        return made[most, target]

    return lower


def _entries(path: Path) -> dict[str, Operation]:
    entries = [op for op in parse(path.read_text(), path.name).walk() if isinstance(op, ll_seq.Entry)]
    return {str(entry.symbol).removeprefix("main_dispatch_0"): entry for entry in entries}


@pytest.mark.parametrize("target", ["spirv", "opencl"])
@pytest.mark.parametrize(("most", "least"), [(None, 3), (100, 2), (9, 1)])
def test_there_are_as_many_as_a_call_may_need(target: str, most: int | None, least: int) -> None:
    """What is chosen has a schedule for each range of lengths, each in registers but the one for the longest."""
    text = Compilation(targets=(target,)).text(_text(most), "hl_seq")
    chosen = re.findall(r"#kernel\.schedule<(\[.*?\])>", text)
    lengths = [int(found[1]) for one in chosen for found in [re.search(r"specialize\(k, \.\.(\d+)\)", one)] if found]
    assert len(chosen) >= least and len(lengths) == len(chosen) - 1
    assert lengths == sorted(set(lengths)) and all(length < (most or 1 << 62) for length in lengths)
    assert ["stage(k, register)" in one for one in chosen] == [True] * len(lengths) + [most is not None]


@pytest.mark.parametrize(
    ("most", "names"),
    [(None, ["", "_up_to_16", "_up_to_64"]), (100, ["", "_up_to_16", "_up_to_64"]), (64, ["", "_up_to_16"])],
)
def test_each_schedule_is_an_entry(lowered: Callable[..., Path], most: int | None, names: list[str]) -> None:
    """None goes through loops but the one whose rows are not in registers."""
    entries = _entries(lowered(most, "spirv"))
    assert list(entries) == names
    rows = ll_seq.specializations_of(entries[""])
    assert [(row.entry.removeprefix("main_dispatch_0"), f"_up_to_{row.most}") for row in rows] == [
        (name, name) for name in names[1:]
    ]
    loops = {name: sum(op.name == "kernel.for" for op in entry.walk()) for name, entry in entries.items()}
    assert [name for name, count in loops.items() if count] == ([""] if most is None else [])


def test_an_element_is_asked_for_only_where_it_may_be_missing(lowered: Callable[..., Path]) -> None:
    """Rows of 65 to 100 elements, 8 invocations: of 13 elements of each the first eight are there, in any row."""
    entry = _entries(lowered(100, "spirv"))[""]
    names = Counter(op.name.removeprefix("kernel.") for op in entry.walk())
    assert (names["load"], names["store"], names["if"]) == (13, 13, 1 + 13 - 8)
    assert entry.workgroup_size is not None and entry.workgroup_size.ints == (8, 1, 1)


@pytest.mark.parametrize("target", ["spirv", "opencl"])
def test_the_text_continues(lowered: Callable[..., Path], target: str) -> None:
    path = lowered(64, target)
    module = write(Compilation(targets=(target,), start="executables").rows(str(path)))
    assert module == (path.parent / "module.fb").read_bytes()


def test_a_name_that_another_entry_has(lowered: Callable[..., Path]) -> None:
    """Entries of one executable have different names: the one that is made gets a longer one."""
    text = Compilation(targets=("spirv",)).text(_text(64), "ll_seq")
    module = parse(text, "text")
    (entry,) = (op for op in module.walk() if isinstance(op, ll_seq.Entry))
    other = entry.clone({})
    assert isinstance(other, ll_seq.Entry)
    other.sym_name = StringAttr("main_dispatch_0_up_to_16")
    other.schedules = None
    other.properties.pop("schedules", None)
    Builder.before(entry).insert(other)
    made = parse(Compilation(start="ll_seq").text(str(module), "executables"), "made")
    entries = {str(op.symbol): op for op in made.walk() if isinstance(op, ll_seq.Entry)}
    (row,) = ll_seq.specializations_of(entries["main_dispatch_0"])
    assert row.entry == "main_dispatch_0_up_to_16_" and row.entry in entries
    assert "main_dispatch_0_up_to_16_up_to_16" in entries


CHANGES = [
    ('entry = "main_dispatch_0_up_to_16"', 'entry = "other"', "specialized: other is not an entry of the executable"),
    ('entry = "main_dispatch_0_up_to_16"', 'entry = "main_dispatch_0"', "or one with specializations of its own"),
    ("most = 16 : i64", "most = 16.0 : f64", "names no entry, or no size and the most that it may be"),
    ("size = #util.dims<s{..64}>}", "size = #util.dims<c>}", "specialized: c has c, which is not one of its symbols"),
    ('"read"', '"readwrite"', "specialized: main_dispatch_0_up_to_16 has other bindings or other dims"),
]


@pytest.mark.parametrize(("old", "new", "message"), CHANGES)
def test_what_is_refused(lowered: Callable[..., Path], old: str, new: str, message: str, tmp_path: Path) -> None:
    text = lowered(64, "spirv").read_text()
    assert old in text
    changed = tmp_path / "changed.mlir"
    changed.write_text(text.replace(old, new, 1))
    with pytest.raises(CompileError) as refused:
        Compilation(targets=("spirv",), start="executables").rows(str(changed))
    assert message in str(refused.value)
