"""SPIR-V that takes its compiler long, as text for the assembler of the tests: much arithmetic and no loop."""

import random

_HEAD = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
%void = OpTypeVoid
%function = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%0 = OpConstant %u32 0
%words = OpTypeRuntimeArray %u32
%block = OpTypeStruct %words
%block_pointer = OpTypePointer StorageBuffer %block
%word_pointer = OpTypePointer StorageBuffer %u32
%a = OpVariable %block_pointer StorageBuffer
%main = OpFunction %void None %function
%entry = OpLabel
%place = OpAccessChain %word_pointer %a %0 %0
%v0 = OpLoad %u32 %place
"""
_TAIL = """
OpStore %place %v{last}
OpReturn
OpFunctionEnd
"""
_OPS = ("OpIMul", "OpIAdd", "OpBitwiseXor", "OpShiftRightLogical", "OpUDiv", "OpUMod")


def straight_line(instructions: int) -> str:
    """An entry `main` with one binding of `u32`, whose first value goes through so many instructions of five words."""
    chosen = random.Random(instructions)
    lines = [
        f"%v{i + 1} = {chosen.choice(_OPS)} %u32 %v{i} %v{chosen.randrange(max(i - 40, 0), i + 1)}"
        for i in range(instructions)
    ]
    return _HEAD + "\n".join(lines) + _TAIL.format(last=instructions)
