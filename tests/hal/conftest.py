"""Helpers for tests of drivers: a SPIR-V assembler over the rows of `orchestrion.schema.spirv`."""

import shlex
from collections.abc import Callable

import numpy as np
import pytest

from orchestrion.schema import spirv

NAMES: dict[str, int] = (
    {"Logical": 0, "GLSL450": 1, "GLCompute": 5, "LocalSize": 17, "None": 0}
    | {row.name: row.code for row in spirv.CAPABILITIES}
    | {row.name: row.code for row in spirv.EXT_INSTS}
    | spirv.STORAGE_CLASSES
    | spirv.BUILTINS
    | {name: code for name, (code, _, _) in spirv.DECORATIONS.items()}
)


def assemble(text: str) -> bytes:
    """Words of SPIR-V assembly: `%a = OpX %type 1 "text"`, enumerants by name, `;` starts a comment."""
    ids: dict[str, int] = {}
    words: list[int] = []
    for line in text.splitlines():
        tokens = shlex.split(line.partition(";")[0], posix=False)
        if not tokens:
            continue
        result = []
        if "=" in tokens[:2]:
            result, tokens = [tokens[0]], tokens[2:]
        op = spirv.OP_BY_NAME[tokens[0]]
        operands = tokens[1:]
        if result:
            operands.insert(1 if "T" in op.layout else 0, result[0])
        body: list[int] = []
        for token in operands:
            if token.startswith("%"):
                body.append(ids.setdefault(token, len(ids) + 1))
            elif token.startswith('"'):
                data = token.strip('"').encode() + b"\0"
                body += np.frombuffer(data + b"\0" * (-len(data) % 4), "<u4").tolist()
            else:
                body.append(NAMES[token] if token in NAMES else int(token, 0))
        words += [(len(body) + 1) << 16 | op.code, *body]
    return np.array([spirv.MAGIC, spirv.VERSION, 0, len(ids) + 1, 0, *words], "<u4").tobytes()


@pytest.fixture(scope="session")
def spirv_assembler() -> Callable[[str], bytes]:
    return assemble
