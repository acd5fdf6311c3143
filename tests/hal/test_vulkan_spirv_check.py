"""The SPIR-V checker: it accepts what is valid (spirv-val says so), refuses what is not, and raises nothing else."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orchestrion.hal.backend import Entry
from orchestrion.hal.vulkan import spirv_check, spirv_flow, spirv_rules, spirv_types
from orchestrion.schema import spirv
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.profiles import FEATURES

Assembler = Callable[[str], bytes]
MUTANTS = int(os.environ.get("ORCHESTRION_MUTANTS", "3000"))

HEAD = """
OpCapability Shader
OpCapability Float64
OpCapability Int64
OpCapability Int16
OpCapability Int8
OpCapability StorageBuffer16BitAccess
OpCapability StorageBuffer8BitAccess
OpExtension "SPV_KHR_8bit_storage"
%glsl = OpExtInstImport "GLSL.std.450"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %group %local %index
OpExecutionMode %main LocalSize 8 2 1
OpName %main "main"
OpDecorate %group BuiltIn WorkgroupId
OpDecorate %local BuiltIn LocalInvocationId
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %bytes ArrayStride 1
OpDecorate %shorts ArrayStride 2
OpDecorate %words ArrayStride 4
OpDecorate %doubles ArrayStride 8
OpDecorate %bytes_block Block
OpDecorate %shorts_block Block
OpDecorate %words_block Block
OpDecorate %doubles_block Block
OpDecorate %push Block
OpMemberDecorate %bytes_block 0 Offset 0
OpMemberDecorate %shorts_block 0 Offset 0
OpMemberDecorate %words_block 0 Offset 0
OpMemberDecorate %doubles_block 0 Offset 0
OpMemberDecorate %push 0 Offset 0
OpMemberDecorate %push 1 Offset 4
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %a NonWritable
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 1
OpDecorate %b Restrict
OpDecorate %c DescriptorSet 0
OpDecorate %c Binding 2
OpDecorate %c Aliased
OpDecorate %d DescriptorSet 0
OpDecorate %d Binding 3
OpDecorate %d NonReadable
OpDecorate %sum NoContraction
%void = OpTypeVoid
%function = OpTypeFunction %void
%bool = OpTypeBool
%u8 = OpTypeInt 8 0
%i16 = OpTypeInt 16 1
%u32 = OpTypeInt 32 0
%i32 = OpTypeInt 32 1
%u64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%f64 = OpTypeFloat 64
%u32x2 = OpTypeVector %u32 2
%u32x3 = OpTypeVector %u32 3
%bool3 = OpTypeVector %bool 3
%0 = OpConstant %u32 0
%1 = OpConstant %u32 1
%2 = OpConstant %u32 2
%8 = OpConstant %u32 8
%16 = OpConstant %u32 16
%0x108 = OpConstant %u32 0x108
%0x48 = OpConstant %u32 0x48
%minus1 = OpConstant %i32 0xffffffff
%big = OpConstant %u64 7 1
%byte = OpConstant %u8 255
%short = OpConstant %i16 0xffffffff
%one = OpConstant %f32 0x3f800000
%pi = OpConstant %f64 0x54442d18 0x400921fb
%true = OpConstantTrue %bool
%false = OpConstantFalse %bool
%null = OpConstantNull %u32
%ones = OpConstantComposite %u32x3 %1 %1 %1
%bytes = OpTypeRuntimeArray %u8
%shorts = OpTypeRuntimeArray %i16
%words = OpTypeRuntimeArray %u32
%doubles = OpTypeRuntimeArray %f64
%bytes_block = OpTypeStruct %bytes
%shorts_block = OpTypeStruct %shorts
%words_block = OpTypeStruct %words
%doubles_block = OpTypeStruct %doubles
%push = OpTypeStruct %u32 %f32
%tile = OpTypeArray %u32 %16
%p_tile = OpTypePointer Workgroup %tile
%p_tile_u32 = OpTypePointer Workgroup %u32
%p_local_tile = OpTypePointer Function %tile
%p_local_u32 = OpTypePointer Function %u32
%p_bytes = OpTypePointer StorageBuffer %bytes_block
%p_shorts = OpTypePointer StorageBuffer %shorts_block
%p_words = OpTypePointer StorageBuffer %words_block
%p_doubles = OpTypePointer StorageBuffer %doubles_block
%p_u8 = OpTypePointer StorageBuffer %u8
%p_i16 = OpTypePointer StorageBuffer %i16
%p_u32 = OpTypePointer StorageBuffer %u32
%p_f64 = OpTypePointer StorageBuffer %f64
%p_push = OpTypePointer PushConstant %push
%p_push_u32 = OpTypePointer PushConstant %u32
%p_push_f32 = OpTypePointer PushConstant %f32
%p_u32x3_in = OpTypePointer Input %u32x3
%p_u32_in = OpTypePointer Input %u32
%group = OpVariable %p_u32x3_in Input
%local = OpVariable %p_u32x3_in Input
%index = OpVariable %p_u32_in Input
%parameters = OpVariable %p_push PushConstant
%a = OpVariable %p_words StorageBuffer
%b = OpVariable %p_bytes StorageBuffer
%c = OpVariable %p_words StorageBuffer
%d = OpVariable %p_doubles StorageBuffer
%shared = OpVariable %p_tile Workgroup
%main = OpFunction %void None %function
%start = OpLabel
%spill = OpVariable %p_local_tile Function
%counter = OpVariable %p_local_u32 Function
%groups = OpLoad %u32x3 %group
%locals = OpLoad %u32x3 %local
%i = OpLoad %u32 %index
%lx = OpCompositeExtract %u32 %locals 0
%px = OpAccessChain %p_u32_in %local %1
%ly = OpLoad %u32 %px
%pn = OpAccessChain %p_push_u32 %parameters %0
%n = OpLoad %u32 %pn
%pf = OpAccessChain %p_push_f32 %parameters %1
%x = OpLoad %f32 %pf
%sum = OpFAdd %f32 %x %one
%pa = OpAccessChain %p_u32 %a %0 %n
%w = OpLoad %u32 %pa
%pb = OpAccessChain %p_u8 %b %0 %n
%narrow = OpLoad %u8 %pb
%pc = OpAccessChain %p_u32 %c %0 %i
%pd = OpAccessChain %p_f64 %d %0 %i
"""

TAIL = """
OpReturn
OpFunctionEnd
"""

ENTRY = Entry("main", (("read", 4), ("readwrite", 1), ("readwrite", 4), ("write", 8)), 2, (8, 2, 1))

#: bodies that are valid; together they hold every instruction of the table
BODIES: dict[str, str] = {
    "integers": """
        %s1 = OpIAdd %u32 %w %n
        %s2 = OpISub %u32 %s1 %i
        %s3 = OpIMul %i32 %s2 %minus1
        %s4 = OpSNegate %i32 %s3
        %s5 = OpUDiv %u32 %s2 %8
        %s6 = OpSDiv %i32 %s4 %minus1
        %s7 = OpUMod %u32 %s5 %8
        %s8 = OpSRem %i32 %s6 %s3
        %s9 = OpSMod %i32 %s8 %s3
        %b1 = OpShiftRightLogical %u32 %s7 %2
        %b2 = OpShiftRightArithmetic %i32 %s9 %2
        %b3 = OpShiftLeftLogical %u32 %b1 %byte
        %b4 = OpBitwiseOr %u32 %b3 %b2
        %b5 = OpBitwiseXor %u32 %b4 %w
        %b6 = OpBitwiseAnd %u32 %b5 %w
        %b7 = OpNot %u32 %b6
        %b8 = OpBitReverse %u32 %b7
        %b9 = OpBitCount %u32 %b8
        %e1 = OpExtInst %i32 %glsl SAbs %s9
        %e2 = OpExtInst %i32 %glsl SSign %e1
        %e3 = OpExtInst %u32 %glsl UMin %b9 %w
        %e4 = OpExtInst %u32 %glsl UMax %e3 %w
        %e5 = OpExtInst %i32 %glsl SMin %e2 %s9
        %e6 = OpExtInst %i32 %glsl SMax %e5 %s9
        %e7 = OpExtInst %i32 %glsl FindILsb %e4
        %e8 = OpExtInst %i32 %glsl FindSMsb %e6
        %e9 = OpExtInst %i32 %glsl FindUMsb %e4
        %wide = OpUConvert %u64 %b9
        %signed = OpSConvert %i16 %e9
        %pair = OpBitcast %u32x2 %wide
        %mixed = OpCompositeConstruct %u32x3 %w %n %i
        %added = OpIAdd %u32x3 %mixed %ones
        %lane = OpCompositeExtract %u32 %pair 1
        %z = OpAccessChain %p_u8 %b %0 %wide
        OpStore %z %byte
        OpStore %pc %lane""",
    "floats": """
        %f1 = OpFSub %f32 %sum %one
        %f2 = OpFMul %f32 %f1 %x
        %f3 = OpFDiv %f32 %f2 %x
        %f4 = OpFRem %f32 %f3 %x
        %f5 = OpFMod %f32 %f4 %x
        %f6 = OpFNegate %f32 %f5
        %g1 = OpExtInst %f32 %glsl RoundEven %f6
        %g2 = OpExtInst %f32 %glsl Trunc %g1
        %g3 = OpExtInst %f32 %glsl FAbs %g2
        %g4 = OpExtInst %f32 %glsl FSign %g3
        %g5 = OpExtInst %f32 %glsl Floor %g4
        %g6 = OpExtInst %f32 %glsl Ceil %g5
        %g7 = OpExtInst %f32 %glsl Sqrt %g6
        %g8 = OpExtInst %f32 %glsl FMin %g7 %x
        %g9 = OpExtInst %f32 %glsl FMax %g8 %x
        %h1 = OpExtInst %f32 %glsl Fma %g9 %x %one
        %h2 = OpExtInst %f32 %glsl NMin %h1 %x
        %h3 = OpExtInst %f32 %glsl NMax %h2 %x
        %wide = OpFConvert %f64 %h3
        %more = OpFAdd %f64 %wide %pi
        OpStore %pd %more
        %i1 = OpConvertFToU %u32 %h3
        %i2 = OpConvertFToS %i32 %h3
        %i3 = OpConvertSToF %f32 %i2
        %i4 = OpConvertUToF %f32 %i1
        %bits = OpBitcast %u32 %i4
        OpStore %pc %bits""",
    "comparisons": """
        %c1 = OpIEqual %bool %w %n
        %c2 = OpINotEqual %bool %w %minus1
        %c3 = OpUGreaterThan %bool %w %n
        %c4 = OpSGreaterThan %bool %w %n
        %c5 = OpUGreaterThanEqual %bool %w %n
        %c6 = OpSGreaterThanEqual %bool %w %n
        %c7 = OpULessThan %bool %w %n
        %c8 = OpSLessThan %bool %w %n
        %c9 = OpULessThanEqual %bool %w %n
        %c10 = OpSLessThanEqual %bool %w %n
        %d1 = OpFOrdEqual %bool %x %one
        %d2 = OpFUnordEqual %bool %x %one
        %d3 = OpFOrdNotEqual %bool %x %one
        %d4 = OpFUnordNotEqual %bool %x %one
        %d5 = OpFOrdLessThan %bool %x %one
        %d6 = OpFUnordLessThan %bool %x %one
        %d7 = OpFOrdGreaterThan %bool %x %one
        %d8 = OpFUnordGreaterThan %bool %x %one
        %d9 = OpFOrdLessThanEqual %bool %x %one
        %d10 = OpFUnordLessThanEqual %bool %x %one
        %d11 = OpFOrdGreaterThanEqual %bool %x %one
        %d12 = OpFUnordGreaterThanEqual %bool %x %one
        %d13 = OpIsNan %bool %x
        %d14 = OpIsInf %bool %x
        %l1 = OpLogicalEqual %bool %c1 %d1
        %l2 = OpLogicalNotEqual %bool %l1 %d14
        %l3 = OpLogicalOr %bool %l2 %true
        %l4 = OpLogicalAnd %bool %l3 %false
        %l5 = OpLogicalNot %bool %l4
        %v = OpIEqual %bool3 %locals %groups
        %any = OpAny %bool %v
        %all = OpAll %bool %v
        %both = OpLogicalAnd %bool %any %all
        %s = OpSelect %u32 %both %w %null
        %length = OpArrayLength %u32 %c 0
        %t = OpIAdd %u32 %s %length
        OpStore %pc %t""",
    "shared memory": """
        %ps = OpAccessChain %p_tile_u32 %shared %i
        OpStore %ps %w
        OpControlBarrier %2 %2 %0x108
        %row = OpIMul %u32 %ly %8
        %place = OpIAdd %u32 %row %lx
        %pt = OpAccessChain %p_tile_u32 %shared %place
        %t = OpLoad %u32 %pt
        %masked = OpExtInst %u32 %glsl UMin %t %8
        %pl = OpAccessChain %p_local_u32 %spill %masked
        OpStore %pl %t
        %low = OpUMod %u32 %t %16
        %pm = OpAccessChain %p_local_u32 %spill %low
        %m = OpLoad %u32 %pm
        OpStore %counter %m
        OpMemoryBarrier %1 %0x48
        %x1 = OpAtomicExchange %u32 %pc %1 %0 %m
        %x2 = OpAtomicCompareExchange %u32 %pc %1 %0x48 %0 %m %x1
        %x3 = OpAtomicIAdd %u32 %pt %2 %0x108 %x2
        %x4 = OpAtomicISub %u32 %pc %1 %0 %x3
        %x5 = OpAtomicSMin %u32 %pc %1 %0 %x4
        %x6 = OpAtomicUMin %u32 %pc %1 %0 %x5
        %x7 = OpAtomicSMax %u32 %pc %1 %0 %x6
        %x8 = OpAtomicUMax %u32 %pc %1 %0 %x7
        %x9 = OpAtomicAnd %u32 %pc %1 %0 %x8
        %y1 = OpAtomicOr %u32 %pc %1 %0 %x9
        %y2 = OpAtomicXor %u32 %pc %1 %0 %y1""",
    "selections": """
        %c1 = OpULessThan %bool %w %n
        OpSelectionMerge %m1 None
        OpBranchConditional %c1 %t1 %f1
        %t1 = OpLabel
        %v1 = OpIAdd %u32 %w %1
        OpBranch %m1
        %f1 = OpLabel
        %v2 = OpIAdd %u32 %w %2
        OpSelectionMerge %m2 None
        OpSwitch %v2 %def 1 %k1 2 %k2 3 %k1 4 %m2
        %def = OpLabel
        OpReturn
        %k1 = OpLabel
        OpBranch %m2
        %k2 = OpLabel
        OpBranch %m2
        %m2 = OpLabel
        %v3 = OpPhi %u32 %v2 %k1 %1 %k2 %2 %f1
        OpBranch %m1
        %m1 = OpLabel
        %v = OpPhi %u32 %v1 %t1 %v3 %m2
        OpStore %pc %v
        OpSelectionMerge %m3 1
        OpBranchConditional %c1 %t3 %f3
        %t3 = OpLabel
        OpReturn
        %f3 = OpLabel
        OpReturn
        %m3 = OpLabel
        OpUnreachable
        OpFunctionEnd""",
    "loops": """
        OpBranch %h1
        %h1 = OpLabel
        %k = OpPhi %u32 %0 %start %next %t1
        %acc = OpPhi %f32 %x %start %more %t1
        OpLoopMerge %m1 %t1 None
        OpBranch %test
        %test = OpLabel
        %on = OpULessThan %bool %k %n
        OpBranchConditional %on %body %m1
        %body = OpLabel
        %q = OpConvertUToF %f32 %k
        %more = OpFAdd %f32 %acc %q
        OpBranch %h2
        %h2 = OpLabel
        %j = OpPhi %u32 %0 %body %j1 %t2
        OpLoopMerge %m2 %t2 2
        OpBranchConditional %on %b2 %m2
        %b2 = OpLabel
        %odd = OpBitwiseAnd %u32 %j %1
        %isodd = OpIEqual %bool %odd %1
        OpSelectionMerge %m3 None
        OpBranchConditional %isodd %skip %m3
        %skip = OpLabel
        OpBranchConditional %on %t2 %m2
        %m3 = OpLabel
        OpBranch %t2
        %t2 = OpLabel
        %j1 = OpIAdd %u32 %j %1
        %again = OpULessThan %bool %j1 %n
        OpBranchConditional %again %h2 %m2
        %m2 = OpLabel
        OpBranch %t1
        %t1 = OpLabel
        %next = OpIAdd %u32 %k %1
        OpBranch %h1
        %m1 = OpLabel
        %bits = OpBitcast %u32 %acc
        OpStore %pc %bits""",
}


def module(assembler: Assembler, body: str) -> bytes:
    return assembler(HEAD + body + ("" if "OpFunctionEnd" in body else TAIL))


def check(payload: bytes) -> spirv_check.Summary:
    return spirv_check.verify(memoryview(payload), (ENTRY,))


@pytest.fixture(scope="module")
def corpus(spirv_assembler: Assembler) -> dict[str, bytes]:
    return {name: module(spirv_assembler, body) for name, body in BODIES.items()}


def instructions(payload: bytes) -> list[int]:
    """The word each instruction starts at."""
    words = np.frombuffer(payload, "<u4")
    starts, at = [], 5
    while at < words.size:
        starts.append(at)
        at += int(words[at]) >> 16
    return starts


def test_corpus_is_accepted(corpus: dict[str, bytes]) -> None:
    for payload in corpus.values():
        summary = check(payload)
        assert summary.features == {"float64", "int64", "int16", "int8"}
    assert check(corpus["shared memory"]).shared_bytes == {"main": 64}
    assert check(corpus["floats"]).shared_bytes == {"main": 0}


def test_corpus_holds_every_row(corpus: dict[str, bytes]) -> None:
    ops, extended = set(), set()
    for payload in corpus.values():
        words = np.frombuffer(payload, "<u4")
        for at in instructions(payload):
            ops.add(int(words[at]) & 0xFFFF)
            if words[at] & 0xFFFF == 12:
                extended.add(int(words[at + 4]))
    assert ops == set(spirv.OP_BY_CODE)
    assert extended == set(spirv.EXT_BY_CODE)


def test_every_rule_has_a_row_and_every_row_a_rule() -> None:
    checker = spirv_check._Checker([0, 0, 0, 1, 0], ())
    known = [checker._rules, spirv_types.TYPE_RULES, spirv_types.GLOBAL_RULES]
    known += [spirv_rules.VALUE_RULES, spirv_rules.ACTION_RULES]
    names = [name for table in known for name in table]
    assert len(set(names)) == len(names)
    assert set(names) == {row.rule for row in spirv.OPS}
    assert {row.rule for row in spirv.EXT_INSTS} <= set(spirv_rules.VALUE_RULES)


def test_capabilities_need_features_that_exist() -> None:
    assert {row.feature for row in spirv.CAPABILITIES if row.feature} <= set(FEATURES)


def test_names_and_codes_are_the_assemblers(corpus: dict[str, bytes], tmp_path: Path) -> None:
    """spirv-dis reads our numbers as our names."""
    if shutil.which("spirv-dis") is None:
        pytest.skip("spirv-dis is not installed (Debian package spirv-tools)")
    for payload in corpus.values():
        words = np.frombuffer(payload, "<u4")
        (tmp_path / "module.spv").write_bytes(payload)
        command = ["spirv-dis", "--no-header", "--no-indent", "--raw-id", tmp_path / "module.spv"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        ours = [spirv.OP_BY_CODE[int(words[at]) & 0xFFFF].name for at in instructions(payload)]
        assert [line.partition("= ")[2].split()[0] if " = " in line else line.split()[0] for line in lines] == ours
        for line, at in zip(lines, instructions(payload), strict=True):
            if "OpExtInst " in line:
                assert spirv.EXT_BY_CODE[int(words[at + 4])].name in line.split()


def valid(payload: bytes, folder: Path) -> bool:
    """What spirv-val says."""
    (folder / "module.spv").write_bytes(payload)
    command = ["spirv-val", "--target-env", "vulkan1.1", folder / "module.spv"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def validator(tmp_path: Path) -> Callable[[bytes], bool]:
    if shutil.which("spirv-val") is None:
        pytest.skip("spirv-val is not installed (Debian package spirv-tools)")
    return lambda payload: valid(payload, tmp_path)


def test_corpus_is_valid(corpus: dict[str, bytes], validator: Callable[[bytes], bool]) -> None:
    for name, payload in corpus.items():
        assert validator(payload), name


#: what is put in place of what in a valid module -> what the refusal says
REFUSALS: dict[str, tuple[str, str, str, str]] = {
    "unknown opcode": ("integers", "%s2 = OpISub", "%s2 = OpUndef", ""),
    "width": ("integers", "%s1 = OpIAdd %u32 %w %n", "%s1 = OpIAdd %u32 %w %byte", "u32 of u32, u8"),
    "float": ("floats", "%f1 = OpFSub %f32 %sum %one", "%f1 = OpFSub %f32 %sum %pi", "f32 of f32, f64"),
    "class": ("floats", "%f2 = OpFMul %f32 %f1 %x", "%f2 = OpFMul %f32 %f1 %w", "f32 of f32, u32"),
    "condition": ("comparisons", "OpSelect %u32 %both %w %null", "OpSelect %u32 %w %w %null", "u32 of u32, u32, u32"),
    "undefined": (
        "integers",
        "%s1 = OpIAdd %u32 %w %n",
        "%s1 = OpIAdd %u32 %w %s9",
        "not a value that can be used here",
    ),
    "out of an arm": ("selections", "OpStore %pc %v\n", "OpStore %pc %v1\n", "not a value that can be used here"),
    "phi of an arm": ("selections", "%v3 %m2\n", "%v1 %m2\n", "is not made on the way through"),
    "phi without a way": ("selections", "%v1 %t1 %v3 %m2\n", "%v1 %t1\n", "predecessors"),
    "phi of a type": ("loops", "OpPhi %u32 %0 %start %next %t1", "OpPhi %u32 %one %start %next %t1", "is not a u32"),
    "no merge": ("selections", "OpSelectionMerge %m1 None\n", "", "selection without a merge"),
    "merge of nothing": ("loops", "OpLoopMerge %m1 %t1 None\n", "", "selection without a merge"),
    "two ways to one": ("selections", "%c1 %t1 %f1", "%c1 %t1 %t1", "both ways lead"),
    "return in continue": ("loops", "OpBranch %h1\n        %m1", "OpReturn\n        %m1", "in a continue block"),
    "shared index": ("shared memory", "%shared %place", "%shared %w", "index up to anything into 16"),
    "index too large": ("shared memory", "OpIMul %u32 %ly %8", "OpIMul %u32 %ly %16", "index up to 23 into 16"),
    "unclamped": ("shared memory", "%glsl UMin %t %8", "%glsl UMax %t %8", "index up to anything into 16"),
    "read-only": ("shared memory", "OpAtomicIAdd %u32 %pt %2", "OpAtomicIAdd %u32 %pa %2", "not to be written"),
    "stored input": ("shared memory", "OpStore %counter %m", "OpStore %px %m", "not to be written"),
    "scope": ("shared memory", "OpControlBarrier %2 %2", "OpControlBarrier %1 %2", "execution scope 1"),
    "semantics": ("shared memory", "OpMemoryBarrier %1 %0x48", "OpMemoryBarrier %1 %16", "semantics 16"),
    "64-bit atomic": ("shared memory", "OpAtomicIAdd %u32", "OpAtomicIAdd %u64", "u64 through"),
    "extended": ("floats", "%glsl Sqrt %g6", "%glsl 13 %g6", "instruction 13"),
    "extended operands": ("floats", "%glsl Fma %g9 %x %one", "%glsl Fma %g9 %x", "with 2 operands, expected 3"),
    "lane": ("integers", "OpCompositeExtract %u32 %pair 1", "OpCompositeExtract %u32 %pair 2", "lane 2"),
    "member": ("comparisons", "OpArrayLength %u32 %c 0", "OpArrayLength %u32 %c 1", "member 0"),
    "too many operands": ("integers", "OpNot %u32 %b6", "OpNot %u32 %b6 %b6", "1 operands too many"),
    "too few operands": ("integers", "OpNot %u32 %b6", "OpNot %u32", "expected 3 or more"),
    "no end": ("loops", "OpStore %pc %bits", "OpStore %pc %bits\nOpReturn\n%again_ = OpLabel", "follows nothing"),
}

#: the same for what stands before the function
HEAD_REFUSALS: dict[str, tuple[str, str, str]] = {
    "capability": ("OpCapability Int8\n", "", "capability Int8 is not declared"),
    "foreign capability": ("OpCapability Int8\n", "OpCapability Int8\nOpCapability 38\n", "capability 38"),
    "extension": ('OpExtension "SPV_KHR_8bit_storage"', "", "without extension SPV_KHR_8bit_storage"),
    "foreign extension": ("SPV_KHR_8bit_storage", "SPV_KHR_ray_query", "'SPV_KHR_ray_query'"),
    "foreign set": ("GLSL.std.450", "OpenCL.std", "'OpenCL.std'"),
    "physical": ("OpMemoryModel Logical", "OpMemoryModel 1", "model"),
    "model": ("OpEntryPoint GLCompute", "OpEntryPoint 4", "execution model 4"),
    "name": ('"main" %group', '"other" %group', "'other'"),
    "local size": ("LocalSize 8 2 1", "LocalSize 8 2 2", r"LocalSize \[8, 2, 2\], entry main has \(8, 2, 1\)"),
    "no local size": ("OpExecutionMode %main LocalSize 8 2 1\n", "", "without LocalSize"),
    "interface": ("%local %index\n", "%local\n", "is not listed"),
    "set": ("%c DescriptorSet 0", "%c DescriptorSet 1", "descriptor set 1"),
    "binding": ("%c Binding 2", "%c Binding 4", "binding 4, entry main has 4"),
    "stride": ("%words ArrayStride 4", "%words ArrayStride 2", "ArrayStride 2, an element has 4 bytes"),
    "offset": ("%push 1 Offset 4", "%push 1 Offset 2", "Offset 2, expected 4"),
    "block": ("OpDecorate %push Block\n", "", "not decorated as Block"),
    "decoration": ("%a NonWritable", "%a 5", "decoration 5"),
    "target": ("%sum NoContraction", "%u32 NoContraction", "NoContraction on id"),
    "twice": ("%i16 = OpTypeInt 16 1", "%i16 = OpTypeInt 16 1\n%again = OpTypeInt 16 1", "declared twice"),
    "constant": ("OpConstant %u8 255", "OpConstant %u8 256", "0x100 is not a u8"),
    "array": ("OpTypeArray %u32 %16", "OpTypeArray %u32 %0", "length 0"),
    "stack": ("%16 = OpConstant %u32 16", "%16 = OpConstant %u32 5000", "bytes of variables in a function"),
    "order": ("OpMemoryModel Logical GLSL450\n", "", "no memory model|behind"),
    "parameters": ("OpTypeStruct %u32 %f32", "OpTypeStruct %u32 %f32 %u32", "Offset None, expected 8"),
}


def refused(payload: bytes, message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        check(payload)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, spirv_assembler: Assembler) -> None:
    body, old, new, message = REFUSALS[name]
    assert BODIES[body].count(old) == 1
    if "OpUndef" in new:
        words = np.frombuffer(module(spirv_assembler, BODIES[body]), "<u4").copy()
        at = next(at for at in instructions(words.tobytes()) if words[at] & 0xFFFF == 130)
        words[at] = words[at] & 0xFFFF0000 | 1
        refused(words.tobytes(), "opcode 1: outside of the subset")
        return
    refused(module(spirv_assembler, BODIES[body].replace(old, new)), message)


@pytest.mark.parametrize("name", HEAD_REFUSALS)
def test_head_refusals(name: str, spirv_assembler: Assembler) -> None:
    old, new, message = HEAD_REFUSALS[name]
    assert HEAD.count(old) == 1
    refused(spirv_assembler(HEAD.replace(old, new) + BODIES["shared memory"] + TAIL), message)


def test_what_the_entry_says_counts(corpus: dict[str, bytes]) -> None:
    payload = memoryview(corpus["shared memory"])
    reads = (*ENTRY.bindings[:2], ("read", 4), ENTRY.bindings[3])
    for entry, message in (
        (Entry("main", reads, 2, (8, 2, 1)), "into binding 2, which entry main only reads"),
        (Entry("main", ENTRY.bindings[:2], 2, (8, 2, 1)), "binding 2, entry main has 2"),
        (Entry("main", ENTRY.bindings, 1, (8, 2, 1)), "2 parameters, entry main has 1"),
        (Entry("main", ENTRY.bindings, 2, (4, 4, 1)), "LocalSize"),
        (Entry("other", ENTRY.bindings, 2, (8, 2, 1)), "'main'"),
    ):
        with pytest.raises(ModuleError, match=message):
            spirv_check.verify(payload, (entry,))
    with pytest.raises(ModuleError, match="no entry point other"):
        spirv_check.verify(payload, (ENTRY, Entry("other", (), 0, (1, 1, 1))))


def test_headers(corpus: dict[str, bytes]) -> None:
    words = np.frombuffer(corpus["floats"], "<u4")
    for index, value, message in (
        (0, 0x03022307, "magic"),
        (1, 0x00010600, "version 0x10600"),
        (3, 0, "bound 0"),
        (3, words.size + 1, "bound"),
        (3, 40, "not below the bound 40"),
        (4, 1, "magic"),
    ):
        changed = words.copy()
        changed[index] = value
        refused(changed.tobytes(), message)
    for size in (0, 3, 16, 19, 21):
        refused(words.tobytes()[:size], "is not 5 words or more|left")


def test_every_truncation_is_refused(corpus: dict[str, bytes]) -> None:
    for size in range(20, len(corpus["loops"]), 4):
        refused(corpus["loops"][:size], "SPIR-V")


def test_nesting_is_bounded(spirv_assembler: Assembler) -> None:
    depth = spirv_flow.NESTING
    for levels, fine in ((depth, True), (depth + 1, False)):
        body = "%less = OpULessThan %bool %w %n\n"
        for level in range(levels):
            body += (
                f"OpSelectionMerge %m{level} None\nOpBranchConditional %less %t{level} %m{level}\n%t{level} = OpLabel\n"
            )
        for level in reversed(range(levels)):
            body += f"OpBranch %m{level}\n%m{level} = OpLabel\n"
        payload = module(spirv_assembler, body)
        if fine:
            check(payload)
        else:
            refused(payload, "constructs in one another")


_SAME_LAYOUT: dict[str, list[int]] = {}
for _row in spirv.OPS:
    _SAME_LAYOUT.setdefault(_row.layout, []).append(_row.code)


def mutant(payload: bytes, rng: random.Random) -> bytes:
    """A few changes that keep most of the structure: another id, literal or opcode, an instruction gone or moved."""
    words = [int(word) for word in np.frombuffer(payload, "<u4")]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        starts = instructions(np.array(words, "<u4").tobytes())
        number = rng.randrange(len(starts) - 1)
        at, end = starts[number], starts[number + 1]
        change = rng.randrange(7)
        if change <= 1 and end - at > 1:
            words[at + rng.randrange(1, end - at)] = rng.randrange(1, words[3])
        elif change == 2 and end - at > 1:
            words[at + rng.randrange(1, end - at)] = rng.choice((0, 1, 2, 8, 31, 255, 1 << 31, rng.randrange(1 << 32)))
        elif change == 3:
            layout = spirv.OP_BY_CODE[words[at] & 0xFFFF].layout
            words[at] = words[at] & 0xFFFF0000 | rng.choice(_SAME_LAYOUT[layout])
        elif change == 4:
            del words[at:end]
        elif change == 5:
            after = starts[number + 2] if number + 2 < len(starts) else len(words)
            words[at:after] = words[end:after] + words[at:end]
        else:
            words[rng.randrange(len(words))] ^= 1 << rng.randrange(32)
            break
    return np.array(words, "<u4").tobytes()


def test_mutants_are_refused_or_valid(corpus: dict[str, bytes], tmp_path: Path) -> None:
    """No mutant raises anything but the one error, and a sample of those accepted is what spirv-val accepts."""
    rng = random.Random(5)
    seeds = list(corpus.values())
    accepted = {}
    for _ in range(MUTANTS):
        payload = mutant(rng.choice(seeds), rng)
        try:
            check(payload)
        except ModuleError:
            continue
        accepted[payload] = None
    assert len(accepted) > MUTANTS // 20
    if shutil.which("spirv-val") is None:
        pytest.skip("spirv-val is not installed (Debian package spirv-tools)")
    for payload in list(accepted)[: MUTANTS // 20]:
        assert valid(payload, tmp_path), payload.hex()
