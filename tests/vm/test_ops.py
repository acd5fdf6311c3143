"""Every instruction against its self-checking programs in `programs/`: `.asm` by hand, `.cases` as tables.

The results in the tables are those of NumPy, of exact fractions and of strings of bits; bits decide, not `==`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrion.schema.assembler import assemble
from orchestrion.schema.isa import BY_NAME, INSTRUCTIONS
from orchestrion.vm.errors import ProgramFailed, VmError

PROGRAMS = Path(__file__).parent / "programs"
LETTERS = {"i32": "i", "i64": "l", "f32": "f", "f64": "d"}
BITS = {"f32": "i32", "f64": "i64"}


def case_tables() -> Iterator[tuple[str, list[str]]]:
    """Instruction and the lines below it, over all `.cases` files."""
    for path in sorted(PROGRAMS.glob("*.cases")):
        name, lines = "", []
        for line in path.read_text().splitlines():
            if line.startswith("//"):
                continue
            if not line.startswith(" "):
                if name:
                    yield name, lines
                name, lines = line, []
            else:
                lines.append(line.strip())
        yield name, lines


CASES = dict(case_tables())


def function_of(name: str, lines: list[str]) -> str:
    """The cases of an instruction as a function that checks each, and one per case that traps."""
    row = BY_NAME[name]
    banks = [operand.kind for operand in row.operands]
    body: list[str] = []
    traps: list[str] = []
    for line in lines:
        operands, _, message = line.partition(" traps ")
        operands, _, result = operands.partition(" = ")
        used = dict.fromkeys(LETTERS, 0)

        def fresh(bank: str, used: dict[str, int] = used) -> str:
            used[bank] += 1
            return f"%{LETTERS[bank]}{used[bank] - 1}"

        registers, code = [], []
        for bank, text in zip(banks[:-1], operands.split(), strict=True):
            registers.append(fresh(bank))
            code.append(f"{registers[-1]} = {bank}.const {text}")
        got = fresh(banks[-1])
        code.append(f"{got} = {name} {', '.join(registers)}")
        if message:
            traps.append(function_text(f'@"{name} traps: {message}"', code))
            continue
        want = fresh(banks[-1])
        code.append(f"{want} = {banks[-1]}.const {result}")
        bits = BITS.get(banks[-1], banks[-1])
        if bits != banks[-1]:
            got_bits, want_bits = fresh(bits), fresh(bits)
            code += [f"{got_bits} = {bits}.reinterpret_{banks[-1]} {got}"]
            code += [f"{want_bits} = {bits}.reinterpret_{banks[-1]} {want}"]
            got, want = got_bits, want_bits
        equal = fresh("i32")
        code += [f"{equal} = {bits}.eq {got}, {want}", f'check {equal}, "{name} {line}"']
        body += code
    return function_text(f"@{name}", body) + "".join(traps)


def function_text(name: str, lines: list[str]) -> str:
    return f"func {name} () -> () {{\n" + "\n".join(lines) + "\nreturn ()\n}\n"


def sources() -> dict[str, str]:
    found = {path.stem: path.read_text() for path in sorted(PROGRAMS.glob("*.asm"))}
    for name, lines in CASES.items():
        found[name] = f'program @test profile "reference" {{\n{function_of(name, lines)}}}\n'
    return found


SOURCES = sources()


def named(source: str) -> list[str]:
    """The names of the functions in a source that are tests."""
    functions = assemble(source).programs[0].functions
    return [row.name for row in functions if not row.name.startswith("_")]


@pytest.mark.parametrize("source", SOURCES)
def test_programs_check_themselves(assembled: Callable[[str], Any], source: str) -> None:
    program = assembled(SOURCES[source])
    for name in named(SOURCES[source]):
        _, _, message = name.partition(" traps: ")
        if not message:
            program.call(name)
            continue
        with pytest.raises(VmError) as caught:
            program.call(name)
        assert message in str(caught.value), name


def test_every_instruction_has_a_program() -> None:
    tested = {name.partition(" traps: ")[0] for source in SOURCES.values() for name in named(source)}
    assert tested == {row.name for row in INSTRUCTIONS}


def test_a_program_that_fails_is_noticed(assembled: Callable[[str], Any]) -> None:
    program = assembled(f'program @t profile "reference" {{ {function_of("i32.add", ["1 2 = 4"])} }}')
    with pytest.raises(ProgramFailed, match=r"i32.add 1 2 = 4\n  at i32.add pc 0x"):
        program.call("i32.add")
