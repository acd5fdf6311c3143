"""The rules of the hl_seq phase, which text from anybody must keep: globals, and who stores to them when.

Each case is what stands in a program in front of its function, and what is said about it.
"""

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.schema.decoder import read_module
from orchestrion.schema.writer import write

PROGRAM = """"builtin.module"() ({{
  "hl_seq.program"() <{{sym_name = "reference"}}> ({{
    {}
    "func.func"() <{{function_type = () -> (), sym_name = "main"}}> ({{
      "func.return"() : () -> ()
    }}) : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""
CONSTANT, TRANSIENT = "!hl_seq.resource<constant, 16>", "!hl_seq.resource<transient, 16>"
GLOBAL = f'"util.global"() <{{{{sym_name = "{{}}", type = {CONSTANT}}}}}> : () -> ()'
BOTH = GLOBAL.format("a") + "\n" + GLOBAL.format("b") + "\n"
ONE = f'%one = "flow.splat"() <{{value = dense<1.0> : tensor<f32>}}> : () -> {TRANSIENT}\n'
STORE = f'"util.global_store"(%one) <{{{{ref = @{{}}}}}}> : ({TRANSIENT}) -> ()\n'
COPY = (
    f'%a = "util.global_load"() <{{ref = @a}}> : () -> {CONSTANT}\n'
    f'%one = "hl_seq.clone"(%a) : ({CONSTANT}) -> {TRANSIENT}\n'
)


def initializer(body: str) -> str:
    return f'"util.initializer"() <{{kind = "program"}}> ({{\n{body}"util.return"() : () -> ()\n}}) : () -> ()\n'


MAKE, DERIVE = initializer(ONE + STORE.format("a")), initializer(COPY + STORE.format("b"))

GLOBALS = [
    (BOTH + MAKE + DERIVE, []),
    (BOTH + initializer(ONE + STORE.format("a") + STORE.format("b")), []),
    (BOTH + DERIVE + MAKE, ["global @a is loaded before it is stored to"]),
    (BOTH + MAKE, ["global @b has no value, and no initializer stores to it"]),
    (BOTH + MAKE + MAKE + DERIVE, ["global @a is stored to although it has its value"]),
    (
        GLOBAL.format("a").replace("16", "0"),
        [
            "global @a has no value, and no initializer stores to it",
            "is of type !hl_seq.resource<constant, 0>, which has no bytes: create it where it is used",
        ],
    ),
]


@pytest.mark.parametrize(("text", "messages"), GLOBALS)
def test_globals(text: str, messages: list[str]) -> None:
    """What is right compiles, also where nobody loads what is computed."""
    try:
        module = write(Compilation(targets=("reference",), start="hl_seq").rows(PROGRAM.format(text)))
    except CompileError as error:
        assert [found.message for found in error.diagnostics][: len(messages)] == messages
    else:
        read_module(module)
        assert not messages


IMPORT = '%{} = "hl_seq.import"(%{}) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>\n'
SPLAT = f'%s = "flow.splat"() <{{value = dense<1.0> : tensor<f32>}}> : () -> {TRANSIENT}\n'
IMPORTS = [
    (IMPORT.format("a", "x") + IMPORT.format("b", "y") + SPLAT, []),
    (IMPORT.format("a", "x") + SPLAT + IMPORT.format("b", "y"), ["imports an argument after other ops"]),
    (IMPORT.format("a", "x") + IMPORT.format("b", "x"), ["imports an argument twice"]),
]


@pytest.mark.parametrize(("body", "messages"), IMPORTS)
def test_arguments_are_imported_in_front_once(body: str, messages: list[str]) -> None:
    """An argument lives from the start: what is done to its memory by a donated result must know."""
    text = PROGRAM.format("").replace("type = () -> ()", "type = (tensor<4xf32>, tensor<4xf32>) -> ()")
    text = text.replace('"func.return"', "^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):\n" + body + '"func.return"')
    try:
        Compilation(targets=("reference",), start="hl_seq").rows(text)
        found = []
    except CompileError as error:
        found = [diagnostic.message for diagnostic in error.diagnostics]
    assert found == messages
