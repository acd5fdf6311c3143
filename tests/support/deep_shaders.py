"""SPIR-V whose values take much stack, as text for the assembler of the tests, and a process that runs such a shader.

Each function of `SHADERS` gives the body of an entry `main` with two bindings, of `u32` and of vectors of four `u32`,
and eight invocations: so many steps of one kind, around a barrier. `python deep_shaders.py DEVICE` runs the words of
its standard input and prints the first eight words of the first binding, which held 0, 1, 2, ...
"""

import json
import sys
from collections.abc import Callable

import numpy as np
from shader_text import head

INVOCATIONS = 8
#: of a loop of `loops`
VALUES = 100
_BYTES = 1 << 16

_HEAD = (
    head(
        buffers=("a",),
        numbers=(0, 1, 2, 7, "0x108"),
        decorations="""
OpDecorate %vectors ArrayStride 16
OpDecorate %vector_block Block
OpMemberDecorate %vector_block 0 Offset 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 1
""",
        types="""
%vector = OpTypeVector %u32 4
%vectors = OpTypeRuntimeArray %vector
%vector_block = OpTypeStruct %vectors
%vector_block_pointer = OpTypePointer StorageBuffer %vector_block
%vector_pointer = OpTypePointer StorageBuffer %vector
""",
        variables="%b = OpVariable %vector_block_pointer StorageBuffer",
    )
    + """%i = OpLoad %u32 %lane
%place = OpAccessChain %p_word %a %0 %i
%d = OpLoad %u32 %place
"""
)
_TAIL = "OpReturn\nOpFunctionEnd\n"
_BARRIER = "OpControlBarrier %2 %2 %0x108"


def vectors(steps: int) -> list[str]:
    """Vectors that are loaded before a barrier and stored behind it: all are live at the barrier."""
    lines = ["%i0 = OpIAdd %u32 %i %1"]
    lines += [f"%i{k + 1} = OpIAdd %u32 %i{k} %1" for k in range(steps)]
    for k in range(steps):
        lines += [f"%p{k} = OpAccessChain %vector_pointer %b %0 %i{k}", f"%v{k} = OpLoad %vector %p{k}"]
    lines.append(_BARRIER)
    for k in reversed(range(steps)):
        lines += [f"%q{k} = OpAccessChain %vector_pointer %b %0 %i{k}", f"OpStore %q{k} %v{k}"]
    return lines


def numbers(steps: int) -> list[str]:
    """Products that are live at a barrier, then combined, the last one first."""
    lines = ["%v0 = OpIAdd %u32 %d %1", *(f"%v{k + 1} = OpIMul %u32 %v{k} %d" for k in range(steps)), _BARRIER]
    lines.append(f"%x{steps} = OpBitwiseXor %u32 %d %v{steps}")
    lines += [f"%x{k} = OpBitwiseXor %u32 %x{k + 1} %v{k}" for k in reversed(range(steps))]
    return [*lines, "OpStore %place %x0"]


def shifts(steps: int) -> list[str]:
    """Shifts of which a hundred are live at a time: their temporaries take more stack than their results."""
    lines = [_BARRIER, "%v0 = OpIAdd %u32 %d %1"]
    for k in range(steps):
        lines += [
            f"%n{k} = OpBitwiseAnd %u32 %v{max(0, k - 100)} %7",
            f"%s{k} = OpShiftLeftLogical %u32 %v{k} %n{k}",
            f"%v{k + 1} = OpIAdd %u32 %s{k} %i",
        ]
    return [*lines, f"OpStore %place %v{steps}"]


def loops(steps: int) -> list[str]:
    """Loops one after the other, each with VALUES values that its header chooses."""
    lines, before = [_BARRIER, "%v0_0 = OpIAdd %u32 %d %d"], "%start"
    lines += [f"%v0_{p + 1} = OpIAdd %u32 %v0_{p} %d" for p in range(VALUES - 1)]
    for k in range(1, steps + 1):
        lines += [f"OpBranch %h{k}", f"%h{k} = OpLabel", f"%k{k} = OpPhi %u32 %0 {before} %n{k} %c{k}"]
        lines += [f"%v{k}_{p} = OpPhi %u32 %v{k - 1}_{p} {before} %x{k}_{p} %c{k}" for p in range(VALUES)]
        lines += [
            f"%on{k} = OpULessThan %bool %k{k} %2",
            f"OpLoopMerge %m{k} %c{k} 0", f"OpBranchConditional %on{k} %b{k} %m{k}", f"%b{k} = OpLabel",
            *(f"%x{k}_{p} = OpIAdd %u32 %v{k}_{p} %k{k}" for p in range(VALUES)),
            f"OpBranch %c{k}", f"%c{k} = OpLabel", f"%n{k} = OpIAdd %u32 %k{k} %1",
            f"OpBranch %h{k}", f"%m{k} = OpLabel",
        ]  # fmt: skip
        before = f"%m{k}"
    lines.append(f"%sum0 = OpIAdd %u32 %0 %v{steps}_0")
    lines += [f"%sum{p} = OpIAdd %u32 %sum{p - 1} %v{steps}_{p}" for p in range(1, VALUES)]
    return [*lines, f"OpStore %place %sum{VALUES - 1}"]


SHADERS: dict[str, Callable[[int], list[str]]] = {
    "vectors": vectors, "numbers": numbers, "shifts": shifts, "loops": loops,
}  # fmt: skip


def text(name: str, steps: int) -> str:
    return _HEAD + "\n".join(SHADERS[name](steps)) + "\n" + _TAIL


def expected(name: str, steps: int) -> list[int]:
    """The first words of the first binding afterwards."""
    return [_expected(name, steps, lane) for lane in range(INVOCATIONS)]


def _expected(name: str, steps: int, lane: int) -> int:
    mask = 0xFFFFFFFF
    if name == "vectors":
        return lane
    if name == "loops":
        return sum(lane * (p + 2) + steps for p in range(VALUES)) & mask
    values = [lane + 1]
    for k in range(steps):
        if name == "numbers":
            values.append(values[-1] * lane & mask)
        else:
            values.append((values[-1] << (values[max(0, k - 100)] & 7)) + lane & mask)
    if name == "shifts":
        return values[-1]
    out = lane
    for value in values:
        out ^= value
    return out


def main() -> None:
    from orchestrion.hal.backend import Entry
    from orchestrion.hal.policy import Policy
    from orchestrion.hal.registry import open_device

    size = (INVOCATIONS, 1, 1)
    entries = (Entry("main", (("readwrite", 4), ("readwrite", 16)), 0, size),)
    with open_device(sys.argv[1], policy=Policy(allow_native_code=True)) as device:
        executable = device.create_executable("spirv", memoryview(sys.stdin.buffer.read()), entries)
        first, second = (device.allocator.allocate(_BYTES) for _ in range(2))
        first.write(np.arange(_BYTES // 4, dtype=np.uint32))
        commands = device.create_command_buffer()
        commands.dispatch(executable, 0, size, [(first, 0, _BYTES), (second, 0, _BYTES)], b"")
        commands.finish()
        device.queue.execute(commands)
        out = np.empty(_BYTES // 4, np.uint32)
        first.read(out)
        for thing in (commands, first, second, executable):
            thing.release()
    print(json.dumps(out[:INVOCATIONS].tolist()))


if __name__ == "__main__":
    main()
