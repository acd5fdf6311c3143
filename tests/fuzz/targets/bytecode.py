"""Any bytes as the bytecode of a function: refused, or run under limits to a result or a named error, on the reference
device and on the null device.

An input is six bytes (the device, registers per bank) and code. The function stands in a module with the functions,
globals, constants, executables and imports that instructions may refer to.
"""

import random
from functools import cache

import module_corpus
import mutants
import mutate_bytecode
from fuzzing import check, words_mutated
from mutate_numbers import Impossible

from orchestrion.hal.null.driver import NullDriver
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema.assembler import assemble
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.isa import BANKS, INSTRUCTIONS
from orchestrion.schema.rows import Access
from orchestrion.schema.writer import (
    Binding,
    Constant,
    Entry,
    Executable,
    Export,
    Function,
    Global,
    Import,
    Module,
    Program,
    Variant,
    write,
)  # fmt: skip

SECONDS = 20.0
POOL = tuple(row.opcode.to_bytes(2, "little") for row in INSTRUCTIONS)
_DRIVERS = (ReferenceDriver(), NullDriver())
_HEAD = 6
_RETURN = bytes.fromhex("06000000")
_HELPERS = """program @p profile "reference" {
  func @numbers (i32, i64, f32, f64) -> (f64, i32) { return (%d0, %i0) }
  func @ref (any) -> any { return (move %r0) }
  func @nothing () -> () { return () }
}"""


@cache
def _frame() -> tuple[list[Function], dict[str, list[object]]]:
    """Functions to call, and the other rows."""
    helpers = assemble(_HELPERS).programs[0].functions
    rows: dict[str, list[object]] = {
        "globals": [Global(f"g{bank}", "any" if bank == "ref" else bank, True) for bank in BANKS],
        "constants": [Constant("c", bytes(range(64)), DTYPES["i8"], (64,))],
        "executables": [
            Executable(
                "e",
                [
                    Entry("add", [Binding(Access.Read, 16), Binding(Access.Read, 16), Binding(Access.Write, 16)]),
                    Entry("negate", [Binding(Access.Read, 16), Binding(Access.Write, 16)]),
                ],
                [Variant("tensor-bytecode", module_corpus.device_payload(), [(1, 1, 1), (1, 1, 1)])],
            )
        ],
    }
    return list(helpers), rows


def _module(data: bytes) -> Module:
    head, code = data[:_HEAD].ljust(_HEAD, b"\1"), data[_HEAD:]
    helpers, rows = _frame()
    fuzzed = Function("f", code, (), (), tuple(head[1:]))
    program = Program("p", "reference", [fuzzed, *helpers], [0], **rows)
    return Module([program], [Export("a")], [Import(row.name, row.signature) for row in HAL_IMPORTS.values()])


def seeds():
    yield bytes((0, 1, 1, 1, 1, 1)) + _RETURN
    for _, module in (*module_corpus.assembled(), *module_corpus.of_the_vm()):
        for program in module.programs:
            for row in program.functions:
                if max(row.registers) < 256:
                    yield bytes((0, *row.registers)) + row.bytecode


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Instructions of the function replaced, changed, inserted; or words of it."""
    head = bytearray(data[:_HEAD].ljust(_HEAD, b"\1"))
    if choose.random() < 0.3:
        head[0] ^= 1
    if choose.random() < 0.4:
        return bytes(head) + words_mutated(choose, data[_HEAD:], 2)
    try:
        module = mutate_bytecode.instructions(choose, _module(data), [])
    except (Impossible, ValueError):
        return bytes(head) + words_mutated(choose, data[_HEAD:], 2)
    return bytes(head) + module.programs[0].functions[0].bytecode


def one_input(data: bytes) -> None:
    try:
        file = write(_module(data))
    except ValueError:  # an odd number of bytes
        return
    mutants.run(file, driver=_DRIVERS[data[0] & 1 if data else 0])
    check(not mutants.in_threads, f"in a thread: {mutants.in_threads}")
