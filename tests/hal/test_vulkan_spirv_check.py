"""The SPIR-V checker accepts valid modules (as judged by spirv-val), refuses others, and raises only its own error."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from everyday import of_the_day

from orchestrion.hal.backend import Entry
from orchestrion.hal.vulkan import spirv_check, spirv_flow, spirv_rules, spirv_types
from orchestrion.schema import spirv
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.profiles import FEATURES

Assembler = Callable[[str], bytes]
MUTANTS = int(os.environ.get("ORCHESTRION_MUTANTS", "3000"))

FOLDER = Path(__file__).parent / "spirv"
HEAD = (FOLDER / "head.spvasm").read_text()
#: bodies that are valid; together they hold every instruction of the table
BODIES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.spvasm")) if path.stem != "head"}

TAIL = "OpReturn\nOpFunctionEnd\n"

ENTRY = Entry("main", (("read", 4), ("readwrite", 1), ("readwrite", 4), ("write", 8)), 2, (8, 2, 1))


def module(assembler: Assembler, body: str) -> bytes:
    return assembler(HEAD + body + ("" if "OpFunctionEnd" in body else TAIL))


def check(payload: bytes) -> spirv_check.Summary:
    return spirv_check.verify(memoryview(payload), (ENTRY,))


@pytest.fixture(scope="module")
def corpus(spirv_assembler: Assembler) -> dict[str, bytes]:
    return {name: module(spirv_assembler, body) for name, body in BODIES.items()}


def instructions(payload: bytes) -> list[int]:
    """The index of each instruction's first word."""
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
    assert check(corpus["shared_memory"]).shared_bytes == {"main": 84}
    assert check(corpus["floats"]).element_bytes == {"main": (4, 1, 16, 8)}
    assert check(corpus["floats"]).shared_bytes == {"main": 84}  # declared, and not used


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
    assert set(names) == {row.rule for row in (*spirv.OPS, *spirv.EXT_INSTS)}


def test_capabilities_need_features_that_exist() -> None:
    assert {row.feature for row in spirv.CAPABILITIES if row.feature} <= set(FEATURES)


def test_names_and_codes_are_the_assemblers(corpus: dict[str, bytes], tmp_path: Path) -> None:
    """spirv-dis prints our names for our numbers."""
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
    """Whether spirv-val accepts the module."""
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
    "condition": ("comparisons", "OpSelect %u32 %l5 %w %n", "OpSelect %u32 %w %w %n", "u32 of u32, u32, u32"),
    "comparison": ("comparisons", "OpULessThan %bool %w %n", "OpULessThan %bool %w %byte", "bool of u32, u8"),
    "vectors": (
        "integers",
        "%lane = OpCompositeExtract %u32 %nv 1",
        "%lane = OpIAdd %u32x3 %nv %nv",
        "vector of 3 u32",
    ),
    "bitcast": ("floats", "OpBitcast %u32 %i4", "OpBitcast %u32 %more", "u32 of f64"),
    "undefined": (
        "integers",
        "%s1 = OpIAdd %u32 %w %n",
        "%s1 = OpIAdd %u32 %w %s5",
        "not a value that can be used here",
    ),
    "out of an arm": ("selections", "OpStore %pc %v\n", "OpStore %pc %v1\n", "not a value that can be used here"),
    "phi of an arm": ("selections", "%v3 %m2\n", "%v1 %m2\n", "is made on the way through"),
    "phi of itself": ("selections", "%v1 %t1 %v3", "%v %t1 %v3", "is made on the way through"),
    "phi without a way": ("selections", "%v1 %t1 %v3 %m2\n", "%v1 %t1\n", "expected 6 or more"),
    "phi of another way": ("selections", "%v1 %t1 %v3 %m2\n", "%v1 %t1 %v3 %f1\n", "predecessor"),
    "phi behind one arm": (
        "selections",
        "%m3 = OpLabel\n",
        "%m3 = OpLabel\n%late = OpPhi %u32 %0 %m1 %1 %t3\n",
        "behind two arms",
    ),
    "phi late": (
        "loops",
        "%on = OpULessThan %bool %k %n\n",
        "%on = OpULessThan %bool %k %n\n%late = OpPhi %u32 %0 %start %next %t1\n",
        "not at the start",
    ),
    "phi of a type": ("loops", "OpPhi %u32 %0 %start %next %t1", "OpPhi %u32 %one %start %next %t1", "is not a u32"),
    "phi of its header": ("loops", "OpPhi %f32 %x %start", "OpPhi %f32 %acc %start", "is made before the loop"),
    "phi of nothing": ("loops", "%0 %body %j1 %t2", "%0 %body %next %t2", "is made in the loop"),
    "phi of no continue": ("loops", "%0 %body %j1 %t2", "%0 %body %j1 %b2", "names predecessor"),
    "no merge": ("selections", "OpSelectionMerge %m1 None\n", "", "without a merge"),
    "merge of nothing": ("loops", "OpLoopMerge %m1 %t1 None\n", "", "without a merge"),
    "two ways to one": ("selections", "%c1 %t1 %f1", "%c1 %t1 %t1", "has a place already"),
    "return in continue": ("loops", "OpBranch %h1\n%m1", "OpReturn\n%m1", "inside a construct"),
    "return in an arm": ("selections", "%v1 = OpIAdd %u32 %w %1\nOpBranch %m1", "OpReturn", "inside a construct"),
    "out of a loop": ("loops", "%again %b2 %m2", "%again %b2 %m1", "out of a loop"),
    "atomic value": ("integers", "OpAtomicOr %u32 %pc %1 %0 %old1", "OpAtomicOr %u32 %pc %1 %0 %byte", "u32 of u8"),
    "atomic type": ("integers", "OpAtomicAnd %u32 %pc %1 %0 %w", "OpAtomicAnd %u8 %z %1 %0 %byte", "u8 of u8"),
    "atomic pointer": ("integers", "OpAtomicAnd %u32 %pc", "OpAtomicAnd %u32 %z", "u32 through a pointer to u8"),
    "atomic no pointer": ("integers", "OpAtomicAnd %u32 %pc", "OpAtomicAnd %u32 %w", "a u32 is not a pointer"),
    "atomic scope": ("integers", "OpAtomicAnd %u32 %pc %1 %0", "OpAtomicAnd %u32 %pc %2 %0", "scope 2, expected 1"),
    "atomic semantics": ("integers", "%pc %1 %0 %w", "%pc %1 %8 %w", "semantics 8, expected 0"),
    "atomic on an input": ("integers", "OpAtomicAnd %u32 %pc", "OpAtomicAnd %u32 %pa", "is not to be written"),
    "atomic on workgroup memory": (
        "integers",
        "%old1 = OpAtomicAnd %u32 %pc",
        "%st = OpAccessChain %p_tile_u32 %shared %8\n%old1 = OpAtomicAnd %u32 %st",
        "into a variable in Workgroup",
    ),
    "atomic in a header": (
        "loops",
        "OpLoopMerge %m1",
        "%old = OpAtomicOr %u32 %pc %1 %0 %w\nOpLoopMerge %m1",
        "header or continue block",
    ),
    "store in a header": ("loops", "OpLoopMerge %m1", "OpStore %pc %k\nOpLoopMerge %m1", "header or continue block"),
    "store in a continue block": ("loops", "%j1 = OpIAdd %u32 %j %1", "OpStore %pc %j", "header or continue block"),
    "selection in a continue block": (
        "loops",
        "%next = OpIAdd %u32 %k %1\nOpBranch %h1",
        "%next = OpIAdd %u32 %k %1\nOpSelectionMerge %m9 None\nOpBranchConditional %on %b9 %m9",
        "header or continue block",
    ),
    "unroll": ("loops", "OpLoopMerge %m1 %t1 None", "OpLoopMerge %m1 %t1 1", "control mask 0x1"),
    "peel": ("loops", "OpLoopMerge %m1 %t1 None", "OpLoopMerge %m1 %t1 0x100", "control mask 0x100"),
    "flatten": ("selections", "OpSelectionMerge %m3 None", "OpSelectionMerge %m3 1", "control mask 0x1"),
    "shared index": ("shared_memory", "%shared %masked", "%shared %w", "neither a constant nor a UMin"),
    "an index behind a clamp": (
        "shared_memory",
        "%pt = OpAccessChain %p_tile_u32 %shared %masked",
        "%late = OpIAdd %u32 %masked %0\n%pt = OpAccessChain %p_tile_u32 %shared %late",
        "neither a constant nor a UMin",
    ),
    "clamp of the length": ("shared_memory", "UMin %place %15", "UMin %place %16", "up to 16 into 16 elements"),
    "clamp of no constant": ("shared_memory", "UMin %place %15", "UMin %place %n", "neither a constant nor a UMin"),
    "constant": ("shared_memory", "%shared %2", "%shared %16", "up to 16 into 16 elements"),
    "two indices": ("shared_memory", "%shared %2", "%shared %0 %2", "2 indices, expected 1"),
    "a column of a vector": (
        "floats",
        "%p4 = OpAccessChain %p_four %c4 %0 %bits",
        "%p4 = OpAccessChain %p_four %c4 %0 %bits %0",
        "3 indices, expected 2",
    ),
    "index of 8 bits": ("integers", "%b %0 %wide", "%b %0 %byte", "index of type u8"),
    "input": ("integers", "%nv 1\n", "%nv 1\n%no = OpAccessChain %p_u32_in %group %1\n", "loaded whole"),
    "read-only": ("shared_memory", "OpStore %pc %k", "OpStore %pa %k", "not to be written"),
    "stored parameter": ("shared_memory", "OpStore %pc %k", "OpStore %pn %k", "not to be written"),
    "scope": ("shared_memory", "OpControlBarrier %2 %2", "OpControlBarrier %1 %2", "execution scope 1"),
    "semantics": ("shared_memory", "%2 %2 %0x108", "%2 %2 %16", "semantics 16"),
    "barrier in a divergent arm": (
        "selections",
        "%c2_ = OpULessThan %bool %gx",
        "%c2_ = OpULessThan %bool %i",
        "may differ",
    ),
    "barrier by a buffer": ("selections", "%c2_ = OpULessThan %bool %gx", "%c2_ = OpULessThan %bool %w", "may differ"),
    "barrier by a phi": ("selections", "%c2_ = OpULessThan %bool %gx", "%c2_ = OpULessThan %bool %v", "may differ"),
    "barrier in a divergent loop": ("loops", "%bool %k %n", "%bool %k %i", "may differ"),
    "barrier in a loop that a step decides": (
        "loops",
        "%next = OpIAdd %u32 %k %1",
        "%next = OpIAdd %u32 %k %w",
        "may differ",
    ),
    "extended": ("floats", "%glsl Sqrt %g6", "%glsl 13 %g6", "instruction 13"),
    "extended operands": ("floats", "%glsl Sqrt %g6", "%glsl Sqrt %g6 %g6", "with 2 operands, expected 1"),
    "lane": ("integers", "OpCompositeExtract %u32 %nv 1", "OpCompositeExtract %u32 %nv 3", "lane 3"),
    "too many operands": ("integers", "OpNot %u32 %b6", "OpNot %u32 %b6 %b6", "1 operands too many"),
    "too few operands": ("integers", "OpNot %u32 %b6", "OpNot %u32", "expected 3 or more"),
    "no end": ("loops", "OpStore %pc %bits", "OpStore %pc %bits\nOpReturn\n%again_ = OpLabel", "has returned"),
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
    "interface": ("%groups %index\n", "%groups\n", "is not listed"),
    "set": ("%c DescriptorSet 0", "%c DescriptorSet 1", "descriptor set 1"),
    "binding": ("%c Binding 2", "%c Binding 4", "binding 4, entry main has 4"),
    "stride": ("%words ArrayStride 4", "%words ArrayStride 2", "ArrayStride 2, an element has 4 bytes"),
    "vectors of three": ("RuntimeArray %u32\n", "RuntimeArray %u32x3\n", "runtime array of vector of 3 u32"),
    "stride of vectors": ("%fours ArrayStride 16", "%fours ArrayStride 4", "ArrayStride 4, an element has 16 bytes"),
    "offset": ("%push 1 Offset 4", "%push 1 Offset 2", "Offset 2, expected 4"),
    "block": ("OpDecorate %push Block\n", "", "not decorated as Block"),
    "decoration": ("%a NonWritable", "%a 5", "decoration 5"),
    "target": ("%sum NoContraction", "%u32 NoContraction", "NoContraction on id"),
    "twice": ("%u16 = OpTypeInt 16 0", "%u16 = OpTypeInt 16 0\n%again = OpTypeInt 16 0", "declared twice"),
    "signed": ("%u16 = OpTypeInt 16 0", "%u16 = OpTypeInt 16 1", "integers are declared unsigned"),
    "lanes": ("%f32x4 = OpTypeVector %f32 4", "%f32x4 = OpTypeVector %f32 2", "2 lanes of f32"),
    "constant": ("OpConstant %u8 255", "OpConstant %u8 256", "0x100 is not a u8"),
    "array": ("OpTypeArray %u32 %16", "OpTypeArray %u32 %0", "length 0"),
    "array of vectors": ("OpTypeArray %u32 %16", "OpTypeArray %u32x3 %16", "array of vector of 3 u32"),
    "function storage": ("%p_tile = OpTypePointer Workgroup", "%p_tile = OpTypePointer 7", "storage class 7"),
    "order": ("OpMemoryModel Logical GLSL450\n", "", "no memory model|behind"),
    "parameters": ("OpTypeStruct %u32 %u32", "OpTypeStruct %u32 %u32 %u32", "Offset None, expected 8"),
    "parameters of floats": ("OpTypeStruct %u32 %u32", "OpTypeStruct %u32 %f32", "neither one runtime array nor u32"),
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
    refused(spirv_assembler(HEAD.replace(old, new) + BODIES["shared_memory"] + TAIL), message)


def test_what_the_entry_says_counts(corpus: dict[str, bytes]) -> None:
    payload = memoryview(corpus["shared_memory"])
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
        (3, 30, "not below the bound 30"),
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
    """A module with a few changes that keep most of its structure: another id, literal or opcode, an instruction
    removed or moved.
    """
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


def test_mutants_are_refused_or_valid(corpus: dict[str, bytes], tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Mutants raise only the checker's own error, and spirv-val accepts a sample of those that pass."""
    rng = random.Random(5)
    seeds = list(corpus.values())
    accepted, count = {}, len(of_the_day(pytestconfig, range(MUTANTS), 3))
    for _ in range(count):
        payload = mutant(rng.choice(seeds), rng)
        try:
            check(payload)
        except ModuleError:
            continue
        accepted[payload] = None
    assert len(accepted) > count // 20
    if shutil.which("spirv-val") is None:
        pytest.skip("spirv-val is not installed (Debian package spirv-tools)")
    for payload in list(accepted)[: count // 20]:
        assert valid(payload, tmp_path), payload.hex()
