"""Text is assembled or AssemblyError; what is assembled can be written and read, and its text gives the same file."""

import random
import re
from functools import cache

from fuzzing import ROOT, check, tokens_mutated

from orchestrion.schema.assembler import AssemblyError, assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.disassembler import disassemble
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import INSTRUCTIONS
from orchestrion.schema.writer import write

MAX_BYTES = 8192
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[@%^#]?[\w.$-]+(?:<[^<>\n]*>)?|->|[^\w\s]|//[^\n]*')
POOL = tuple(row.name.encode() for row in INSTRUCTIONS)


@cache
def _texts() -> list[str]:
    folders = ("tests/fuzz/programs", "tests/vm/programs", "tests/vm/modules", "tests/e2e/modules", "tests/golden")
    files = [path for folder in folders for path in sorted((ROOT / folder).glob("*.asm"))]
    texts = [path.read_text().replace("{payload}", "00") for path in files]
    return [*texts, *(text[text.index("program") :] for text in texts if "program" in text)]


@cache
def _pool() -> list[str]:
    return sorted({token for text in _texts() for token in _TOKEN.findall(text)}) + [row.name for row in INSTRUCTIONS]


def seeds():
    """Whole texts where they are short, else the first functions in a program of their own."""
    for text in _texts():
        if len(text) <= MAX_BYTES:
            yield text.encode()
            continue
        functions = re.findall(r"^ *func @.*?^ *}\n", text, re.S | re.M)
        for at in range(0, min(len(functions), 60), 4):
            yield ('program @p profile "x" {\n' + "".join(functions[at : at + 4]) + "}\n").encode()


def mutate(choose: random.Random, data: bytes) -> bytes:
    tokens = _TOKEN.findall(data.decode(errors="ignore"))
    return " ".join(tokens_mutated(choose, tokens, _pool())).encode()


def one_input(data: bytes) -> None:
    try:
        module = assemble(data.decode(errors="ignore"))
    except AssemblyError as error:
        check(error.line >= 1 and error.column >= 1, f"{error} is at no place")
        return
    try:
        file = write(module)
    except ModuleError:
        return
    text = disassemble(read_module(file))
    check(write(assemble(text)) == file, "the text of the module gives another module")
