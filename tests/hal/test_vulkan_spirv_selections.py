"""Selections with two arms are written as two with one arm: the same results, for a driver that builds them quickly."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from everyday import of_the_day
from guarded_shaders import case, interpret
from named_devices import open_named
from shader_text import head
from shader_trials import words_of

from orchestrion.hal.backend import Entry
from orchestrion.hal.device import Device
from orchestrion.hal.policy import Policy
from orchestrion.hal.quirks import QUIRKS_VARIABLE
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.spirv_selections import split_selections
from orchestrion.schema.profiles import FEATURES
from orchestrion.schema.spirv import OP_BY_NAME

FOLDER = Path(__file__).parent / "spirv"
TAIL = "OpReturn\nOpFunctionEnd\n"
#: in a loop; without the rewrite SwiftShader's time doubles with each, from 0.5 s for 22
SELECTIONS = 60
HEAD = (
    head(numbers=(0, 1, 3, 5, 64))
    + """%i = OpLoad %u32 %lane
OpBranch %head
%head = OpLabel
%turn = OpPhi %u32 %0 %start %next %onward
%v0 = OpPhi %u32 %i %start %last %onward
%more = OpULessThan %bool %turn %3
OpLoopMerge %done %onward None
OpBranchConditional %more %body %done
%body = OpLabel
"""
)
END = """%last = OpIAdd %u32 %v{count} %1
OpBranch %onward
%onward = OpLabel
%next = OpIAdd %u32 %turn %1
OpBranch %head
%done = OpLabel
%place = OpAccessChain %p_word %data %0 %i
OpStore %place %v0
"""
ONE = """%low{n} = OpUMod %u32 %v{n} %64
%c{n} = OpULessThan %bool %low{n} %5
OpSelectionMerge %m{n} None
OpBranchConditional %c{n} %t{n} %f{n}
%t{n} = OpLabel
%y{n} = OpIAdd %u32 %v{n} %3
OpBranch %m{n}
%f{n} = OpLabel
%z{n} = OpIMul %u32 %v{n} %5
OpBranch %m{n}
%m{n} = OpLabel
%v{after} = OpPhi %u32 %y{n} %t{n} %z{n} %f{n}
"""
Assembler = Callable[[str], bytes]


def arms(code: bytes) -> list[bool]:
    """Of each selection: whether it has a second arm."""
    words = words_of(code)
    found, at, merge = [], 5, 0
    while at < len(words):
        opcode = words[at] & 0xFFFF
        if opcode == OP_BY_NAME["OpBranchConditional"].code and merge:
            found.append(merge not in words[at + 2 : at + 4])
        merge = words[at + 1] if opcode == OP_BY_NAME["OpSelectionMerge"].code else 0
        at += words[at] >> 16
    return found


def test_no_second_arm_is_left(spirv_assembler: Assembler, tmp_path: Path) -> None:
    body = (FOLDER / "selections.spvasm").read_text()
    code = spirv_assembler((FOLDER / "head.spvasm").read_text() + body + TAIL)
    made = split_selections(code)
    assert (arms(code), arms(made)) == ([True, True, False], [False] * 5)
    assert split_selections(made) == made
    if shutil.which("spirv-val") is None:
        pytest.skip("spirv-val is not installed (Debian package spirv-tools)")
    path = tmp_path / "module.spv"
    path.write_bytes(made)
    subprocess.run(["spirv-val", "--target-env", "vulkan1.1", path], check=True)


def test_random_shaders_have_the_same_results(pytestconfig: pytest.Config) -> None:
    """In the interpreter; it leaves bytes open that depend on values which devices may choose."""
    compared, seeds = 0, of_the_day(pytestconfig, range(600), 3)
    for seed in seeds:
        given = case(seed, frozenset(FEATURES))
        if any(arms(given.shader.payload)):
            wanted, found = interpret(given), interpret(given, split_selections)
            if wanted.comparable and found.comparable:
                compared += 1
                for one, other, known in zip(wanted.buffers, found.buffers, wanted.known, strict=True):
                    assert (np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8))[known].all(), seed
    assert compared >= len(seeds) // 10


def results(device: Device, code: bytes) -> np.ndarray:
    executable = device.create_executable("spirv", memoryview(code), (Entry("main", (("write", 4),), 0, (8, 1, 1)),))
    buffer = device.allocator.allocate(32)
    commands = device.create_command_buffer()
    commands.dispatch(executable, 0, (8, 1, 1), [(buffer, 0, 32)], b"")
    commands.finish()
    device.queue.execute(commands)
    out = np.empty(8, np.uint32)
    buffer.read(out)
    for thing in (commands, buffer, executable):
        thing.release()
    return out


@pytest.mark.parametrize(("device", "quirk"), [("SwiftShader", "on"), ("llvmpipe", "swiftshader-selections")])
def test_a_loop_with_many_selections(
    device: str, quirk: str, monkeypatch: pytest.MonkeyPatch, spirv_assembler: Assembler
) -> None:
    """On SwiftShader it is built at once; without the row it takes longer than any test may."""
    monkeypatch.setenv(QUIRKS_VARIABLE, quirk)
    steps = "".join([ONE.format(n=n, after=n + 1) for n in range(SELECTIONS)])
    code = spirv_assembler(HEAD + steps + END.format(count=SELECTIONS) + TAIL)
    wanted = np.arange(8, dtype=np.uint32)
    for _ in range(3):
        for _ in range(SELECTIONS):
            wanted = np.where(wanted % 64 < 5, wanted + 3, wanted * 5).astype(np.uint32)
        wanted = wanted + np.uint32(1)
    with open_named(device, disabled=frozenset(), policy=Policy(True)) as opened:
        backend = opened.device_state.backend
        assert isinstance(backend, VulkanDevice) and backend.physical.splits_selections
        np.testing.assert_array_equal(results(opened, code), wanted)
