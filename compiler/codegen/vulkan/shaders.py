"""The code of executables in C: SPIR-V words, and what their entries need of a device.

An executable has the variants that the target serializes, best first, for devices that lack types; `init` takes the
first that the device runs. Words contain the execution mode that keeps NaN and infinities (`schema/spirv_floats.py`),
and the ranges to leave out on a device without the mode.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestrion.compiler.codegen.c.language import comment, literal
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.targets.target import Target
from orchestrion.schema.spirv_floats import additions

#: features that an app enables for a module: name, bit, feature of the compiler, what the app enables
FEATURES: Final = (
    ("TIMELINE", 1, "", "timelineSemaphore; all programs need it"),
    ("INT8", 2, "int8", "shaderInt8 and storageBuffer8BitAccess"),
    ("INT16", 4, "int16", "shaderInt16 and storageBuffer16BitAccess"),
    ("INT64", 8, "int64", "shaderInt64"),
    ("FLOAT64", 16, "float64", "shaderFloat64"),
    ("FLOAT_CONTROLS", 32, "", "VK_KHR_shader_float_controls, which Vulkan 1.2 has: NaN and infinities are kept"),
)
_BITS: Final = {feature: bit for _, bit, feature, _ in FEATURES if feature}
_FLOAT_WIDTHS: Final = frozenset({16, 32, 64})
_WORDS_PER_LINE: Final = 10


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of devices: the member of VkPhysicalDeviceLimits, what every device has, and the error without it."""

    member: str
    least: int
    error: str


LIMITS: Final = (
    Limit("maxPerStageDescriptorStorageBuffers", 4, "ERROR_STORAGE_BUFFERS"),
    Limit("maxDescriptorSetStorageBuffers", 24, "ERROR_STORAGE_BUFFERS"),
    Limit("maxStorageBufferRange", 1 << 27, "ERROR_BINDING_BYTES"),
    Limit("maxPushConstantsSize", 128, "ERROR_PUSH_CONSTANTS"),
    Limit("maxComputeSharedMemorySize", 16384, "ERROR_SHARED_MEMORY"),
    Limit("maxComputeWorkGroupInvocations", 128, "ERROR_WORKGROUP_SIZE"),
    Limit("maxComputeWorkGroupSize[0]", 128, "ERROR_WORKGROUP_SIZE"),
    Limit("maxComputeWorkGroupSize[1]", 128, "ERROR_WORKGROUP_SIZE"),
    Limit("maxComputeWorkGroupSize[2]", 64, "ERROR_WORKGROUP_SIZE"),
)


@dataclass(slots=True)
class Shaders:
    """The executables that a program dispatches, and their entries in the order of first use.

    `needs`: member of VkPhysicalDeviceLimits -> what the program needs of it.
    """

    target: Target
    executables: list[ll_seq.Executable] = field(default_factory=list)
    kernels: list[tuple[str, int, int, int]] = field(default_factory=list)  #: entry, executable, bindings, words
    needs: dict[str, int] = field(default_factory=dict)
    widths: set[int] = field(default_factory=set)  #: of floats for which devices may have the mode
    _variants: list[tuple[int, int, list[int], tuple[int, ...]]] = field(default_factory=list)

    def add(self, executable: ll_seq.Executable, name: str, signature: Signature) -> int:
        """Adds an entry, and returns its number."""
        if executable not in self.executables:
            self.executables.append(executable)
            for payload in self.target.payloads(executable):
                bits = sum(_BITS[feature] for feature in payload.features)
                words = struct.unpack(f"<{len(payload.data) // 4}I", payload.data)
                self._variants.append((len(self.executables) - 1, bits, *_with_modes(words)))
                self.widths.update(width for width in _FLOAT_WIDTHS if additions(words, {width}))
                self.need("maxComputeSharedMemorySize", payload.shared_memory_bytes)
        bindings = len({binding.place for binding in signature.bindings})
        self.kernels.append((name, self.executables.index(executable), bindings, signature.parameters))
        self.need("maxPerStageDescriptorStorageBuffers", bindings)
        self.need("maxDescriptorSetStorageBuffers", bindings)
        self.need("maxPushConstantsSize", 4 * signature.parameters)
        x, y, z = signature.workgroup_size
        self.need("maxComputeWorkGroupInvocations", x * y * z)
        for axis, size in enumerate((x, y, z)):
            self.need(f"maxComputeWorkGroupSize[{axis}]", size)
        return len(self.kernels) - 1

    def need(self, member: str, value: Size) -> None:
        """The device has at least this; sizes that depend on a call are compared when it is recorded."""
        if not is_dynamic(value):
            self.needs[member] = max(self.needs.get(member, 0), value)

    def limits(self) -> Iterator[tuple[Limit, int]]:
        """What the program needs above what every device has."""
        for row in LIMITS:
            if self.needs.get(row.member, 0) > row.least:
                yield row, self.needs[row.member]

    @property
    def layouts(self) -> list[tuple[int, int]]:
        """Numbers of bindings and of parameter words, each pair once."""
        return sorted({(bindings, words) for _, _, bindings, words in self.kernels})

    @property
    def required(self) -> int:
        """Bits of the features without which some executable has no variant."""
        found = 1
        for number in range(len(self.executables)):
            own = [bits for executable, bits, _, _ in self._variants if executable == number]
            common = own[0]
            for bits in own[1:]:
                common &= bits
            found |= common
        return found

    @property
    def used(self) -> int:
        """Bits of the features of which the program makes use if a device has them."""
        found = 1
        for _, bits, _, left_out in self._variants:
            found |= bits | (32 if any(left_out) else 0)
        return found

    @property
    def optional(self) -> set[str]:
        """Names of the features for which there are variants with and without."""
        return {name for name, bit, _, _ in FEATURES if self.used & ~self.required & bit}

    @property
    def most_words(self) -> int:
        """Words of the longest code."""
        return max((len(words) for _, _, words, _ in self._variants), default=0)

    def text(self) -> str:
        """The definitions of the tables `variants`, `layouts` and `kernels`, and of the words."""
        lines: list[str] = []
        rows: list[str] = []
        for number, (executable, bits, words, left_out) in enumerate(self._variants):
            name = f"code_{number}"
            lines += [f"/* {comment(self.executables[executable].sym_name.value)} */"]
            lines += [f"static const uint32_t {name}[] = {{", *_lines(words), "};\n"]
            rows.append(f"  {{{name}, {len(words)}, {executable}, {bits}, {{{', '.join(map(str, left_out))}}}}}")
        named = [
            f"  {{{literal(name)}, {executable}, {self.layouts.index((bindings, words))}}}"
            for name, executable, bindings, words in self.kernels
        ]
        layouts = [f"  {{{bindings}, {words}}}" for bindings, words in self.layouts]
        lines.append(table("variant variants", rows or ["  {NULL, 0, 0, 0, {0, 0, 0, 0, 0, 0}}"]))
        lines.append(table("layout layouts", layouts or ["  {0, 0}"]))
        return "\n".join([*lines, table("kernel kernels", named or ["  {NULL, 0, 0}"])])


def table(name: str, rows: Sequence[str]) -> str:
    """The definition of a table; each row is a line."""
    return f"static const {name}[] = {{\n{f',{chr(10)}'.join(rows)}\n}};\n"


def _with_modes(words: Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
    """The words with the mode that keeps NaN, and three ranges that the mode takes: first and last and one of each."""
    made, left_out = list(words), []
    rows = additions(words, _FLOAT_WIDTHS)
    for at, added in reversed(rows):
        made[at:at] = added
    shift = 0
    for at, added in rows:
        left_out += [at + shift, at + shift + len(added)]
        shift += len(added)
    return made, tuple(left_out or [0] * 6)


def _lines(words: Sequence[int]) -> Iterator[str]:
    for at in range(0, len(words), _WORDS_PER_LINE):
        yield "  " + " ".join(f"0x{word:x}," for word in words[at : at + _WORDS_PER_LINE])
