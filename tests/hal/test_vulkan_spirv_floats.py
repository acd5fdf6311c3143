"""The mode that keeps NaN: where it is added, for which widths, and that the words stay valid."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from orchestrion import compiler
from orchestrion.schema import spirv_floats
from orchestrion.schema.decoder import read_module

EXECUTION_MODE, CAPABILITY, EXTENSION = 16, 17, 10


def shaders(text: str) -> list[bytes]:
    """The payloads of a program for the target spirv."""
    module = read_module(compiler.compile(text, targets=["spirv"]))
    return [bytes(module.segment(row.payload)) for row in module.variants]


def instructions(code: bytes) -> list[tuple[int, ...]]:
    words = struct.unpack(f"<{len(code) // 4}I", code)
    found, at = [], 5
    while at < len(words):
        found.append((words[at] & 0xFFFF, *words[at + 1 : at + (words[at] >> 16)]))
        at += words[at] >> 16
    return found


def clamp(element: str) -> str:
    of = f"tensor<5x{element}>"
    return (
        f"func.func @main(%a: {of}, %b: {of}, %c: {of}) -> {of} {{\n"
        f'  %0 = "stablehlo.clamp"(%a, %b, %c) : ({of}, {of}, {of}) -> {of}\n'
        f'  "func.return"(%0) : ({of}) -> ()\n}}\n'
    )


@pytest.mark.parametrize(("element", "width"), [("f32", 32), ("f64", 64)])
def test_each_entry_gets_the_mode_of_its_floats(element: str, width: int, tmp_path: Path) -> None:
    for code in shaders(clamp(element)):
        made = spirv_floats.preserve_special(code, {32, 64})
        added = [row for row in instructions(made) if row not in instructions(code)]
        entries = [row[2] for row in instructions(code) if row[0] == 15]
        modes = [row for row in added if row[0] == EXECUTION_MODE]
        assert (EXECUTION_MODE, entries[0], spirv_floats.MODE_PRESERVE, width) in modes
        assert (CAPABILITY, spirv_floats.CAPABILITY_PRESERVE) in added
        assert sum(row[0] == EXTENSION for row in added) == 1
        if shutil.which("spirv-val") is None:
            pytest.skip("spirv-val is not installed (Debian package spirv-tools)")
        path = tmp_path / "module.spv"
        path.write_bytes(made)
        subprocess.run(["spirv-val", "--target-env", "vulkan1.1", path], check=True)


def test_other_modules_are_unchanged() -> None:
    (integers,) = shaders(clamp("i32"))
    assert spirv_floats.preserve_special(integers, {32, 64}) == integers
    (floats,) = shaders(clamp("f32"))
    assert spirv_floats.preserve_special(floats, {16}) == floats
