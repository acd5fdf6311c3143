"""Entries of a program, each by itself: its body, and device code of it for any schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.lower import schedules_of
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.sequencer.freeze_abi import entry_of
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.passes.choose_schedules import body_of, digest, entries_of
from orchestrion.compiler.targets.target import Payload
from orchestrion.hal.backend import Entry
from orchestrion.schema.dtypes import BY_NAME, DType

from .space import Space

if TYPE_CHECKING:
    from orchestrion.hal.workload import Grid


class Code(NamedTuple):
    """An executable of one entry, as `Device.create_executable` takes it, and the invocations of a dispatch."""

    payload: Payload
    entry: Entry
    workload: Grid


class Memory(NamedTuple):
    """A binding of an entry: who uses it, its bytes, the type of its elements."""

    access: str  #: "read", "write" or "readwrite"
    length: int
    dtype: DType


@dataclass(frozen=True)
class Kernel:
    """An entry of static sizes. `schedule`: the one that the compiler chose."""

    name: str
    target: KernelTarget
    machine: str
    func: Func
    dispatch: flow.Dispatch
    schedule: Schedule

    @cached_property
    def body(self) -> Body:
        return body_of(self.func, self.dispatch)

    @cached_property
    def digest(self) -> str:
        """What files of schedules call the body."""
        return digest(self.func, self.dispatch)

    @property
    def format(self) -> str:
        """The format of its executables."""
        return known_profile(self.target.name).format

    @property
    def space(self) -> Space:
        return Space(self.body, self.target.row(self.machine))

    @cached_property
    def memory(self) -> list[Memory]:
        """The bindings, inputs first."""
        types = [value.type for value in self.func.entry.arguments]
        types += [output.value.type for output in self.body.outputs if output.binding >= len(types)]
        found = []
        for row, type in zip(entry_of(self.func, self.dispatch).bindings, types, strict=True):
            assert isinstance(row, DictAttr) and isinstance(type, TensorType)
            found.append(Memory(_access(row), int(ll_seq.length_of(row)), BY_NAME[str(type.element)]))
        return found

    def code(self, schedule: Schedule) -> Code:
        """Device code by a schedule that is legal. Raises CompileError if the target cannot lower it after all."""
        entry = entry_of(self.func, self.dispatch)
        entry.schedules = ArrayAttr((schedule.attribute,))
        executable = ll_seq.Executable.build(sym_name=self.name, body=Region([Block()]), loc=self.func.loc)
        executable.body.block.append(entry)
        self.target.lower(entry, self.machine)
        payload = self.target.serialize(executable)
        assert entry.workgroup_size is not None
        bindings = tuple((one.access, one.length) for one in self.memory)
        row = Entry(entry.sym_name.value, bindings, 0, _grid(entry.workgroup_size.ints))
        return Code(payload, row, _grid(entry.workload.ints))


def _access(row: DictAttr) -> str:
    return str(getattr(row.get("access"), "value", ""))


def _grid(counts: Sequence[int]) -> Grid:
    x, y, z = counts
    return x, y, z


def kernels_of(program: hl_seq.Program, target: KernelTarget) -> Iterator[tuple[str, Kernel | str]]:
    """The entries of a program by name, in its order; of one that cannot be tuned the reason."""
    for func, dispatch in entries_of(program):
        name = func.sym_name.value
        try:
            schedules = schedules_of(func)
        except CompileError as error:
            yield name, str(error)
            continue
        if func.dims is not None or len(schedules) > 1:
            yield name, "its sizes come with a call"
        elif not schedules:
            yield name, "it has no schedule"
        elif schedules[0].library is not None:
            yield name, f"it is the library kernel {schedules[0].library.dim}"
        else:
            yield name, Kernel(name, target, program.machine_name, func, dispatch, schedules[0])
