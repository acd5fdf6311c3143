"""A compiled entry of tensor bytecode: a list of steps over registers, each step a closure.

Registers hold one array per value. Binding buffers fills some of them (inputs, constants, views of these, outputs),
which stay valid while the same buffers are used; the steps fill the rest. Usually a stored value is computed directly
in the output's memory, and an input is copied only if its own binding is written while it is needed. If a written
binding overlaps another binding, the `overlapping` form is used: it copies all inputs when they are loaded, and writes
outputs when they are stored.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import Bytes
from orchestrion.schema.dtypes import BOOL
from orchestrion.schema.tensor_bytecode import LOAD, STORE, STORE_SLICE, EntryCode, Instruction
from orchestrion.schema.tensor_shapes import Ints, TensorType

from .interrupt import OPERATIONS_PER_POLL, operations
from .kernels import Kernel, Poll, WindowSlices, constant_array, kernel_of, window_at
from .memory import last_uses, peak_bytes
from .views import View, view_of

Array = npt.NDArray[Any]
Registers = list[Any]
Step = Callable[[Registers], None]

_BYTE = np.dtype(np.uint8)
#: registers that keep at most this many bytes alive, in total, are not cleared, because clearing costs more; they stay
#: until the next run
UNCLEARED_BYTES = 4096
#: bytes of a register and its array without the elements
REGISTER_BYTES = 200


class CompiledEntry:
    """The steps of an entry, and the initial contents of its registers. `scratch_bytes` is the most memory that a run
    takes in addition to its bindings.

    `operations` is an estimate of the elementary operations of a run; `size` is the number of registers; `held_bytes`
    is the memory that a recorded dispatch keeps between runs.
    """

    __slots__ = ("_registers", "_typed", "_viewed", "held_bytes", "operations", "scratch_bytes", "size", "steps")

    def __init__(
        self,
        steps: tuple[Step, ...],
        registers: Registers,
        typed: tuple[tuple[int, int, np.dtype[Any], Ints], ...],
        viewed: tuple[tuple[int, View, int], ...],
        scratch_bytes: int,
        operations: int,
    ) -> None:
        self.steps = steps
        self.size = len(registers)
        self.operations = operations
        self.held_bytes = UNCLEARED_BYTES + REGISTER_BYTES * self.size
        self._registers = registers
        self._typed = typed
        self._viewed = viewed
        self.scratch_bytes = scratch_bytes

    def bind(self, memories: Sequence[tuple[Bytes, int]]) -> Registers:
        """Returns the registers for these bindings, each (memory, offset)."""
        registers = self._registers.copy()
        for register, binding, dtype, shape in self._typed:
            memory, offset = memories[binding]
            registers[register] = np.ndarray(shape, dtype, memory, offset)
        for register, view, operand in self._viewed:
            registers[register] = view(registers[operand])
        return registers


def compile_entry(entry: EntryCode, overlapping: bool, poll: Poll) -> CompiledEntry:
    """Compiles a verified entry. `poll` is called before and between steps that take long."""
    return _Compiler(entry, overlapping, poll).run()


class _Compiler:
    """Processes the instructions once; `_emit` calls the method for the instruction's role."""

    def __init__(self, entry: EntryCode, overlapping: bool, poll: Poll) -> None:
        self.entry = entry
        self.poll = poll
        self.overlapping = overlapping
        self.registers: Registers = [None] * len(entry.values)
        self.steps: list[Step] = []
        self.typed: list[tuple[int, int, np.dtype[Any], Ints]] = []
        self.viewed: list[tuple[int, View, int]] = []
        #: values that exist before the first step -> whether they are contiguous in row-major order
        self.bound: dict[int, bool] = {}
        #: values computed directly in an output -> its binding
        self.direct: dict[int, int] = {} if overlapping else _direct(entry)
        #: loaded values that must be copies, not views of their bindings
        self.copied = set() if overlapping else _overwritten(entry, self.direct)
        #: per value, the bytes that it owns, and the bytes that it keeps alive
        self.owned = [0] * len(entry.values)
        self.kept = [0] * len(entry.values)

    def run(self) -> CompiledEntry:
        entry = self.entry
        drops = [-1] * len(entry.values)
        ending: list[list[int]] = [[] for _ in entry.instructions]
        for value, ordinal in enumerate(last_uses(entry)):
            ending[ordinal].append(value)
        total = since_poll = left = 0
        for ordinal, instruction in enumerate(entry.instructions):
            work = operations(entry, instruction)
            total += work
            since_poll += work
            if since_poll > OPERATIONS_PER_POLL:
                self.steps.append(_poll(self.poll))
                since_poll = 0
            self._emit(instruction)
            for value in ending[ordinal]:
                left += self.kept[value]
                if left > UNCLEARED_BYTES:
                    left -= self.kept[value]
                    drops[value] = ordinal
                    self.steps.append(_drop(value))
        peak = peak_bytes(entry, self.owned, drops)
        return CompiledEntry(tuple(self.steps), self.registers, tuple(self.typed), tuple(self.viewed), peak, total)

    def _emit(self, instruction: Instruction) -> None:
        row = instruction.row
        if row is LOAD:
            self._load(instruction)
        elif row is STORE:
            self._store(instruction)
        elif row is STORE_SLICE:
            self._store_slice(instruction)
        elif row.name == "constant":
            self.registers[instruction.first] = constant_array(*instruction.attributes)
            self.bound[instruction.first] = True
        elif row.view:
            self._view(instruction)
        else:
            self._compute(instruction)

    def _load(self, instruction: Instruction) -> None:
        binding, type = instruction.attributes
        value = instruction.first
        if type.dtype.kind == BOOL:
            raw = self._memory_register(binding, _BYTE, type.shape)
            self._allocate(value, type)
            self.steps.append(_call(np.not_equal, (raw, self._zero()), (value,)))
        elif self.overlapping or value in self.copied:
            raw = self._memory_register(binding, type.dtype.numpy, type.shape)
            self._allocate(value, type)
            self.steps.append(_copy(raw, value))
        else:
            self.typed.append((value, binding, type.dtype.numpy, type.shape))
            self.bound[value] = True

    def _store(self, instruction: Instruction) -> None:
        (value,), (binding,) = instruction.operands, instruction.attributes
        if self.direct.get(value) == binding:
            return
        type = self.entry.values[value]
        self.steps.append(_copy(value, self._memory_register(binding, type.dtype.numpy, type.shape)))

    def _store_slice(self, instruction: Instruction) -> None:
        (value, *starts), (binding, whole) = instruction.operands, instruction.attributes
        update = self.entry.values[value]
        place = window_at(TensorType(update.dtype, whole), update.shape)
        memory = self._memory_register(binding, update.dtype.numpy, whole)
        self.steps.append(_assign(value, tuple(starts), memory, place))

    def _view(self, instruction: Instruction) -> None:
        (operand,), value = instruction.operands, instruction.first
        view = view_of(instruction, self.entry.values[operand])
        may_copy = instruction.row.name == "reshape" and not self.bound.get(operand)
        if operand in self.bound and not may_copy:
            self.viewed.append((value, view, operand))
            self.bound[value] = instruction.row.name == "reshape"
            return
        self.owned[value] = instruction.types[0].bytes if may_copy else 0
        self.kept[value] = self.kept[operand] + self.owned[value]
        self.steps.append(_apply(view, operand, value))

    def _compute(self, instruction: Instruction) -> None:
        outs = tuple(range(instruction.first, instruction.first + len(instruction.types)))
        for value, type in zip(outs, instruction.types, strict=True):
            if value in self.direct:
                self.typed.append((value, self.direct[value], type.dtype.numpy, type.shape))
            else:
                self._allocate(value, type, zeroed=instruction.row.name == "library_call")
        self.steps.append(_call(kernel_of(self.entry, instruction, self.poll), instruction.operands, outs))

    def _allocate(self, value: int, type: TensorType, zeroed: bool = False) -> None:
        """Allocate a result. Instructions write every element of it; a library function may not, so it gets zeros."""
        self.owned[value] = self.kept[value] = type.bytes
        self.steps.append(_new(np.zeros if zeroed else np.empty, value, type.shape, type.dtype.numpy))

    def _memory_register(self, binding: int, dtype: np.dtype[Any], shape: Ints) -> int:
        """An additional register for the memory of a binding."""
        self.registers.append(None)
        self.typed.append((len(self.registers) - 1, binding, dtype, shape))
        return len(self.registers) - 1

    def _zero(self) -> int:
        self.registers.append(np.zeros((), np.uint8))
        return len(self.registers) - 1


def _direct(entry: EntryCode) -> dict[int, int]:
    """Values that are computed by an instruction and stored whole -> the first binding that they are stored to."""
    computed = {
        value
        for instruction in entry.instructions
        if not instruction.row.view and instruction.row is not LOAD and instruction.row.name != "constant"
        for value in range(instruction.first, instruction.first + len(instruction.types))
    }
    direct: dict[int, int] = {}
    for instruction in entry.instructions:
        if instruction.row is STORE and instruction.operands[0] in computed:
            direct.setdefault(instruction.operands[0], instruction.attributes[0])
    return direct


def _overwritten(entry: EntryCode, direct: dict[int, int]) -> set[int]:
    """Loaded values that are used while or after their binding is written. Excluded are uses by an elementwise
    instruction that reads in the order in which it writes, and by a store, which NumPy makes safe.
    """
    made = {one.first + n: ordinal for ordinal, one in enumerate(entry.instructions) for n in range(len(one.types))}
    written: dict[int, int] = {}
    for ordinal, one in enumerate(entry.instructions):
        if one.row is STORE:
            value, binding = one.operands[0], one.attributes[0]
            written[binding] = made[value] if direct.get(value) == binding else ordinal
        elif one.row is STORE_SLICE:
            written[one.attributes[0]] = ordinal
    loads = {one.first: written.get(one.attributes[0], -1) for one in entry.instructions if one.row is LOAD}
    if max(loads.values(), default=-1) < 0:
        return set()
    last = last_uses(entry)
    return {
        value
        for value, ordinal in loads.items()
        if 0 <= ordinal <= last[value]
        and (ordinal < last[value] or not _in_order(entry, entry.instructions[ordinal], value))
    }


def _in_order(entry: EntryCode, writer: Instruction, value: int) -> bool:
    """Whether an instruction may write the memory of a value that it reads."""
    if writer.row is STORE or writer.row is STORE_SLICE:
        return True
    if writer.row.name == "scatter":
        return _updates(entry, writer, value)
    if writer.row.scalar is None or writer.types[0].dtype.itemsize != entry.values[value].dtype.itemsize:
        return False
    same, turned = {value}, set[int]()
    for one in entry.instructions:
        if one.row.view and one.operands[0] in same | turned:
            (same if one.row.name == "reshape" and one.operands[0] in same else turned).add(one.first)
    return turned.isdisjoint(writer.operands)


def _updates(entry: EntryCode, scatter: Instruction, value: int) -> bool:
    """Whether a loaded value is only the operand that a scatter updates in place."""
    load = next(one for one in entry.instructions if one.first == value and one.row is LOAD)
    stores = [one for one in entry.instructions if one.row is STORE and one.attributes[0] == load.attributes[0]]
    place = scatter.operands.index(value) if scatter.operands.count(value) == 1 else len(scatter.types)
    views = [one for one in entry.instructions if one.row.view and value in one.operands]
    return place < len(scatter.types) and not views and stores[0].operands[0] == scatter.first + place


def _call(kernel: Kernel, operands: tuple[int, ...], outs: tuple[int, ...]) -> Step:
    used = (*operands, *outs)
    if len(used) == 2:
        x, z = used
        return lambda registers: kernel(registers[x], registers[z])
    if len(used) == 3:
        x, y, z = used
        return lambda registers: kernel(registers[x], registers[y], registers[z])
    return lambda registers: kernel(*[registers[value] for value in used])


def _apply(view: View, operand: int, value: int) -> Step:
    def step(registers: Registers) -> None:
        registers[value] = view(registers[operand])

    return step


def _new(make: Callable[[Ints, np.dtype[Any]], Array], value: int, shape: Ints, dtype: np.dtype[Any]) -> Step:
    def step(registers: Registers) -> None:
        registers[value] = make(shape, dtype)

    return step


def _copy(source: int, target: int) -> Step:
    def step(registers: Registers) -> None:
        registers[target][...] = registers[source]

    return step


def _assign(source: int, starts: tuple[int, ...], target: int, place: WindowSlices) -> Step:
    def step(registers: Registers) -> None:
        registers[target][place([registers[start] for start in starts])] = registers[source]

    return step


def _poll(poll: Poll) -> Step:
    return lambda registers: poll()


def _drop(value: int) -> Step:
    def step(registers: Registers) -> None:
        registers[value] = None

    return step
