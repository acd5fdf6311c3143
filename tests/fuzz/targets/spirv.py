"""SPIR-V is accepted or ModuleError (or Unsupported, for what the device lacks); of what is accepted, a sample is valid
for spirv-val too, where that is installed.

An input is a word that chooses the entries which the words behind it must have, and the words.
"""

import random
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

import module_corpus
from fuzzing import ROOT, check, words_mutated

from orchestrion.hal.backend import Entry
from orchestrion.hal.cts import kernels
from orchestrion.hal.errors import Unsupported
from orchestrion.hal.vulkan import spirv_check
from orchestrion.schema import spirv
from orchestrion.schema.errors import ModuleError

MAX_BYTES = 8192
#: of so many accepted payloads one is put before spirv-val, which takes 20 ms
SAMPLE = 64
_VALIDATOR = shutil.which("spirv-val")
_CASE = Entry("main", (("read", 4), ("readwrite", 1), ("readwrite", 4), ("write", 8)), 2, (8, 2, 1))
POOL = tuple(struct.pack("<HH", row.code, count) for row in spirv.OPS for count in (1, 2, 3, 4, 5))


@cache
def _corpus() -> tuple[list[tuple[Entry, ...]], list[bytes]]:
    """Entries by number, and seeds."""
    shipped = ROOT / "hal" / "cts" / "payloads" / "kernels.spv"
    found = [(shipped.read_bytes(), kernels.ENTRIES), *module_corpus.golden_variants("spirv")]
    found += [(words, (_CASE,)) for words in _assembled()]
    tables: list[tuple[Entry, ...]] = []
    seeds = []
    for words, entries in found:
        if entries not in tables:
            tables.append(entries)
        if len(words) + 4 <= MAX_BYTES:
            seeds.append(tables.index(entries).to_bytes(4, "little") + words)
    return tables, seeds


def _assembled() -> list[bytes]:
    """The checker's own cases, where an assembler is installed."""
    folder = ROOT / "tests" / "hal" / "spirv"
    if shutil.which("spirv-as") is None or not (folder / "head.spvasm").exists():
        return []
    head = (folder / "head.spvasm").read_text()
    found = []
    for path in sorted(folder.glob("*.spvasm")):
        body = path.read_text()
        text = head + body + ("" if "OpFunctionEnd" in body else "OpReturn\nOpFunctionEnd\n")
        command = ["spirv-as", "--target-env", "spv1.3", "-o", "-", "-"]
        made = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
        if path.stem != "head" and made.returncode == 0:
            found.append(made.stdout)
    return found


def seeds():
    return _corpus()[1]


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Words, or whole instructions: removed, doubled, moved, given another opcode."""
    if choose.random() < 0.4:
        return data[:4] + words_mutated(choose, data[4:], 4)
    head, lines = data[:24], _instructions(data[24:])
    if not lines:
        return data
    at, other = (choose.randrange(len(lines)) for _ in range(2))
    match choose.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = choose.choice(spirv.OPS).code.to_bytes(2, "little") + lines[at][2:]
        case _:
            lines[at] = lines[at][:4] + words_mutated(choose, lines[at][4:], 4)
            size = len(lines[at]) // 4
            lines[at] = lines[at][:2] + size.to_bytes(2, "little") + lines[at][4:]
    return head + b"".join(lines)


def _instructions(words: bytes) -> list[bytes]:
    lines, at = [], 0
    while at + 4 <= len(words):
        count = int.from_bytes(words[at + 2 : at + 4], "little")
        if not count:
            break
        lines.append(words[at : at + 4 * count])
        at += 4 * count
    return lines


def one_input(data: bytes) -> None:
    tables, _ = _corpus()
    payload = data[4:]
    try:
        spirv_check.verify(memoryview(payload), tables[int.from_bytes(data[:4], "little") % len(tables)])
    except (ModuleError, Unsupported) as error:
        check(str(error), "an error without a message")
        return
    if _VALIDATOR is not None and sha256(data).digest()[0] % SAMPLE == 0:
        _validate(payload)


def _validate(payload: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.spv"
        path.write_bytes(payload)
        command = ["spirv-val", "--target-env", "vulkan1.1", str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    check(ended.returncode == 0, f"accepted, but spirv-val says: {ended.stdout}{ended.stderr}")
