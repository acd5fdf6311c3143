"""Only `schema/isa.py` and `vm/ops/`, which implements opcodes, name them. The rest of `vm/` asks for effects.

So a new branch works everywhere once it has a row and a function, and `vm.ops` cannot be imported if one is missing.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrion.schema.isa import BANKS, BY_NAME

VM = Path(__file__).parents[2] / "vm"
#: the program that adds a branch to the table
NEW_BRANCH = Path(__file__).parents[1] / "support" / "new_branch.py"
#: modules that look at instructions import one of these or use this attribute
_INSTRUCTIONS = ("schema.isa", "schema.encoding", ".verifier")


def named(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each opcode that a module names, if it is one that looks at instructions."""
    tree = ast.parse(source)
    if not any(_looks_at_instructions(node) for node in ast.walk(tree)):
        return
    pieces = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in pieces and _names_some(node.value):
            yield node.lineno, str(node.value)
        elif isinstance(node, ast.JoinedStr):
            yield from ((node.lineno, name) for name in _rendered(node) if name in BY_NAME)


def _looks_at_instructions(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return module.endswith(_INSTRUCTIONS)
    return isinstance(node, ast.Attribute) and node.attr == "decoded"


def _names_some(text: object) -> bool:
    """Whether it is an opcode, or what the names of several begin with, such as `global.load.`."""
    return isinstance(text, str) and (
        text in BY_NAME or text.endswith(".") and any(name.startswith(text) for name in BY_NAME)
    )


def _rendered(node: ast.JoinedStr) -> Iterator[str]:
    """The text with a bank in every place."""
    for bank in BANKS:
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else bank for part in node.values)


def test_no_other_module_names_opcodes() -> None:
    found = {
        f"{path.relative_to(VM)}:{line}": name
        for path in sorted(VM.rglob("*.py"))
        if path.parent != VM / "ops"
        for line, name in named(path.read_text(encoding="utf-8"))
    }
    assert found == {}


def test_a_module_that_names_opcodes_is_found() -> None:
    import_line = "from orchestrion.schema.isa import INSTRUCTIONS\n"
    for text in (
        'x = ("br", "br_if")',
        'row.name == "return"',
        'name.startswith("list.")',
        '{f"{bank}.const" for bank in banks}',
    ):
        assert list(named(import_line + text)), text
        assert list(named(f"code.decoded\n{text}")), text
    assert not list(named('x = "return"'))
    assert not list(named(import_line + 'x = f"return {y}"'))


def test_a_new_branch_needs_a_row_and_a_function_alone() -> None:
    """The verifiers, the interpreter, the translation, initializers, constants and fuel treat it by its effect."""
    done = subprocess.run([sys.executable, str(NEW_BRANCH)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_a_branch_without_a_function_is_found() -> None:
    done = subprocess.run([sys.executable, str(NEW_BRANCH), "forget"], capture_output=True, text=True, check=False)
    assert "instructions without a function: ['br_unless']" in done.stderr


def test_an_end_in_the_wrong_table_is_found() -> None:
    """A branch among the ops that work on registers alone is refused when `vm.ops` is imported."""
    program = (
        "from orchestrion.schema import isa\n"
        "from dataclasses import replace\n"
        "rows = tuple(replace(row, effect=isa.Effect.BRANCH) if row.name == 'i32.add' else row"
        " for row in isa.INSTRUCTIONS)\n"
        "isa.INSTRUCTIONS = rows\n"
        "import orchestrion.vm.ops\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "in the wrong table, OPS or ENDS: ['i32.add']" in done.stderr


def test_registers_without_a_rule_are_found() -> None:
    """The verifier refuses a row with counted registers that none of its checks looks at."""
    program = (
        "from orchestrion.schema import isa\n"
        "from dataclasses import replace\n"
        "add = replace(isa.BY_NAME['fail'], operands=isa.BY_NAME['return'].operands)\n"
        "isa.INSTRUCTIONS = (*isa.INSTRUCTIONS, add)\n"
        "import orchestrion.vm.verifier\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "fail: no rule says what the registers values may be" in done.stderr
