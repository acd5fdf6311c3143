"""A module that is read is disassembled or ModuleError; the text is assembled, and then says the same."""

import random

import module_corpus
import mutate_file
from fuzzing import check

from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.disassembler import disassemble
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write

MAX_BYTES = 8192
_CHANGES = (
    mutate_file.row_fields,
    mutate_file.row_order,
    mutate_file.strings,
    mutate_file.segments,
    mutate_file.counts,
)


def seeds():
    return [data for data in module_corpus.written() if len(data) <= MAX_BYTES]


def mutate(choose: random.Random, data: bytes) -> bytes:
    return choose.choice(_CHANGES)(choose, data)


repair = mutate_file.sealed


def one_input(data: bytes) -> None:
    try:
        text = disassemble(read_module(data))
    except ModuleError:
        return
    again = disassemble(read_module(write(assemble(text))))
    check(again == text, "the module of the text has another text")
