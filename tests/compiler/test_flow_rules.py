"""The rules of the flow phase, which text from anybody must keep: blocks in their order, what dispatches hold.

Each case is the body of a module or function and what is said about it.
"""

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError

GO = '"util.branch"()[^bb{}] : () -> ()'
IF = '"util.cond_branch"(%p)[^bb{}, ^bb{}] <{{counts = array<i64: 0, 0>}}> : (tensor<i1>) -> ()'
END = '"func.return"() : () -> ()'

FUNCTION = """"builtin.module"() ({{
  "func.func"() <{{function_type = (tensor<i1>, tensor<4xf32>) -> (), sym_name = "main"}}> ({{
  ^bb0(%p: tensor<i1>, %x: tensor<4xf32>):
{}
  }}) : () -> ()
}}) : () -> ()
"""


def said(text: str) -> list[str]:
    """What is wrong with text of the flow phase."""
    try:
        Compilation(start="flow").module(text, "flow")
    except CompileError as error:
        return [diagnostic.message for diagnostic in error.diagnostics]
    return []


def body(*blocks: str) -> str:
    """A function whose blocks end so, the entry first."""
    return FUNCTION.format("\n".join(f"  ^bb{i}:\n    {b}" if i else f"    {b}" for i, b in enumerate(blocks)))


def test_a_function_has_a_body() -> None:
    text = FUNCTION.format("").replace("^bb0(%p: tensor<i1>, %x: tensor<4xf32>):", "")
    assert said(text) == ["has no body"]


GRAPHS = [
    ([IF.format(1, 2), GO.format(3), GO.format(3), END], []),
    ([GO.format(1), IF.format(2, 3), GO.format(1), END], []),
    ([GO.format(1), IF.format(2, 4), IF.format(3, 1), GO.format(1), END], []),
    ([END, END], ["block 1 is unreachable"]),
    (
        [GO.format(2), END, GO.format(1)],
        [
            "block 1 precedes block 2, which dominates it",
            "block 2 branches back to block 1, which does not dominate it",
        ],
    ),
    (
        [IF.format(1, 2), GO.format(2), IF.format(1, 3), END],
        ["block 2 branches back to block 1, which does not dominate it"],
    ),
    (
        [GO.format(1), IF.format(3, 2), END, GO.format(1)],
        ["block 2 lies between the blocks of the loop of blocks 1 to 3"],
    ),
    (
        [IF.format(1, 3), GO.format(2), END, GO.format(2)],
        ["block 3 branches back to block 2, which does not dominate it"],
    ),
]


@pytest.mark.parametrize(("blocks", "messages"), GRAPHS)
def test_blocks_stand_in_their_order(blocks: list[str], messages: list[str]) -> None:
    assert said(body(*blocks)) == messages


STATEMENTS = [
    (
        '"util.cond_branch"(%x)[^bb1, ^bb1] <{counts = array<i64: 0, 0>}> : (tensor<4xf32>) -> ()\n^bb1:\n' + END,
        "branches on tensor<4xf32>, must be tensor<i1> or i32",
    ),
    (
        '"util.switch"(%p)[^bb1] <{counts = array<i64: 0>}> : (tensor<i1>) -> ()\n^bb1:\n' + END,
        "branches on tensor<i1>, must be tensor<i32> or i32",
    ),
    (
        '%e = "flow.empty"() : () -> tensor<0xf32>\n"util.branch"(%e)[^bb1] : (tensor<0xf32>) -> ()\n'
        "^bb1(%y: tensor<0xf32>):\n" + END,
        "block 1 takes tensor<0xf32>: must be a supported tensor with elements, or i32",
    ),
    ('%c = "util.constant"() <{value = 1 : i64}> : () -> i32\n' + END, "value 1 : i64 is no i32"),
    (
        '%c = "util.constant"() <{value = 1 : i32}> : () -> i64\n' + END,
        "result out is of type i64, must be: i32",
    ),
    ('%n = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n' + END, "may not stand in func.func @main"),
]


@pytest.mark.parametrize(("statement", "message"), STATEMENTS, ids=[message for _, message in STATEMENTS])
def test_what_stands_in_blocks(statement: str, message: str) -> None:
    (found,) = said(FUNCTION.format(statement))
    assert message in found


FUNC = """"func.func"() <{function_type = () -> (), sym_name = "main"}> ({
    "func.return"() : () -> ()
  }) : () -> ()"""


def test_control_flow_is_between_dispatches() -> None:
    text = """"builtin.module"() ({
  "flow.executable"() <{sym_name = "e"}> ({
    "func.func"() <{function_type = (tensor<i1>) -> tensor<i1>, sym_name = "e"}> ({
    ^bb0(%p: tensor<i1>):
      %0 = "stablehlo.if"(%p) ({
        "stablehlo.return"(%p) : (tensor<i1>) -> ()
      }, {
        "stablehlo.return"(%p) : (tensor<i1>) -> ()
      }) : (tensor<i1>) -> tensor<i1>
      "func.return"(%0) : (tensor<i1>) -> ()
    }) : () -> ()
  }) : () -> ()
  FUNC
}) : () -> ()
"""
    assert said(text.replace("FUNC", FUNC)) == ["holds stablehlo.if: control flow must be between dispatches"]


UPDATE = """"builtin.module"() ({
  "flow.executable"() <{sym_name = "e"}> ({
    "func.func"() <{function_type = (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>, sym_name = "e"}> ({
    ^bb0(%x: tensor<9xf32>, %u: tensor<2xf32>, %i: tensor<i32>):
      BODY
      "func.return"(%r) : (tensor<9xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<9xf32>, %u: tensor<2xf32>, %i: tensor<i32>):
    %r = "flow.dispatch"(%x, %u, %i) <{entry = @e::@e, tied = array<i64: TIED>, workload = array<i64: WORK, 1, 1>}>
      : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
    "func.return"(%r) : (tensor<9xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""
WINDOW = '"stablehlo.dynamic_update_slice"({}, %u, %i) : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>'
PLAIN = "%r = " + WINDOW.format("%x")
NEGATED = '%n = "stablehlo.negate"({}) : (tensor<9xf32>) -> tensor<9xf32>\n'
NO_UPDATE = ["result 0 of the entry is not an update of argument 0 that nothing else uses"]

TIED = [
    (PLAIN, "0", 2, []),
    (PLAIN, "-1", 9, []),
    (PLAIN, "0", 9, ["workload [9, 1, 1] must be [2, 1, 1] for result 0"]),
    (PLAIN, "-1", 2, ["workload [2, 1, 1] must be [9, 1, 1] for result 0"]),
    (NEGATED.format("%x") + "%r = " + WINDOW.format("%n"), "0", 2, NO_UPDATE),
    (NEGATED.format("%x") + PLAIN, "0", 2, NO_UPDATE),
    ("%m = " + WINDOW.format("%x") + "\n" + NEGATED.format("%m").replace("%n", "%r"), "0", 9, NO_UPDATE),
    (PLAIN, "0, 0", 2, ["tied has 2 numbers for 1 outputs"]),
    (PLAIN, "3", 2, ["tied [3] names arguments, of which there are 3"]),
    (PLAIN, "1", 2, ["output of type tensor<9xf32> is tied to argument 1 of type tensor<2xf32>"]),
]


@pytest.mark.parametrize(("entry", "tied", "work", "messages"), TIED)
def test_a_tied_output_is_an_update(entry: str, tied: str, work: int, messages: list[str]) -> None:
    assert said(UPDATE.replace("BODY", entry).replace("TIED", tied).replace("WORK", str(work))) == messages


def test_an_entry_has_one_binding_for_what_is_tied() -> None:
    text = UPDATE.replace("BODY", PLAIN).replace("TIED", "0").replace("WORK", "2")
    call = next(line for line in text.splitlines() if "flow.dispatch" in line)
    again = call.replace("%r =", "%s =").replace("tied = array<i64: 0>, ", "").replace("i64: 2, 1", "i64: 9, 1")
    types = next(line for line in text.splitlines() if line.startswith("      : (tensor"))
    both = text.replace(types, f"{types}\n{again}\n{types}")
    assert said(both) == ["@e::@e is dispatched with tied = array<i64: 0> and with tied = None"]


IN_PLACE = """"builtin.module"() ({
  "flow.executable"() <{sym_name = "e"}> ({
    "func.func"() <{function_type = (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>, sym_name = "e"}> ({
    ^bb0(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>):
      %t = "stablehlo.transpose"(%y) <{permutation = array<i64: 1, 0>}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
      %r = "stablehlo.add"(%x, %t) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
      "func.return"(%r) : (tensor<3x3xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>):
    %r = "flow.dispatch"(%x, %y) <{entry = @e::@e, in_place = array<i64: WHICH>, workload = array<i64: 9, 1, 1>}>
      : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    "func.return"(%r) : (tensor<3x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.mark.parametrize("which", ["0", "1", "0, 1", "0, 0", "-1", "7"])
def test_only_what_is_read_element_by_element_gives_its_memory(which: str) -> None:
    told = f"in_place [{which}] must be of [0], the arguments that may give their memory, each once"
    assert said(IN_PLACE.replace("WHICH", which)) == ([] if which == "0" else [told])


def test_a_global_has_elements() -> None:
    text = '"util.global"() <{mutable, sym_name = "g", type = tensor<0xf32>}> : () -> ()'
    (found,) = said(f'"builtin.module"() ({{\n{text}\n{FUNC}\n}}) : () -> ()')
    assert found == "is of type tensor<0xf32>, which has no elements: create it where it is used"
