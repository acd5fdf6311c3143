"""Whether a schedule that is legal computes what others do: an entry lowered by it, run on a device and judged.

`Judge` opens a device per target when first asked for. It lowers an entry to `kernel` IR, serializes it, has Khronos'
validator look at SPIR-V where that is installed, dispatches it without the front of the HAL, and compares all bindings
with the reference schedule on the same device, and with NumPy.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from shutil import which
from typing import Any

import numpy as np
from cpu_devices import code_for
from structured_bodies import Array, Case

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import ArrayAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.dims import Dim, evaluate
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.verifier import check_input
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import choose
from orchestrion.compiler.kernel.emit import THREAD
from orchestrion.compiler.kernel.legality import problems
from orchestrion.compiler.kernel.lower import illegal, lower_entry
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.sequencer.ll_seq import Entry, specializations_of
from orchestrion.compiler.targets.target import target
from orchestrion.hal.backend import BackendDevice, Binding, MemoryUse
from orchestrion.hal.backend import Entry as EntryPoint
from orchestrion.hal.registry import load_driver
from orchestrion.hal.workload import divide, fold

#: target -> its driver. Seeds draw from `DRIVERS` unless a test names the target
DRIVERS = {"opencl": "opencl", "spirv": "vulkan"}
ALL_DRIVERS = {**DRIVERS, "cpu": "cpu"}
#: bytes behind each binding that no kernel may write
MARGIN, MARK = 64, 0x55
#: error of a sum that may be of another order, over the largest element
TOLERANCE = {"f32": 2e-4, "f64": 1e-10}


class Wrong(AssertionError):
    """A legal schedule that is not lowered, or whose kernel computes something else."""


def entry_of(module: Module) -> Entry:
    """The first entry of a module."""
    return next(op for op in module.walk() if isinstance(op, Entry))


def module_of(case: Case, schedules: Sequence[Schedule] = ()) -> Module:
    """The executable of a body, whose entry has these schedules."""
    module = parse(case.text, "case.mlir")
    check_input(module)
    if schedules:
        entry_of(module).schedules = ArrayAttr(tuple(one.attribute for one in schedules))
    return module


def body_of(case: Case) -> Body:
    return Body.of_entry(entry_of(module_of(case)))


@dataclass
class Judge:
    """Devices, open, and the results of reference schedules of the case that was judged last."""

    _devices: dict[str, BackendDevice] = field(default_factory=dict)
    _case: Case | None = None
    _references: dict[tuple[str, str], list[Array]] = field(default_factory=dict)

    def device(self, name: str) -> BackendDevice:
        """The first device of a target. Raises DriverUnavailable if there is none."""
        if name not in self._devices:
            driver = load_driver(ALL_DRIVERS[name])
            self._devices[name] = driver.open(driver.devices()[0])
        return self._devices[name]

    def close(self) -> None:
        for device in self._devices.values():
            device.close()

    def refusals(self, case: Case, schedules: Sequence[Schedule], name: str, machine: str) -> list[str]:
        """Why schedules do not fit; lowering says the same. Empty if they do."""
        row = target(name).row(machine)
        module = module_of(case, schedules)
        entry = entry_of(module)
        found = list(illegal(Body.of_entry(entry), list(schedules), row))
        if not found:
            return []
        try:
            lower_entry(entry, row)
        except CompileError as error:
            if [one.message for one in error.diagnostics] == found:
                return found
            raise Wrong(f"refused with {error}, not with {found}") from None
        raise Wrong(f"lowered in spite of {found}")

    def judge(self, case: Case, schedules: Sequence[Schedule], name: str, machine: str) -> None:
        """Raises Wrong unless legal schedules compute what the reference schedule and NumPy do."""
        got = self._run(case, schedules, name, machine)
        for number, (array, wanted) in enumerate(zip(got, case.wanted, strict=True)):
            if wanted is not None:
                _compare(f"binding {number} and NumPy", array, *wanted)
        keeps_order = all(_keeps_order(case, schedule) for schedule in schedules)
        for number, (array, other) in enumerate(zip(got, self._reference(case, name, machine), strict=True)):
            if keeps_order and array.tobytes() != other.tobytes():
                raise Wrong(f"binding {number} differs from the reference schedule: {_difference(array, other)}")
            _compare(f"binding {number} and the reference schedule", array, other, True)

    def _reference(self, case: Case, name: str, machine: str) -> list[Array]:
        if case is not self._case:
            self._case, self._references = case, {}
        key = name, machine
        if key not in self._references:
            self._references[key] = self._run(case, [_reference(case, target(name).row(machine))], name, machine)
        return self._references[key]

    def _run(self, case: Case, schedules: Sequence[Schedule], name: str, machine: str) -> list[Array]:
        """What the bindings hold after a dispatch."""
        module = module_of(case, schedules)
        entry = entry_of(module)
        try:
            lower_entry(entry, target(name).row(machine))
        except Exception as error:
            raise Wrong(f"not lowered: {type(error).__name__}: {error}") from error
        payload = code_for(self.device(name).info, name, module.block.first)
        if name == "spirv":
            _validate(payload.data)
        return self._dispatched(case, _chosen(entry, case.symbols), name, payload.data)

    def _dispatched(self, case: Case, entry: Entry, name: str, data: bytes) -> list[Array]:
        device = self.device(name)
        lengths = [array.nbytes for _, array in case.bindings]
        buffers = [device.allocate(length + MARGIN, MemoryUse.ARENA) for length in lengths]
        for buffer, (access, array) in zip(buffers, case.bindings, strict=True):
            _write(device, buffer, np.full(buffer.size, MARK, np.uint8))
            if access != "write":
                _write(device, buffer, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        device.queue.wait_idle()
        size = entry.workgroup_size.ints
        accesses = tuple((access, array.nbytes) for access, array in case.bindings)
        entries = [op for op in entry.parent or () if isinstance(op, Entry)]
        points = tuple(
            EntryPoint(op.sym_name.value, accesses, len(case.symbols), op.workgroup_size.ints) for op in entries
        )
        executable = device.create_executable(device.info.formats[0], memoryview(data), points)
        x, y, z = (evaluate(count, case.symbols) for count in entry.workload.sizes)
        groups = fold(divide((x, y, z), size), device.info.limits.max_workgroup_count)
        commands = device.create_command_buffer(0)
        words = np.asarray([case.symbols[one] for one in sorted(case.symbols)], np.uint32).tobytes()
        if min(groups) > 0:
            bindings = [Binding(buffer, 0, length) for buffer, length in zip(buffers, lengths, strict=True)]
            commands.dispatch(executable, entries.index(entry), groups, bindings, words)
        commands.finish()
        device.queue.execute(commands, ())
        found = []
        for buffer, (_, array) in zip(buffers, case.bindings, strict=True):
            raw = np.empty(buffer.size, np.uint8)
            device.queue.read(buffer, 0, raw) if buffer.host is None else np.copyto(raw, buffer.host[: raw.size])
            if not (raw[array.nbytes :] == MARK).all():
                raise Wrong("a kernel writes behind a binding")
            found.append(raw[: array.nbytes].view(array.dtype).reshape(array.shape))
        commands.release()
        executable.release()
        for buffer in buffers:
            buffer.release()
        return found


def _keeps_order(case: Case, schedule: Schedule) -> bool:
    """Whether sums are those of the reference schedule, bit for bit, as `docs/kernel.md` has it."""
    staged = any(schedule.find("stage", what) is not None for what in ("k", "out"))
    held = staged and isinstance(body_of(case).extents["k"], Dim)
    return schedule.lanes == 1 and schedule.find("vectorize", "k") is None and not held


def _reference(case: Case, machine: Machine) -> Schedule:
    """An invocation for each element, else what the machine chooses."""
    body = body_of(case)
    return THREAD if not any(problems(body, THREAD, machine)) else choose(body, machine).schedule


def _chosen(entry: Entry, symbols: dict[str, int]) -> Entry:
    """The entry that a dispatch of these sizes takes."""
    others = {op.sym_name.value: op for op in entry.parent or () if isinstance(op, Entry)}
    for row in specializations_of(entry):
        if evaluate(row.size, symbols) <= row.most:
            return others[row.entry]
    return entry


def _validate(words: bytes) -> None:
    tool = which("spirv-val")
    if tool is not None:
        said = subprocess.run([tool, "--target-env", "vulkan1.1", "-"], input=words, capture_output=True, timeout=60)
        if said.returncode:
            raise Wrong(f"spirv-val: {said.stderr.decode()}")


def _write(device: BackendDevice, buffer: Any, data: Array) -> None:
    if buffer.host is None:
        device.queue.write(buffer, 0, data)
        device.queue.wait_idle()
    else:
        buffer.host[: data.size] = data


def _compare(what: str, got: Array, want: Array, near: bool) -> None:
    if not near or got.dtype.kind != "f":
        if not np.array_equal(got, want, equal_nan=got.dtype.kind == "f"):
            raise Wrong(f"{what}: {_difference(got, want)}")
        return
    bound = TOLERANCE[f"f{8 * got.dtype.itemsize}"] * max(1.0, float(np.abs(want).max(initial=0)))
    if not np.allclose(got, want, rtol=0, atol=bound, equal_nan=True):
        raise Wrong(f"{what}: {_difference(got, want)}")


def _difference(got: Array, want: Array) -> str:
    differs = np.argwhere(~((got == want) | (got != got) & (want != want)))
    if not len(differs):
        return "in the signs of zeros or in NaNs"
    place = tuple(map(int, differs[0]))
    return f"{len(differs)} of {got.size} elements, at {place} {got[place]} instead of {want[place]}"
