"""Shaders for devices: accepted ones, with guards around every object, whose results the interpreter knows.

Workgroup arrays stand between guard arrays, which every invocation fills first and stores to the last binding at the
end, beside the last values that it made. Bindings stand between guard bytes in one buffer. A device breaks its promise
where a guard changes, and differs where a byte has not the interpreter's value, unless the interpreter leaves it open.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from random_shaders import Array, Grower, Shader
from shader_trials import NEEDS, accepts, words_of
from spirv_interpreter import FUEL, Setup
from spirv_program import Program
from spirv_trace import OpenAdversary, TracedRun, traced

from orchestrion.hal.device import Device
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.hal.vulkan import spirv_harden
from orchestrion.schema.spirv import OP_BY_NAME

#: words of a guard array, its first value, values that an invocation shows
GUARD, PATTERN, SHOWN = 4, 0x5AFE0000, 6
#: bytes between bindings in the buffer, bytes of a binding, what guard bytes hold
STEP, BYTES, FENCE = 512, 64, 0xA5


class GuardedGrower(Grower):
    """Grows a shader with guards, of kinds that the device has."""

    def __init__(self, rng: random.Random, features: frozenset[str]) -> None:
        super().__init__(rng)
        self.family = ""
        self.missing = {kind for kind, feature in NEEDS.items() if feature not in features}
        self.guards: list[int] = []
        self.observed = 0

    def declare(self) -> None:
        super().declare()
        binding = len(self.bindings)
        self.observed = self.words.buffer(binding, "u32", True)
        self.bindings.append(("readwrite", 4))

    def memory_kind(self) -> str:
        kind = super().memory_kind()
        return kind if kind not in self.missing else "u32"

    def array(self, kind: str, length: int) -> Array:
        """A workgroup array of a length that devices have room for, between guards."""
        self.kinds = [kind for kind in self.kinds if kind not in self.missing]
        self.floats = [kind for kind in self.floats if kind not in self.missing]
        if not self.guards:
            self.guards.append(self.words.workgroup("u32", GUARD))
        made = super().array(kind, min(length, 300))
        self.guards.append(self.words.workgroup("u32", GUARD))
        return made

    def prologue(self) -> None:
        """Fills the guards."""
        for number, guard in enumerate(self.guards):
            for place in range(GUARD):
                index = self.words.constant("u32", place)
                value = self.words.constant("u32", PATTERN + GUARD * number + place)
                self.store(self.chain("Workgroup", "u32", guard, index), value)
        self.barrier()
        super().prologue()

    def epilogue(self) -> None:
        """Shows the last values of each kind, then the guards."""
        shown = [self.as_word(kind, value) for kind in ("u32", "f32", "bool") for value in self.pool.get(kind, ())[-2:]]
        shown += [self.words.constant("u32", 0)] * (SHOWN - len(shown))
        self.barrier()
        for guard in self.guards:
            for place in range(GUARD):
                shown.append(self.load("u32", self.chain("Workgroup", "u32", guard, self.words.constant("u32", place))))
        lane = self.load_input("LocalInvocationIndex")
        first = self.make("u32", OP_BY_NAME["OpIMul"].code, (lane, self.words.constant("u32", len(shown))))
        zero = self.words.constant("u32", 0)
        for place, value in enumerate(shown):
            index = self.make("u32", OP_BY_NAME["OpIAdd"].code, (first, self.words.constant("u32", place)))
            self.store(self.chain("StorageBuffer", "u32", self.observed, zero, index), value)

    def as_word(self, kind: str, value: int) -> int:
        if kind == "f32":
            return self.make("u32", OP_BY_NAME["OpBitcast"].code, (value,))
        if kind == "bool":
            ways = (self.words.constant("u32", 1), self.words.constant("u32", 2))
            return self.make("u32", OP_BY_NAME["OpSelect"].code, (value, *ways))
        return value


class Case(NamedTuple):
    """A shader and what it is run on: the first bytes of each binding, the parameters."""

    shader: Shader
    guards: int
    invocations: int
    buffers: tuple[bytes, ...]
    parameters: tuple[int, ...]


class Outcome(NamedTuple):
    """What the interpreter computes: bytes by binding, which of them are known, whether results can be compared."""

    buffers: list[bytearray]
    known: list[np.ndarray]
    comparable: bool


def case(seed: int, features: frozenset[str]) -> Case:
    """The case of a seed: the first shader grown from it that has one entry, is not changed, and is accepted."""
    rng = random.Random(seed)
    while True:
        shader = GuardedGrower(rng, features).shader()
        if len(shader.entries) == 1 and not shader.proposals and accepts(shader.payload, shader.entries):
            break
    (entry,) = shader.entries
    x, y, z = entry.workgroup_size
    program = Program(words_of(shader.payload))
    guards = sum(row.content.name == f"u32[{GUARD}]" for row in program.variables.values())
    words = rng.choices(WORDS, k=BYTES // 4 * (len(entry.bindings) - 1) + entry.parameter_words)
    data = np.array(words, "<u4").tobytes()
    buffers = [data[at : at + BYTES] for at in range(0, BYTES * (len(entry.bindings) - 1), BYTES)]
    shown = 4 * x * y * z * (SHOWN + GUARD * guards)
    return Case(shader, guards, x * y * z, (*buffers, bytes(shown)), tuple(words[len(words) - entry.parameter_words :]))


#: of buffers and parameters: small numbers, borders, floats of both signs
WORDS = (
    0,
    1,
    2,
    3,
    5,
    31,
    32,
    0x7F,
    0xFF,
    1000,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFE,
    0xFFFFFFFF,
    0x3F800000,
    0xC0490FDB,
)


def interpret(given: Case, rewrite: Callable[[bytes], bytes] = bytes) -> Outcome:
    """The words as the loader makes them where workgroup memory is cleared and buffers are robust, then rewritten."""
    (entry,) = given.shader.entries
    payload = spirv_harden.harden(given.shader.payload, null_initializers=True, clamp_buffers=False, shared=True)
    setup = Setup([bytearray(buffer) for buffer in given.buffers], given.parameters)
    run = TracedRun(Program(words_of(rewrite(payload)), traced), setup, OpenAdversary(0), 10 * FUEL)
    ended = run.entry(entry.name)
    known = []
    for binding, buffer in enumerate(setup.buffers):
        mask = np.ones(len(buffer), bool)
        if binding in run.shadows:
            mask[list(run.shadows[binding].open)] = False
        known.append(mask)
    return Outcome(setup.buffers, known, ended and run.comparable)


class Bench:
    """A device, and one buffer that holds all bindings of a case between guard bytes."""

    def __init__(self, name: str) -> None:
        self.device: Device = open_device(name, policy=Policy(allow_native_code=True))
        self.features = self.device.info.features
        self.ran = 0
        self.compared = 0  #: bytes

    def close(self) -> None:
        self.device.close()

    def run(self, given: Case) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """All bytes afterwards, and where in them the bindings are: (offset, length)."""
        (entry,) = given.shader.entries
        places, at = [], STEP
        for buffer in given.buffers:
            places.append((at, len(buffer)))
            at += len(buffer) // STEP * STEP + 2 * STEP
        image = np.full(at, FENCE, np.uint8)
        for (offset, length), buffer in zip(places, given.buffers, strict=True):
            image[offset : offset + length] = np.frombuffer(buffer, np.uint8)
        memory = self.device.allocator.allocate(at)
        memory.write(image)
        executable = self.device.create_executable("spirv", memoryview(given.shader.payload), given.shader.entries)
        commands = self.device.create_command_buffer()
        bindings = [(memory, offset, length) for offset, length in places]
        parameters = np.array(given.parameters, "<u4").tobytes()
        commands.dispatch(executable, 0, entry.workgroup_size, bindings, parameters)
        commands.finish()
        self.device.queue.execute(commands)
        memory.read(image)
        for part in (commands, executable, memory):
            part.release()
        return image, places

    def check(self, given: Case) -> str:
        """What is wrong with a device's run of a case: "" for nothing, "guard ..." or "differs ..."."""
        image, places = self.run(given)
        self.ran += 1
        outside = np.ones(image.size, bool)
        for offset, length in places:
            outside[offset : offset + length] = False
        if (image[outside] != FENCE).any():
            return f"guard bytes around the bindings at {np.flatnonzero((image != FENCE) & outside)[:4]}"
        offset, length = places[-1]
        shown = image[offset : offset + length].view("<u4").reshape(given.invocations, -1)
        guards = shown[:, SHOWN:]
        if (guards != PATTERN + np.arange(guards.shape[1], dtype=np.uint32)).any():
            return f"guard arrays hold {guards.tolist()}"
        return self._compare(given, image, places)

    def _compare(self, given: Case, image: np.ndarray, places: list[tuple[int, int]]) -> str:
        wanted = interpret(given)
        if not wanted.comparable:
            return ""
        for binding, (offset, length) in enumerate(places):
            found, known = image[offset : offset + length], wanted.known[binding]
            right = np.frombuffer(wanted.buffers[binding], np.uint8)
            self.compared += int(known.sum())
            wrong = np.flatnonzero((found != right) & known)
            if wrong.size:
                at = int(wrong[0]) & ~3
                return (
                    f"differs in binding {binding} at byte {at}: {found[at : at + 4].tobytes().hex()}, "
                    f"the interpreter has {right[at : at + 4].tobytes().hex()}"
                )
        return ""
