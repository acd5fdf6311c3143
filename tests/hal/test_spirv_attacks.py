"""Untrusted shaders that access memory outside their bindings are refused or confined, on lavapipe and SwiftShader."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from named_devices import open_named
from shader_text import head

from orchestrion.hal.backend import Entry
from orchestrion.hal.device import Device
from orchestrion.hal.errors import Unsupported
from orchestrion.hal.policy import Policy
from orchestrion.hal.vulkan import spirv_harden
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.device_profile import PROFILE_VARIABLE
from orchestrion.hal.vulkan.spirv_check import verify
from orchestrion.schema.errors import ModuleError

Assembler = Callable[[str], bytes]

#: binding 0 is an array of u32; `%small` and `%guard` are workgroup memory of 256 words each
HEAD = (
    head(
        numbers=(0, 1, 2, 7, 255, 256, "0x108"),
        enabled='%glsl = OpExtInstImport "GLSL.std.450"',
        decorations="OpDecorate %push Block\nOpMemberDecorate %push 0 Offset 0",
        types="""
%push = OpTypeStruct %u32
%array = OpTypeArray %u32 %256
%p_array = OpTypePointer Workgroup %array
%p_shared = OpTypePointer Workgroup %u32
%p_push = OpTypePointer PushConstant %push
%p_param = OpTypePointer PushConstant %u32
""",
        variables="""
%small = OpVariable %p_array Workgroup
%guard = OpVariable %p_array Workgroup
%parameters = OpVariable %p_push PushConstant
""",
    )
    + """%i = OpLoad %u32 %lane
%pv = OpAccessChain %p_param %parameters %0
%v = OpLoad %u32 %pv
%pi = OpAccessChain %p_word %data %0 %i
%d = OpLoad %u32 %pi
"""
)
TAIL = "OpReturn\nOpFunctionEnd\n"


def entry(length: int) -> Entry:
    return Entry("main", (("readwrite", length),), 1, (8, 1, 1))


#: the feature that a test removes -> the Vulkan feature that the device then does not use
LACKING = {
    "nothing": frozenset[str](),
    "robust access": frozenset({"robustBufferAccess2"}),
    "initializers": frozenset({"shaderZeroInitializeWorkgroupMemory"}),
    "both": frozenset({"robustBufferAccess2", "shaderZeroInitializeWorkgroupMemory"}),
}


#: as a test names the device profile that has no optional feature
LEAST = "more than the least"


@pytest.fixture(params=[f"{name} without {lack}" for name in ("llvmpipe", "SwiftShader") for lack in (*LACKING, LEAST)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """An open device by its name, with features removed, so that the loader must add the checks itself."""
    name, _, lack = request.param.partition(" without ")
    if lack == LEAST:
        monkeypatch.setenv(PROFILE_VARIABLE, "least")
    with open_named(name, disabled=LACKING.get(lack, frozenset()), policy=Policy(True)) as opened:
        yield opened


def run(device: Device, code: bytes, data: np.ndarray, length: int, parameter: int = 0) -> np.ndarray:
    """Runs one workgroup over the first `length` bytes of the data; returns all of the data afterwards."""
    executable = device.create_executable("spirv", memoryview(code), (entry(0),))
    buffer = device.allocator.allocate(data.nbytes)
    buffer.write(data)
    commands = device.create_command_buffer()
    try:
        commands.dispatch(executable, 0, (8, 1, 1), [(buffer, 0, length)], np.uint32(parameter).tobytes())
        commands.finish()
        device.queue.execute(commands)
        out = np.empty_like(data)
        buffer.read(out)
    finally:
        for thing in (commands, buffer, executable):
            thing.release()
    return out


#: attack -> the instructions, and the text of the error. Each was accepted by an earlier version.
ATTACKS: dict[str, tuple[str, str]] = {
    "division by zero as a bound": (
        "%q = OpUDiv %u32 %7 %v\n%a = OpBitwiseAnd %u32 %q %d\n%p = OpAccessChain %p_shared %small %a\nOpStore %p %d\n",
        "neither a constant nor a UMin",
    ),
    "remainder as a bound": (
        "%a = OpUMod %u32 %d %256\n%p = OpAccessChain %p_shared %small %a\nOpStore %p %d\n",
        "neither a constant nor a UMin",
    ),
    "a clamp and one step more": (
        "%c = OpExtInst %u32 %glsl UMin %d %255\n%a = OpIAdd %u32 %c %1\n"
        "%p = OpAccessChain %p_shared %small %a\nOpStore %p %d\n",
        "neither a constant nor a UMin",
    ),
    "a loop that is unrolled": (
        "OpBranch %h\n%h = OpLabel\n%k = OpPhi %u32 %0 %start %n %c\n%on = OpULessThan %bool %k %256\n"
        "OpLoopMerge %m %c 1\nOpBranchConditional %on %b %m\n%b = OpLabel\nOpBranch %c\n%c = OpLabel\n"
        "%n = OpIAdd %u32 %k %1\nOpBranch %h\n%m = OpLabel\n",
        "control mask 0x1",
    ),
    "a barrier that some invocations meet": (
        "%on = OpULessThan %bool %i %2\nOpSelectionMerge %m 0\nOpBranchConditional %on %b %m\n%b = OpLabel\n"
        "OpControlBarrier %2 %2 %0x108\nOpBranch %m\n%m = OpLabel\n",
        "may differ between invocations",
    ),
    "a barrier by what a buffer holds": (
        "%on = OpULessThan %bool %d %2\nOpSelectionMerge %m 0\nOpBranchConditional %on %b %m\n%b = OpLabel\n"
        "OpControlBarrier %2 %2 %0x108\nOpBranch %m\n%m = OpLabel\n",
        "may differ between invocations",
    ),
}

#: an attack in the declarations: (old, new) text of HEAD
NARROW_INDEX = (
    ("OpCapability Shader\n", "OpCapability Shader\nOpCapability Int8\n"),
    ("%0 = OpConstant", "%u8 = OpTypeInt 8 0\n%0 = OpConstant"),
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused(attack: str, device: Device, spirv_assembler: Assembler) -> None:
    body, message = ATTACKS[attack]
    with pytest.raises(ModuleError, match=message):
        device.create_executable("spirv", memoryview(spirv_assembler(HEAD + body + TAIL)), (entry(0),))


def test_an_index_of_8_bits_is_refused(device: Device, spirv_assembler: Assembler) -> None:
    """Indices are signed, so 255 as an index of 8 bits is -1."""
    head = HEAD
    for old, new in NARROW_INDEX:
        head = head.replace(old, new)
    body = "%a = OpUConvert %u8 %d\n%p = OpAccessChain %p_shared %small %a\nOpStore %p %d\n"
    with pytest.raises(ModuleError, match="neither a constant nor a UMin"):
        device.create_executable("spirv", memoryview(spirv_assembler(head + body + TAIL)), (entry(0),))


def test_unreachable_and_function_variables_have_no_row() -> None:
    from orchestrion.schema.spirv import OP_BY_CODE, STORAGE_CLASSES

    assert 255 not in OP_BY_CODE and "Function" not in STORAGE_CLASSES


HOSTILE = (0, 255, 256, 257, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


@pytest.mark.sampled
@pytest.mark.parametrize("index", HOSTILE)
def test_no_index_leaves_workgroup_memory(index: int, device: Device, spirv_assembler: Assembler) -> None:
    """The clamp that the checker requires works on the device: the array next to it does not change."""
    body = """
%c = OpExtInst %u32 %glsl UMin %v %255
%pc = OpAccessChain %p_shared %small %c
OpStore %pc %7
OpControlBarrier %2 %2 %0x108
%g0 = OpAccessChain %p_shared %guard %0
%x0 = OpLoad %u32 %g0
%g1 = OpAccessChain %p_shared %guard %255
%x1 = OpLoad %u32 %g1
%r = OpLoad %u32 %pc
%both = OpBitwiseOr %u32 %x0 %x1
%s = OpIMul %u32 %both %256
%sum = OpIAdd %u32 %s %r
OpStore %pi %sum
"""
    out = run(device, spirv_assembler(HEAD + body + TAIL), np.zeros(8, np.uint32), 32, index)
    assert out.tolist() == [7] * 8


def test_workgroup_memory_is_cleared(device: Device, spirv_assembler: Assembler) -> None:
    """A shader reads no words of another shader or of an earlier workgroup."""
    fill = """
%c = OpExtInst %u32 %glsl UMin %i %255
%pc = OpAccessChain %p_shared %small %c
OpStore %pc %256
%pg = OpAccessChain %p_shared %guard %c
OpStore %pg %256
OpStore %pi %1
"""
    read = """
%c = OpExtInst %u32 %glsl UMin %i %255
%pc = OpAccessChain %p_shared %small %c
%x = OpLoad %u32 %pc
%last = OpAccessChain %p_shared %guard %255
%y = OpLoad %u32 %last
%sum = OpIAdd %u32 %x %y
OpStore %pi %sum
"""
    for _ in range(3):
        run(device, spirv_assembler(HEAD + fill + TAIL), np.zeros(8, np.uint32), 32)
        out = run(device, spirv_assembler(HEAD + read + TAIL), np.full(8, 9, np.uint32), 32)
        assert out.tolist() == [0] * 8


@pytest.mark.sampled
@pytest.mark.parametrize("index", (8, 9, 63, 64, 1 << 20, (1 << 30) - 1, 1 << 30, (1 << 31) + 5, (1 << 32) - 1))
def test_no_index_leaves_a_binding(index: int, device: Device, spirv_assembler: Assembler) -> None:
    """32 of 256 bytes are bound, and no other word is read or written."""
    body = """
%pv2 = OpAccessChain %p_word %data %0 %v
%x = OpLoad %u32 %pv2
OpStore %pv2 %7
OpStore %pi %x
"""
    secret = np.full(64, 0xDEADBEEF, np.uint32)
    secret[:8] = range(8)
    out = run(device, spirv_assembler(HEAD + body + TAIL), secret, 32, index)
    assert (out[8:] == 0xDEADBEEF).all()
    assert out[:7].max() <= 7


def test_an_empty_binding_is_bounded(device: Device, spirv_assembler: Assembler) -> None:
    body = "%pv2 = OpAccessChain %p_word %data %0 %v\nOpStore %pv2 %7\nOpStore %pi %7\n"
    out = run(device, spirv_assembler(HEAD + body + TAIL), np.full(64, 5, np.uint32), 0, 3)
    assert (out == 5).all()


@pytest.mark.sampled
@pytest.mark.parametrize("index", (0, 1, 2, 3, 63, (1 << 32) - 1))
@pytest.mark.parametrize("length", (1, 2, 3, 5, 7))
def test_a_binding_that_ends_within_a_word_has_all_of_that_word(
    length: int, index: int, device: Device, spirv_assembler: Assembler
) -> None:
    """Words of narrow elements need it. Nothing behind the word is touched."""
    body = "%pv2 = OpAccessChain %p_word %data %0 %v\nOpStore %pv2 %7\n"
    words = -(-length // 4)
    out = run(device, spirv_assembler(HEAD + body + TAIL), np.full(64, 5, np.uint32), length, index)
    assert (out[words:] == 5).all()
    assert index >= words or out[index] == 7


def test_a_binding_shorter_than_an_element_is_refused(device: Device, spirv_assembler: Assembler) -> None:
    """Only where the loader clamps: the clamped index of such a binding would be outside of it."""
    head = HEAD.replace("ArrayStride 4", "ArrayStride 16").replace(
        "OpTypeRuntimeArray %u32", "OpTypeRuntimeArray %four"
    )
    head = head.replace("%0 = OpConstant", "%four = OpTypeVector %u32 4\n%0 = OpConstant")
    head = head.replace("StorageBuffer %u32", "StorageBuffer %four").replace("%d = OpLoad %u32", "%d = OpLoad %four")
    body = "%pv2 = OpAccessChain %p_word %data %0 %v\nOpStore %pv2 %d\n"
    code = spirv_assembler(head + body + TAIL)
    backend = device.device_state.backend
    assert isinstance(backend, VulkanDevice)
    if "robustBufferAccess2" in backend.physical.enabled:
        assert (run(device, code, np.full(64, 5, np.uint32), 6, 3) == 5).all()
        return
    with pytest.raises(Unsupported, match="binding 0 of entry main: 8 bytes are less than one element of 16"):
        run(device, code, np.full(64, 5, np.uint32), 6, 3)


WIDE = """
%big = OpUConvert %u64 %v
%shifted = OpShiftLeftLogical %u64 %big %7
%pv2 = OpAccessChain %p_word %data %0 %shifted
OpStore %pv2 %7
"""


@pytest.mark.parametrize("lack", LACKING)
def test_what_the_loader_adds_is_valid(lack: str, spirv_assembler: Assembler, tmp_path: Path) -> None:
    """For modules with and without the parts that the loader otherwise adds: the input, the instruction set, types,
    64-bit indices.
    """
    if shutil.which("spirv-val") is None:
        pytest.skip("spirv-val is not installed (Debian package spirv-tools)")
    shared = "%c = OpExtInst %u32 %glsl UMin %v %255\n%pc = OpAccessChain %p_shared %small %c\nOpStore %pc %d\n"
    loop = (
        "OpBranch %h\n%h = OpLabel\n%k = OpPhi %u32 %0 %start %n %c9\n%on = OpULessThan %bool %k %v\n"
        "OpLoopMerge %m %c9 0\nOpBranchConditional %on %b %m\n%b = OpLabel\nOpStore %pi %k\nOpBranch %c9\n"
        "%c9 = OpLabel\n%n = OpIAdd %u32 %k %1\nOpBranch %h\n%m = OpLabel\n"
    )
    wide = HEAD.replace("OpCapability Shader\n", "OpCapability Shader\nOpCapability Int64\n")
    wide = wide.replace("%0 = OpConstant", "%u64 = OpTypeInt 64 0\n%0 = OpConstant")
    bare = HEAD.replace('%glsl = OpExtInstImport "GLSL.std.450"\n', "").replace(' "main" %lane', ' "main"')
    bare = bare.replace("OpDecorate %lane BuiltIn LocalInvocationIndex\n", "").replace("%i = OpLoad %u32 %lane\n", "")
    bare = bare.replace("%lane = OpVariable %p_lane Input\n", "").replace("%data %0 %i\n", "%data %0 %v\n")
    constant = "%pc = OpAccessChain %p_shared %small %7\nOpStore %pc %d\n"
    for text in (HEAD + shared + loop + TAIL, wide + shared + WIDE + TAIL, bare + constant + loop + TAIL):
        words = spirv_harden.harden(
            spirv_assembler(text),
            null_initializers="shaderZeroInitializeWorkgroupMemory" not in LACKING[lack],
            clamp_buffers="robustBufferAccess2" in LACKING[lack],
            shared=True,
        )
        (tmp_path / "module.spv").write_bytes(words)
        command = ["spirv-val", "--target-env", "vulkan1.1", tmp_path / "module.spv"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_that_needs_nothing_is_left_alone(spirv_assembler: Assembler) -> None:
    code = spirv_assembler(HEAD + TAIL)
    assert spirv_harden.harden(code, null_initializers=True, clamp_buffers=False, shared=False) == code


def test_workgroup_memory_that_no_entry_uses_is_limited(device: Device, spirv_assembler: Assembler) -> None:
    """2^31 - 1 elements: Mesa takes at least 8 bytes of host memory for each element of a null initializer."""
    unused = (
        "%most = OpConstant %u32 0x7FFFFFFF\n%huge = OpTypeArray %u32 %most\n%p_huge = OpTypePointer Workgroup %huge\n"
    )
    head = HEAD.replace("%data = OpVariable", unused + "%hidden = OpVariable %p_huge Workgroup\n%data = OpVariable")
    body = "%p = OpAccessChain %p_shared %small %7\n%x = OpLoad %u32 %p\nOpStore %pi %x\n"
    with pytest.raises(Unsupported, match=f"entry main: {4 * 0x7FFFFFFF + 2048} bytes of shared memory"):
        run(device, spirv_assembler(head + body + TAIL), np.full(8, 9, np.uint32), 32)


def test_variables_that_no_entry_uses_get_no_initializer(spirv_assembler: Assembler) -> None:
    """Three words for the null constant, shared by variables of one type, and one word in each variable."""
    body = "%p = OpAccessChain %p_shared %small %7\n%x = OpLoad %u32 %p\nOpStore %pi %x\n"
    both = body + "%q = OpAccessChain %p_shared %guard %7\nOpStore %q %x\n"
    for text, words in (("", 0), (body, 4), (both, 5)):
        code = spirv_assembler(HEAD + text + TAIL)
        made = spirv_harden.harden(code, null_initializers=True, clamp_buffers=False, shared=True)
        assert len(made) - len(code) == 4 * words


@pytest.mark.parametrize(("width", "words"), [(16, "256"), (64, "256 0")])
def test_a_length_of_another_width_is_refused(width: int, words: str, spirv_assembler: Assembler) -> None:
    """The loops that clear workgroup memory compare a u32 with the length."""
    made = f"%wide = OpTypeInt {width} 0\n%length = OpConstant %wide {words}\n%array = OpTypeArray %u32 %length\n"
    head = HEAD.replace("OpCapability Shader\n", f"OpCapability Shader\nOpCapability Int{width}\n")
    head = head.replace("%array = OpTypeArray %u32 %256\n", made)
    with pytest.raises(ModuleError, match=f"length 256 of type u{width}"):
        verify(memoryview(spirv_assembler(head + TAIL)), (entry(0),))


def test_a_second_type_of_functions_is_refused(spirv_assembler: Assembler) -> None:
    """As `spirv-val` does."""
    head = HEAD.replace("%bool = ", "%other = OpTypeFunction %void\n%bool = ")
    with pytest.raises(ModuleError, match="function is declared twice"):
        verify(memoryview(spirv_assembler(head + TAIL)), (entry(0),))
