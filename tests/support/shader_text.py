"""The declarations in front of an entry in SPIR-V, as text for the assembler of the tests."""

from collections.abc import Sequence


def head(
    *,
    buffers: Sequence[str] = ("data",),
    size: str = "8 1 1",
    lane: bool = True,
    numbers: Sequence[str | int] = (0, 1),
    enabled: str = "",
    decorations: str = "",
    types: str = "",
    variables: str = "",
) -> str:
    """The text up to the first instruction of `%main`, an entry with workgroups of `size`.

    Binding n is the array of u32 `%{buffers[n]}`, of type `%p_block`; `%p_word` points to an element. `lane`: whether
    `%lane` is a variable with the index in the workgroup. `numbers` are u32 constants, named by their text. `enabled`:
    further capabilities, extensions and imports. The other texts follow the declarations of their kind.
    """
    lines = ["OpCapability Shader", enabled, "OpMemoryModel Logical GLSL450"]
    lines += ['OpEntryPoint GLCompute %main "main"' + " %lane" * lane, f"OpExecutionMode %main LocalSize {size}"]
    lines += ["OpDecorate %lane BuiltIn LocalInvocationIndex"] * lane
    lines += ["OpDecorate %words ArrayStride 4", "OpDecorate %block Block", "OpMemberDecorate %block 0 Offset 0"]
    for number, name in enumerate(buffers):
        lines += [f"OpDecorate %{name} DescriptorSet 0", f"OpDecorate %{name} Binding {number}"]
    lines += [decorations, "%void = OpTypeVoid", "%function = OpTypeFunction %void", "%bool = OpTypeBool"]
    lines += ["%u32 = OpTypeInt 32 0", *(f"%{number} = OpConstant %u32 {number}" for number in numbers)]
    lines += ["%words = OpTypeRuntimeArray %u32", "%block = OpTypeStruct %words"]
    lines += ["%p_block = OpTypePointer StorageBuffer %block", "%p_word = OpTypePointer StorageBuffer %u32"]
    lines += ["%p_lane = OpTypePointer Input %u32"] * lane + [types]
    lines += [f"%{name} = OpVariable %p_block StorageBuffer" for name in buffers]
    lines += ["%lane = OpVariable %p_lane Input"] * lane + [variables]
    lines += ["%main = OpFunction %void None %function", "%start = OpLabel"]
    return "\n".join(line.strip("\n") for line in lines if line) + "\n"
