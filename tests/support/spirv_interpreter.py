"""Runs a shader of the SPIR-V subset for one workgroup with hostile values, and finds accesses and barriers that break
a promise.

Each invocation runs up to its next barrier, then all go on. The promises: no access leaves its object, all invocations
meet at the same barriers, in the same turns of loops, and a value that is used was made on the way. A broken one is a
`Finding`. A run ends early, without one, when its fuel is used up: a shader may spin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spirv_memory import Adversary, Buffer, Constant, Finding, Workgroup
from spirv_program import Block, Program, Variable

from orchestrion.schema.spirv import BUILTINS

FUEL = 3000
_BUILTIN_NAMES = {code: name for name, code in BUILTINS.items()}


@dataclass
class Setup:
    """What a dispatch brings: `buffers` are the bytes of the bindings."""

    buffers: list[bytearray]
    parameters: tuple[int, ...] = ()
    workgroup: tuple[int, int, int] = (0, 0, 0)
    workgroups: tuple[int, int, int] = (1, 1, 1)
    robust: bool = True  #: the device bounds accesses to buffers
    read_only: frozenset[int] = frozenset()  #: bindings
    strict: bool = False  #: no workgroup memory may be read before it is written


class OutOfFuel(Exception):
    pass


@dataclass(slots=True)
class Invocation:
    """Where one invocation stands."""

    index: int
    values: dict[int, Any]
    block: Block
    part: int = 0
    turns: dict[int, int] = field(default_factory=dict)  #: of a loop, by its header


class Run:
    """One workgroup. `loads` counts loads of what nobody wrote."""

    def __init__(self, program: Program, setup: Setup, adversary: Adversary, fuel: int = FUEL) -> None:
        self.program = program
        self.setup = setup
        self.adversary = adversary
        self.fuel = fuel
        self.loads = 0
        self.memories: dict[int, Any] = {}
        self.current = 0
        self.blocks: dict[int, Block] = {}

    def entry(self, name: str) -> bool:
        """Runs an entry; False where the fuel did not do."""
        program = self.program
        function = program.entries[name]
        self.blocks = program.functions[function]
        used = program.used[function]
        self.memories = {
            id: self.memory(variable)
            for id, variable in program.variables.items()
            if variable.storage == "Input" or id in used
        }
        x, y, z = program.sizes[function]
        first = next(iter(self.blocks.values()))
        shared = program.constants | {id: (memory, None) for id, memory in self.memories.items()}
        invocations = [Invocation(index, dict(shared), first) for index in range(x * y * z)]
        if self.adversary.seed & 1:
            invocations.reverse()
        for invocation in invocations:
            self.start(invocation)
        try:
            self.together(invocations)
        except OutOfFuel:
            return False
        return True

    def start(self, invocation: Invocation) -> None:
        """Gives the invocation the inputs that are its own."""
        for id, variable in self.program.variables.items():
            if variable.storage == "Input" and _BUILTIN_NAMES[variable.builtin] == "LocalInvocationIndex":
                invocation.values[id] = (Constant("LocalInvocationIndex", invocation.index), None)

    def together(self, invocations: Sequence[Invocation]) -> None:
        while True:
            stops = []
            for invocation in invocations:
                self.current = invocation.index
                stops.append(self.advance(invocation))
            if any(stop != stops[0] for stop in stops):
                raise Finding("barrier", f"invocations stop at {sorted(map(str, stops))}")
            if stops[0] is None:
                return
            self.passed_barrier()

    def passed_barrier(self) -> None:
        """All invocations are at a barrier."""

    def advance(self, invocation: Invocation) -> tuple[Any, ...] | None:
        """Up to the next barrier: which one, in which turns of its loops; None at the end."""
        values = invocation.values
        try:
            while True:
                block = invocation.block
                steps = block.parts[invocation.part]
                self.fuel -= len(steps) + 1
                if self.fuel < 0:
                    raise OutOfFuel
                for step in steps:
                    step[0](self, values, step)
                if invocation.part + 1 < len(block.parts):
                    invocation.part += 1
                    turns = invocation.turns
                    return (block.label, invocation.part, *(turns[header] for header in block.loops))
                target = self.target(block, values)
                if not target:
                    return None
                self.enter(invocation, target)
        except KeyError as missing:
            raise Finding("undefined value", f"value {missing} in block {invocation.block.label}") from missing

    def target(self, block: Block, values: dict[int, Any]) -> int:
        """The block to go to, 0 behind the last one."""
        if not block.condition:
            return block.targets[0]
        return block.targets[0] if values[block.condition] else block.targets[1]

    def enter(self, invocation: Invocation, label: int) -> None:
        """Takes the edge to a block: phis get their values, and values of the turn before are gone."""
        before, block, values = invocation.block, self.blocks[label], invocation.values
        found = [values[pairs[before.label]] for _, pairs in block.phis]
        if block.merge:
            again = label in before.loops
            if again:
                for id in block.inner:
                    values.pop(id, None)
            invocation.turns[label] = invocation.turns[label] + 1 if again else 0
        for (result, _), value in zip(block.phis, found, strict=True):
            values[result] = value
        invocation.block, invocation.part = block, 0

    # objects

    def memory(self, variable: Variable) -> Any:
        content, setup = variable.content, self.setup
        if variable.storage == "Workgroup":
            return self.workgroup(variable)
        if variable.storage == "PushConstant":
            return Constant("the parameters", setup.parameters[: len(content.members)])
        if variable.storage == "StorageBuffer":
            return self.buffer(variable)
        name = _BUILTIN_NAMES[variable.builtin]
        return Constant(name, {"WorkgroupId": setup.workgroup, "NumWorkgroups": setup.workgroups}.get(name))

    def workgroup(self, variable: Variable) -> Workgroup:
        kind = variable.content.element
        zero = {"f": 0.0, "b": False}.get(kind[0], 0)
        return Workgroup(variable.content.length, zero if variable.zero else None, self.setup.strict)

    def buffer(self, variable: Variable) -> Buffer:
        held = variable.content.members[0][:-2]
        kind, _, lanes = held.partition("x")
        if not 0 <= variable.binding < len(self.setup.buffers):
            raise Finding("access", f"binding {variable.binding} of {len(self.setup.buffers)}")
        memory, writable = self.setup.buffers[variable.binding], variable.binding not in self.setup.read_only
        return Buffer(memory, kind, int(lanes or 1), self.setup.robust, writable and variable.writable)
