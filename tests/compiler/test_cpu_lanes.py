"""Memory that only some lanes of a vector may touch, on target cpu: every access beside a binding ends the process.

`image_runner` runs each entry for every level of this machine, with the bindings before and behind a guard page.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.targets.cpu import llvm_child
from orchestrion.compiler.targets.cpu.levels import LEVELS

#: invocations of a workgroup, and of a dispatch, whose last workgroup is not full
SIZE, COUNT = 32, 77
X = np.arange(1, COUNT + 1, dtype=np.int32)

Runs = Callable[..., np.ndarray]


def constant(name: str, value: str, dtype: str) -> str:
    typed = value if dtype == "i1" else f"{value} : {dtype}"
    return f'%{name} = "kernel.constant"() <{{value = {typed}}}> : () -> {dtype}'


def op(name: str, what: str, *operands: str, types: str = "ui32, ui32", result: str = "ui32") -> str:
    """`%name`: the result of an op on operands of these types."""
    given = ", ".join(f"%{operand}" for operand in operands)
    return f'%{name} = "kernel.{what}"({given}) : ({types}) -> {result}'


def load(name: str, binding: int, index: str, dtype: str = "i32") -> str:
    return op(name, "load", f"b{binding}", index, types="!ll_seq.binding, ui32", result=dtype)


def store(value: str, binding: int, index: str = "i", dtype: str = "i32") -> str:
    return f'"kernel.store"(%{value}, %b{binding}, %{index}) : ({dtype}, !ll_seq.binding, ui32) -> ()'


def less(name: str, x: str, y: str) -> str:
    return op(name, "compare_lt", x, y, result="i1")


def branch(name: str, condition: str, yes: list[str], yes_value: str, no: list[str], no_value: str) -> str:
    """`%name`, an i32: the value of the arm that is taken."""
    arms = [[*lines, f'"kernel.yield"(%{value}) : (i32) -> ()'] for lines, value in ((yes, yes_value), (no, no_value))]
    inner = "}, {\n".join("\n".join(arm) + "\n" for arm in arms)
    return f'%{name} = "kernel.if"(%{condition}) ({{\n{inner}}}) : (i1) -> i32'


def when(condition: str, *lines: str) -> str:
    """Ops that run where a condition is true."""
    end = '"kernel.yield"() : () -> ()'
    return "\n".join([f'"kernel.if"(%{condition}) ({{', *lines, end, "}, {", end, "}) : (i1) -> ()"])


def loop(name: str, upper: str, *lines: str, value: str) -> str:
    """`%name`, an i32 that begins as 0: `%sum` becomes `value` for each `%k` below `upper`."""
    head = f'%{name} = "kernel.for"(%u0, %{upper}, %u1, %s0) ({{'
    end = f'"kernel.yield"(%{value}) : (i32) -> ()'
    return "\n".join([head, "^bb0(%k: ui32, %sum: i32):", *lines, end, "}) : (ui32, ui32, ui32, i32) -> i32"])


NUMBERS = [0, 1, 2, 3, 4, 5, 8, 12, 15, 16, 24, SIZE, 2 * SIZE, COUNT]
PREAMBLE = [
    '%group = "kernel.workgroup_id"() : () -> ui32',
    '%local = "kernel.local_id"() : () -> ui32',
    *(constant(f"u{number}", str(number), "ui32") for number in NUMBERS),
    constant("s0", "0", "i32"),
    constant("s7", "7", "i32"),
    op("first", "multiply", "group", f"u{SIZE}"),
    op("i", "add", "first", "local"),
    less("inside", "i", f"u{COUNT}"),
]


def entry(body: str, accesses: list[str]) -> str:
    bindings = ", ".join(f'{{access = "{access}", length = 4 : i64}}' for access in accesses)
    arguments = ", ".join(f"%b{at}: !ll_seq.binding" for at in range(len(accesses)))
    head = f'"ll_seq.entry"() <{{sym_name = "test_main", workload = array<i64: {COUNT}, 1, 1>, bindings = [{bindings}],'
    return "\n".join(
        [
            '"ll_seq.executable"() <{sym_name = "test"}> ({',
            f"{head} workgroup_size = array<i64: {SIZE}, 1, 1>}}> ({{",
            f"^bb0({arguments}):",
            *PREAMBLE,
            body,
            '"kernel.return"() : () -> ()',
            "}) : () -> ()\n}) : () -> ()",
        ]
    )


def kept_values(count: int, size: int = 1024) -> str:
    """An executable in which values that each invocation has loaded are needed behind a barrier."""
    sums = [op("t0", "add", "s0", "x0", types="i32, i32", result="i32")]
    sums += [op(f"t{n}", "add", f"t{n - 1}", f"x{n}", types="i32, i32", result="i32") for n in range(1, count)]
    loads = [load(f"x{n}", 0, "i") for n in range(count)]
    body = [*loads, '"kernel.barrier"() : () -> ()', *sums, store(f"t{count - 1}", 1)]
    text = entry("\n".join(body), ["read", "write"])
    return text.replace(f"workgroup_size = array<i64: {SIZE}", f"workgroup_size = array<i64: {size}")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The LLVM IR of what is compiled from here on."""
    found: list[str] = []
    object_file = llvm_child.object_file

    def keep(text: str, *arguments: Any, **named: Any) -> bytes:
        found.append(text)
        return object_file(text, *arguments, **named)

    monkeypatch.setattr(llvm_child, "object_file", keep)
    return found


@pytest.fixture
def runs(kernel: Callable[..., Any], devices: Any) -> Runs:
    """`runs(lines, *arrays)`: what the invocations below `COUNT` make of arrays, in one i32 result of `size`."""

    def run(lines: list[str], *arrays: np.ndarray, size: int = COUNT, guarded: bool = True) -> np.ndarray:
        body = when("inside", *lines) if guarded else "\n".join(lines)
        text = entry(body, ["read"] * len(arrays) + ["write"])
        result: np.ndarray = devices.run(kernel(text, "cpu", [((size,), np.dtype(np.int32))], COUNT), *arrays)[0]
        return result

    return run


def test_elements_in_front_of_a_binding(runs: Runs) -> None:
    """Padding: lanes in front of the data have a negative index, and lane 0 is one of them."""
    for low in (3, 5, 12):
        lines = [
            less("data", f"u{low}", "i"),
            branch("r", "data", [op("at", "subtract", "i", f"u{low}"), load("x", 0, "at")], "x", [], "s7"),
            store("r", 1),
        ]
        want = np.where(np.arange(COUNT) > low, np.roll(np.append(X, 0), low)[:COUNT], 7)
        np.testing.assert_array_equal(runs(lines, X[: COUNT - low]), want)


def test_elements_of_two_bindings_side_by_side(runs: Runs) -> None:
    """A concatenation of rows of 8 and 8: each arm reads outside of its binding in the lanes of the other."""
    row, column = op("row", "unchecked_divide", "i", "u16"), op("column", "unchecked_remainder", "i", "u16")
    lines = [
        row,
        column,
        op("start", "multiply", "row", "u8"),
        less("left", "column", "u8"),
        branch(
            "r",
            "left",
            [op("at", "add", "start", "column"), load("x", 0, "at")],
            "x",
            [op("past", "subtract", "column", "u8"), op("place", "add", "start", "past"), load("y", 1, "place")],
            "y",
        ),
        store("r", 2),
    ]
    x, y = np.arange(40, dtype=np.int32), 100 + np.arange(37, dtype=np.int32)
    want = np.concatenate([x.reshape(5, 8), np.append(y, [0, 0, 0]).reshape(5, 8)], 1).reshape(-1)[:COUNT]
    np.testing.assert_array_equal(runs(lines, x, y), want)


def test_elements_at_places_that_are_valid_where_a_flag_says_so(runs: Runs) -> None:
    flags = (np.arange(COUNT) % 3 == 1).astype(np.uint8)
    places = np.where(flags, np.arange(COUNT)[::-1], 0x7FFFFFF0).astype(np.uint32)
    lines = [
        load("flag", 0, "i", "i1"),
        branch("r", "flag", [load("at", 1, "i", "ui32"), load("x", 2, "at")], "x", [], "s7"),
        store("r", 3),
    ]
    np.testing.assert_array_equal(runs(lines, flags, places, X), np.where(flags, X[::-1], 7))


def test_branches_in_branches(runs: Runs) -> None:
    flags = (np.arange(COUNT) % 3 == 1).astype(np.uint8)
    lines = [
        load("flag", 0, "i", "i1"),
        less("late", "u5", "i"),
        op("at", "subtract", "i", "u5"),
        branch("r", "late", [branch("q", "flag", [load("x", 1, "at")], "x", [], "s0")], "q", [], "s7"),
        store("r", 2),
    ]
    want = np.where(np.arange(COUNT) > 5, np.where(flags, np.arange(COUNT) - 4, 0), 7)
    np.testing.assert_array_equal(runs(lines, flags, X[: COUNT - 5]), want)


@pytest.mark.parametrize("spread", [False, True])
def test_stores_of_some_lanes(runs: Runs, texts: list[str], spread: bool) -> None:
    """The result has no place for the first 5 invocations; `spread`: nor for odd ones. Neighbours are stored as a
    vector if all lanes store, on levels without masks that have the registers.
    """
    lines = [
        load("x", 0, "i"),
        op("past", "subtract", "i", "u5"),
        op("odd", "unchecked_remainder", "past", "u2"),
        op("half", "unchecked_divide", "past", "u2"),
        op("late", "compare_ge", "i", "u5", result="i1"),
        op("even", "compare_eq", "odd", "u0", result="i1"),
        op("both", "and", "late", "even", types="i1, i1", result="i1"),
        when("both", store("x", 1, "half")) if spread else when("late", store("x", 1, "past")),
    ]
    want = X[5::2] if spread else X[5:]
    np.testing.assert_array_equal(runs(lines, X, size=len(want)), want)
    assert texts
    for text in texts:
        (versions,) = {row.versions for row in LEVELS.values() if f'"target-cpu"="{row.cpu}"' in text}
        assert (" store <" in text) == (versions and not spread)


def test_loops_of_different_lengths(runs: Runs) -> None:
    """Row i has i % 5 elements, the last row ends at the guard page."""
    lengths = (np.arange(COUNT) % 5).astype(np.uint32)
    starts = (np.cumsum(lengths) - lengths).astype(np.uint32)
    data = np.arange(lengths.sum(), dtype=np.int32) ** 2
    lines = [
        load("length", 0, "i", "ui32"),
        load("start", 1, "i", "ui32"),
        loop(
            "r",
            "length",
            op("at", "add", "start", "k"),
            load("x", 2, "at"),
            op("s", "add", "sum", "x", types="i32, i32", result="i32"),
            value="s",
        ),
        store("r", 3),
    ]
    want = [data[start : start + length].sum() for start, length in zip(starts, lengths, strict=True)]
    np.testing.assert_array_equal(runs(lines, lengths, starts, data), want)


def test_a_loop_that_some_lanes_run(runs: Runs) -> None:
    """All lanes in the loop have the same number of iterations. Its loads begin in front of the data."""
    lines = [
        less("late", "u3", "i"),
        branch(
            "r",
            "late",
            [
                loop(
                    "t",
                    "u4",
                    op("back", "subtract", "i", "k"),
                    op("at", "subtract", "back", "u1"),
                    load("x", 0, "at"),
                    op("s", "add", "sum", "x", types="i32, i32", result="i32"),
                    value="s",
                )
            ],
            "t",
            [],
            "s7",
        ),
        store("r", 1),
    ]
    want = [sum(X[i - 4 : i]) if i > 3 else 7 for i in range(COUNT)]
    np.testing.assert_array_equal(runs(lines, X[: COUNT - 1]), want)


def test_the_last_vector(runs: Runs) -> None:
    """Neighbours in twos, and backwards: the last vector of the dispatch is not full."""
    lines = [
        op("even", "multiply", "i", "u2"),
        op("odd", "add", "even", "u1"),
        op("back", "subtract", f"u{COUNT}", "i"),
        op("mirror", "subtract", "back", "u1"),
        load("x", 0, "even"),
        load("y", 0, "odd"),
        load("z", 1, "mirror"),
        op("d", "subtract", "y", "x", types="i32, i32", result="i32"),
        op("r", "multiply", "d", "z", types="i32, i32", result="i32"),
        store("r", 2),
    ]
    pairs = np.arange(2 * COUNT, dtype=np.int32) ** 2
    np.testing.assert_array_equal(runs(lines, pairs, X), (pairs[1::2] - pairs[::2]) * X[::-1])


def select(name: str, condition: str, yes: str, no: str, dtype: str = "ui32") -> str:
    return op(name, "select", condition, yes, no, types=f"i1, {dtype}, {dtype}", result=dtype)


def test_padding_by_selects(runs: Runs, texts: list[str]) -> None:
    """Elements at places that do not exist are dropped: lanes read in front of the data, and behind it."""
    for low in (1, 5, 12):
        lines = [
            op("at", "subtract", "i", f"u{low}"),
            less("data", "at", "u24"),
            select("place", "data", "at", "u0"),
            load("x", 0, "place"),
            op("twice", "add", "x", "x", types="i32, i32", result="i32"),
            select("r", "data", "twice", "s7", "i32"),
            store("r", 1),
        ]
        want = np.full(COUNT, 7, np.int32)
        want[low : low + 24] = 2 * X[:24]
        np.testing.assert_array_equal(runs(lines, X[:24]), want)
    assert texts and not any("gather" in text for text in texts if '"target-cpu"="x86-64-v4"' in text)


def test_padding_of_padding_backwards(runs: Runs, texts: list[str]) -> None:
    """The outer padding is 3 elements, the inner one 4 behind 15 elements that are read backwards."""
    lines = [
        op("outer", "subtract", "i", "u3"),
        less("holds", "outer", "u24"),
        select("middle", "holds", "outer", "u0"),
        op("inner", "subtract", "middle", "u4"),
        less("data", "inner", "u15"),
        op("last", "subtract", "u15", "inner"),
        op("mirror", "subtract", "last", "u1"),
        select("place", "data", "mirror", "u0"),
        load("x", 0, "place"),
        select("part", "data", "x", "s0", "i32"),
        select("r", "holds", "part", "s7", "i32"),
        store("r", 1),
    ]
    want = np.full(COUNT, 7, np.int32)
    want[3:27] = 0
    want[7:22] = X[:15][::-1]
    np.testing.assert_array_equal(runs(lines, X[:15]), want)
    assert texts and not any("gather" in text for text in texts if '"target-cpu"="x86-64-v4"' in text)


@pytest.mark.parametrize("apart", [2, 3, 4])
def test_padding_of_elements_some_places_apart(runs: Runs, apart: int) -> None:
    """The first vector begins in front of the data, and the last one ends behind it."""
    lines = [
        op("far", "multiply", "i", f"u{apart}"),
        op("at", "subtract", "far", "u5"),
        less("data", "at", "u64"),
        select("place", "data", "at", "u0"),
        load("x", 0, "place"),
        select("r", "data", "x", "s7", "i32"),
        store("r", 1),
    ]
    places = np.arange(COUNT) * apart - 5
    held = (places >= 0) & (places < 64)
    np.testing.assert_array_equal(runs(lines, X[:64]), np.where(held, X[np.where(held, places, 0)], 7))


def test_padding_that_all_lanes_share(runs: Runs, texts: list[str]) -> None:
    """Whole vectors are padding or not. Data end at the end of a vector, and begin at that of one."""
    lines = [
        op("at", "subtract", "i", "u32"),
        less("data", "at", "u32"),
        select("place", "data", "at", "u0"),
        load("x", 0, "place"),
        select("r", "data", "x", "s7", "i32"),
        store("r", 1),
    ]
    want = np.full(COUNT, 7, np.int32)
    want[32:64] = X[:32]
    np.testing.assert_array_equal(runs(lines, X[:32]), want)
    assert texts and not any("gather" in text for text in texts if '"target-cpu"="x86-64-v4"' in text)


def decides(text: str) -> bool:
    """Whether the level of a text has code for vectors of which all lanes take the same arm of branches by place."""
    (row,) = {row for row in LEVELS.values() if f'"target-cpu"="{row.cpu}"' in text and not row.base}
    return row.decides


@pytest.mark.parametrize("end", [0, 5, 8, 12, 16, 24, SIZE, 2 * SIZE, COUNT])
@pytest.mark.parametrize("begin", [0, 1, 8, 15, 16, COUNT])
def test_branches_by_place(runs: Runs, texts: list[str], begin: int, end: int) -> None:
    """Lanes in front of `end` have elements, from `begin` on those of other data, backwards. Vectors that cross neither
    place have no masks.
    """
    inner = [
        op("back", "subtract", f"u{COUNT}", "i"),
        op("last", "subtract", "back", "u1"),
        load("y", 1, "last"),
    ]
    outer = [
        op("early", "compare_lt", "i", f"u{begin}", result="i1"),
        branch("z", "early", [load("x", 0, "i")], "x", inner, "y"),
    ]
    lines = [less("data", "i", f"u{end}"), branch("r", "data", outer, "z", [], "s7"), store("r", 2)]
    at = np.arange(COUNT)
    want = np.where(at < end, np.where(at < begin, X, 2 * X[::-1]), 7)
    np.testing.assert_array_equal(runs(lines, X[:begin] if begin else X[:1], 2 * X), want)
    for text in texts:
        assert (" load <" in text) >= decides(text)


@pytest.mark.parametrize("front", [0, 1, 5, 16, SIZE])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_sums_of_padded_rows(runs: Runs, texts: list[str], front: int, count: int) -> None:
    """Each lane adds the elements of a column of rows that begin in front of the data and end behind them."""
    lines = [
        loop(
            "r",
            f"u{count}",
            op("row", "multiply", "k", f"u{SIZE}"),
            op("place", "add", "row", "i"),
            op("at", "subtract", "place", f"u{front}"),
            less("data", "at", "u64"),
            select("safe", "data", "at", "u0"),
            load("x", 0, "safe"),
            select("y", "data", "x", "s7", "i32"),
            op("s", "add", "sum", "y", types="i32, i32", result="i32"),
            value="s",
        ),
        store("r", 1),
    ]
    at = np.arange(COUNT) + SIZE * np.arange(count)[:, None] - front
    want = np.where((at >= 0) & (at < 64), X[np.clip(at, 0, 63)], 7).sum(0)
    np.testing.assert_array_equal(runs(lines, X[:64]), want)
    for text in texts:
        assert not (decides(text) and "gather" in text)


def test_rows_that_a_loop_changes(runs: Runs, texts: list[str]) -> None:
    """Updates of rows, one after the other, by a loop without values. Several vectors of a row are changed at once."""
    head = '"kernel.for"(%u0, %u5, %u1) ({\n^bb0(%k: ui32):'
    end = '"kernel.yield"() : () -> ()\n}) : (ui32, ui32, ui32) -> ()'
    lines = [
        op("column", "unchecked_remainder", "i", f"u{SIZE}"),
        op("owner", "unchecked_divide", "i", f"u{SIZE}"),
        head,
        load("number", 1, "k", "ui32"),
        op("mine", "compare_eq", "number", "owner", result="i1"),
        op("row", "multiply", "k", f"u{SIZE}"),
        op("at", "add", "row", "column"),
        when(
            "mine",
            load("old", 2, "i"),
            load("x", 0, "at"),
            op("sum", "add", "old", "x", types="i32, i32", result="i32"),
            store("sum", 2, "i"),
        ),
        end,
    ]
    numbers, updates = np.array([1, 0, 1, 1, 0], np.uint32), np.arange(5 * SIZE, dtype=np.int32).reshape(5, SIZE)
    want = np.stack([updates[numbers == owner].sum(0) for owner in range(2)]).ravel()
    lines = [less("both", "i", f"u{2 * SIZE}"), when("both", store("s0", 2), *lines)]
    np.testing.assert_array_equal(runs(lines, updates, numbers, size=2 * SIZE, guarded=False), want)
    assert texts and all(f" load <{SIZE} x i32>" in text for text in texts)


@pytest.mark.parametrize("apart", [2, 3, 4, 5])
def test_stores_side_by_side(runs: Runs, texts: list[str], apart: int) -> None:
    """Each lane stores some neighbours. Few of them are woven to vectors, in the order of memory or not."""
    stores = [load("x", 0, "i"), op("at", "multiply", "i", f"u{apart}")]
    for number in range(apart):
        stores.append(constant(f"n{number}", str(number), "i32"))
        stores.append(op(f"y{number}", "add", "x", f"n{number}", types="i32, i32", result="i32"))
        stores.append(op(f"p{number}", "add", "at", f"u{number}"))
    stores += [store(f"y{number}", 1, f"p{number}") for number in range(apart)]
    want = (X[:, None] + np.arange(apart)).ravel()
    np.testing.assert_array_equal(runs(stores, X, size=COUNT * apart), want)
    assert texts
    for text in texts:
        assert ("masked.scatter" in text) == (apart > 4)
    texts.clear()
    stores[-2:] = stores[:-3:-1]
    np.testing.assert_array_equal(runs(stores, X, size=COUNT * apart), want)
    assert all("masked.scatter" in text for text in texts)


def test_an_element_that_is_needed_where_its_place_was_chosen(runs: Runs) -> None:
    """It is the first element there, not zero."""
    lines = [
        op("at", "subtract", "i", "u5"),
        less("data", "at", "u24"),
        select("place", "data", "at", "u0"),
        load("r", 0, "place"),
        store("r", 1),
    ]
    places = np.arange(COUNT) - 5
    np.testing.assert_array_equal(runs(lines, X[:24]), X[np.where((places >= 0) & (places < 24), places, 0)])


@pytest.mark.parametrize("apart", [1, 2, 3, 4, 5])
def test_elements_some_places_apart(runs: Runs, texts: list[str], apart: int) -> None:
    """The last element of the last vector is the last one of the data. Few places apart, vectors are shuffled."""
    lines = [op("at", "multiply", "i", f"u{apart}"), load("r", 0, "at"), store("r", 1)]
    x, count = np.arange((2 * SIZE - 1) * apart + 1, dtype=np.int32), 2 * SIZE
    whole = [less("both", "i", f"u{count}"), when("both", *lines)]
    np.testing.assert_array_equal(runs(whole, x, size=count, guarded=False), x[::apart])
    assert texts
    for text in texts:
        (lanes,) = {row.lanes for row in LEVELS.values() if f'"target-cpu"="{row.cpu}"' in text}
        assert ("gather" in text) == (apart > min(4, lanes // 2))


@pytest.mark.parametrize("pairs", [False, True], ids=["one", "pairs"])
@pytest.mark.parametrize("length", [12, 16, 24])
def test_a_row_per_lane(runs: Runs, texts: list[str], length: int, pairs: bool) -> None:
    """Squares of elements are loaded by rows, and the rest of a row one by one. The order of a row's elements stays."""
    step = [op("scaled", "multiply", "sum", "s7", types="i32, i32", result="i32")]
    first = [
        op("at", "add", "start", "k"),
        load("x", 0, "at"),
        op("new", "add", "scaled", "x", types="i32, i32", result="i32"),
    ]
    if pairs:
        first = [
            op("even", "multiply", "k", "u2"),
            op("at", "add", "start", "even"),
            op("behind", "add", "at", "u1"),
            load("x", 0, "at"),
            load("y", 0, "behind"),
            op("both", "subtract", "x", "y", types="i32, i32", result="i32"),
            op("new", "add", "scaled", "both", types="i32, i32", result="i32"),
        ]
    rows, count = 3 * SIZE, length * (2 if pairs else 1)
    lines = [
        op("start", "multiply", "i", f"u{length}"),
        loop("r", f"u{length}", *step, *first, value="new"),
        store("r", 1),
    ]
    if pairs:
        lines[0] = op("half", "multiply", "i", f"u{length}") + "\n" + op("start", "multiply", "half", "u2")
    x = np.random.default_rng(0).integers(-9, 9, (rows, count), np.int32)
    want = np.zeros(rows, np.int32)
    for k in range(length):
        want = want * 7 + (x[:, 2 * k] - x[:, 2 * k + 1] if pairs else x[:, k])
    np.testing.assert_array_equal(runs(lines, x, size=rows, guarded=False), want)
    assert texts and not any("gather" in text for text in texts if length % 16 == 0)


def test_quotients_by_what_other_lanes_have(runs: Runs) -> None:
    """Divisors of 0 in lanes that do not divide stop no processor."""
    divisors = (np.arange(COUNT) % 4).astype(np.int32)
    lines = [
        load("x", 0, "i"),
        load("y", 1, "i"),
        op("some", "compare_ne", "y", "s0", types="i32, i32", result="i1"),
        branch("r", "some", [op("q", "unchecked_divide", "x", "y", types="i32, i32", result="i32")], "q", [], "s7"),
        store("r", 2),
    ]
    np.testing.assert_array_equal(runs(lines, X, divisors), np.where(divisors, X // np.maximum(divisors, 1), 7))


def test_shared_memory_that_some_lanes_touch(runs: Runs) -> None:
    """Each workgroup moves its elements by 5 places through a shared array without room for the others."""
    shared = f"!kernel.shared<{SIZE - 5}xi32>"
    take = op("x", "load_shared", "s", "local", types=f"{shared}, ui32", result="i32")
    lines = [
        f'%s = "kernel.shared"() : () -> {shared}',
        op("late", "compare_ge", "local", "u5", result="i1"),
        op("early", "compare_lt", "local", "u24", result="i1"),
        op("past", "subtract", "local", "u5"),
        op("puts", "and", "late", "inside", types="i1, i1", result="i1"),
        op("takes", "and", "early", "inside", types="i1, i1", result="i1"),
        when("puts", load("y", 0, "i"), f'"kernel.store_shared"(%y, %s, %past) : (i32, {shared}, ui32) -> ()'),
        '"kernel.barrier"() : () -> ()',
        op("from", "add", "i", "u5"),
        op("full", "compare_lt", "from", f"u{COUNT}", result="i1"),
        op("both", "and", "full", "takes", types="i1, i1", result="i1"),
        branch("r", "both", [take], "x", [], "s7"),
        when("inside", store("r", 1)),
    ]
    number = np.arange(COUNT)
    want = np.where((number % SIZE < 24) & (number + 5 < COUNT), number + 6, 7)
    np.testing.assert_array_equal(runs(lines, X, guarded=False), want)


def test_the_stack_of_a_workgroup_is_limited(kernel: Callable[..., Any], devices: Any) -> None:
    """1024 invocations keep 96 values of 4 bytes: 384 KiB."""
    ones = np.ones(1024, np.int32)
    lowered = kernel(kept_values(96), "cpu", [((1024,), np.dtype(np.int32))], 1024)
    np.testing.assert_array_equal(devices.run(lowered, ones)[0], np.full(1024, 96))
    with pytest.raises(CompileError, match=r"entry test_main needs 397312 bytes of the stack .* 393216 are allowed"):
        kernel(kept_values(97), "cpu", [((1024,), np.dtype(np.int32))], 1024)
