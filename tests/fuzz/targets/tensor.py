"""Tensor bytecode is decoded or ModuleError; it is encoded to the same bytes, and a run touches what it says.

Buffers lie between guard bytes. A run may write bindings that it says it writes, as far as it says, and nothing else.
"""

import random

import module_corpus
import mutate_tensor
import numpy as np
from fuzzing import check, words_mutated
from mutate_numbers import Impossible

from orchestrion.hal.errors import HalError
from orchestrion.hal.reference.executable import Code
from orchestrion.schema import tensor_encoding, writer
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.tensor_bytecode import FORMAT, ROWS
from orchestrion.schema.tensor_disassembler import disassemble

SECONDS = 10.0
POOL = tuple(row.code.to_bytes(2, "little") for row in ROWS)
#: bytes and operations of a run that is tried
MAX_MEMORY, OPERATIONS, GUARD = 1 << 20, 1 << 22, 64


def seeds():
    for _, module in module_corpus.assembled():
        yield from _payloads(module)
    yield from module_corpus.tensor_entries()
    for data, _ in module_corpus.golden_variants(FORMAT):
        if len(data) <= 4096:
            yield data


def _payloads(module: writer.Module):
    for program in module.programs:
        for executable in program.executables:
            yield from (bytes(row.payload) for row in executable.variants if row.format == FORMAT)


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Instructions, sizes or words."""
    variant = writer.Variant(FORMAT, data, [(1, 1, 1)])
    program = writer.Program("p", "reference", [], [], executables=[writer.Executable("e", [], [variant])])
    module = writer.Module([program])
    change = choose.choice((mutate_tensor.instructions, mutate_tensor.instructions, mutate_tensor.resize, None))
    try:
        if change is not None:
            return next(_payloads(change(choose, module, [module])))
    except (Impossible, ValueError, ModuleError):
        pass
    return words_mutated(choose, data, choose.choice((2, 4)))


def one_input(data: bytes) -> None:
    payload = memoryview(data)
    try:
        code = Code(payload, lambda: None)
    except (ModuleError, HalError):
        return
    if code.template is None:
        again = tensor_encoding.encode(code.entries)  # with the least minor version that it needs
        check(again[:6] + data[6:8] + again[8:] == data, "what is decoded is encoded otherwise")
        disassemble(payload)
    for ordinal in range(len(code.entries))[:8]:
        for overlapping in (False, True):
            _run(code, ordinal, overlapping, (3, 5, 7, 2)[: code.parameters(ordinal)])


def _run(code: Code, ordinal: int, overlapping: bool, words: tuple[int, ...]) -> None:
    if len(words) != code.parameters(ordinal):
        return
    try:
        entry = code.entry(ordinal, overlapping, words)
        accesses = (code._instance(ordinal, words)[0] if words else code.entries[ordinal]).accesses
    except (ModuleError, HalError):
        return
    sizes = [length for _, length in accesses]
    if entry.scratch_bytes + sum(sizes) > MAX_MEMORY or entry.operations > OPERATIONS:
        return
    memories = [np.full(2 * GUARD + size + -size % 16, 0x5A, np.uint8) for size in sizes]
    for at, memory in enumerate(memories):
        memory[GUARD:-GUARD] = np.arange(memory.size - 2 * GUARD) * (37 + at) % 251
    before = [memory.copy() for memory in memories]
    registers = entry.bind([(memory, GUARD) for memory in memories])
    try:
        with np.errstate(all="ignore"):
            for step in entry.steps:
                step(registers)
    except HalError:
        return
    for (access, length), memory, old in zip(accesses, memories, before, strict=True):
        changed = np.flatnonzero(memory != old) - GUARD
        allowed = length if access != "read" else 0
        outside = (changed < 0) | (changed >= allowed)
        check(not outside.any(), f"bytes {changed[outside][:4]} of a {access} binding of {length} bytes are written")
