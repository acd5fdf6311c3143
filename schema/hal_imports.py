"""The functions of the native module `hal`, which compiled code calls.

The compiler emits these signatures; `vm/hal_module.py` implements them.

- Offsets, lengths and sizes are bytes; a dtype is its code in `dtypes.py`; dims are row-major.
- A buffer operand of a recorded command is a pair `(hal.buffer, i32 slot)`. With a null buffer the command uses the
  buffer that an execution puts into that slot; otherwise the slot is ignored.
- A released function never changes its signature; an improved one gets a new name.
"""

from dataclasses import dataclass

#: loops and branches of a recording inside each other
MAX_NESTING = 64


@dataclass(frozen=True, slots=True)
class HalImport:
    name: str
    signature: str
    doc: str


_ROWS = (
    HalImport(
        "hal.constant",
        "(i32, i64, i64) -> hal.buffer",
        "(constant, offset, length): a read-only device buffer over a range of a constant of the program; "
        "no copy where the device imports host memory",
    ),
    HalImport("hal.allocate", "(i64) -> hal.buffer", "(size): device memory, all zero"),
    HalImport(
        "hal.view.check",
        "(hal.view, i32, i64*) -> hal.buffer",
        "(view, dtype, dims): the storage; a caller error unless dtype and dims match, of which -1 matches any",
    ),
    HalImport(
        "hal.view.destination",
        "(hal.view, i32, i64*) -> hal.view",
        "(view, dtype, dims): the view, a caller error unless dtype and dims match; null: a new view over a new buffer",
    ),
    HalImport("hal.view.buffer", "(hal.view) -> hal.buffer", "(view): the storage"),
    HalImport("hal.view.dim", "(hal.view, i32) -> i64", "(view, axis): one dimension"),
    HalImport(
        "hal.view.create",
        "(hal.buffer, i64, i32, i64*) -> hal.view",
        "(buffer, offset, dtype, dims): a typed view of a range of the buffer",
    ),
    HalImport(
        "hal.executable.create",
        "(i32) -> hal.executable",
        "(executable): the first variant of that executable of the program that the device supports",
    ),
    HalImport(
        "hal.recording.create", "(i32) -> hal.recording", "(slots): an empty recording with that many binding slots"
    ),
    HalImport(
        "hal.recording.create_control_flow",
        "(i32) -> hal.recording",
        "(slots): as `hal.recording.create`, for a recording with loops or branches; where the device records none, "
        "the host follows them when the recording is executed",
    ),
    HalImport(
        "hal.recording.parameters",
        "(hal.recording, i32*) -> ()",
        "(recording, words): the parameters of the next dispatch",
    ),
    HalImport(
        "hal.recording.dispatch",
        "(hal.recording, hal.executable, i32, i64, i64, i64, (hal.buffer, i32, i64, i64)*) -> ()",
        "(recording, executable, entry, workload x, y, z, (buffer, slot, offset, length) per binding)",
    ),
    HalImport(
        "hal.recording.copy",
        "(hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()",
        "(recording, source, slot, offset, target, slot, offset, length)",
    ),
    HalImport(
        "hal.recording.fill",
        "(hal.recording, hal.buffer, i32, i64, i64, i64, i32) -> ()",
        "(recording, target, slot, offset, length, pattern, bytes of the pattern: 1, 2, 4 or 8)",
    ),
    HalImport(
        "hal.recording.barrier",
        "(hal.recording) -> ()",
        "what is recorded after sees the writes of what was recorded before",
    ),
    HalImport(
        "hal.recording.begin_loop",
        "(hal.recording, hal.buffer, i32, i64) -> ()",
        "(recording, predicate, slot, offset): the commands up to the `end` run while the byte there, which is read "
        "before each iteration, is not 0",
    ),
    HalImport(
        "hal.recording.begin_branch",
        "(hal.recording, hal.buffer, i32, i64, i32, i32) -> ()",
        "(recording, selector, slot, offset, bytes of the selector: 1 or 4, arms): one of the arms runs; of 1 byte the "
        "first of two if it is not 0, of 4 bytes the one of that index, or the last",
    ),
    HalImport("hal.recording.next_arm", "(hal.recording) -> ()", "end an arm of the innermost branch, begin the next"),
    HalImport("hal.recording.end", "(hal.recording) -> ()", "end the innermost loop or branch"),
    HalImport("hal.recording.finish", "(hal.recording) -> ()", "end recording; the recording never changes again"),
    HalImport(
        "hal.execute",
        "(hal.recording, hal.buffer*) -> ()",
        "(recording, slots): submit with these in the slots, behind all that the call has enqueued, and wait",
    ),
    HalImport(
        "hal.enqueue",
        "(hal.recording, hal.buffer*) -> ()",
        "(recording, slots): goes to the device with the next `hal.execute` of the call, as one submission, in order, "
        "each recording seeing what those before it wrote; a call must not return before",
    ),
    HalImport(
        "hal.read",
        "(hal.buffer, i64, i32) -> i32",
        "(buffer, offset, bytes: 1, unsigned, or 4): a number, after what was executed before",
    ),
    HalImport(
        "hal.cache.load",
        "(hal.buffer, i32) -> i32",
        "(buffer, number): 1 if the buffer was filled with what an earlier load of the same program on such a device "
        "saved under the number; else 0; for initializers of the program only",
    ),
    HalImport(
        "hal.cache.save",
        "(hal.buffer, i32) -> ()",
        "(buffer, number): keep what the buffer holds for later loads, if the user keeps such things; for initializers "
        "of the program only",
    ),
    HalImport("hal.fence.create", "() -> hal.fence", "a fence that nobody has signalled"),
    HalImport(
        "hal.submit",
        "(hal.recording, hal.fence, hal.fence, hal.buffer*) -> ()",
        "(recording, wait, signal, slots): submit without waiting; "
        "work starts after `wait` (null: at once) and signals `signal` (null: nothing)",
    ),
)

HAL_IMPORTS: dict[str, HalImport] = {row.name: row for row in _ROWS}
