"""Saves one dispatch and runs it again: `vm-run --compare` saves it when two devices differ, and `--replay` runs it.

The folder holds `dispatch.json`, which names the entry of the module and the number of invocations, and per binding
`NAME.input-N.npy` and `NAME.output-N.npy` of each device, in the order of the tensor's shape. A replay runs any device
on the inputs of the right device, and compares the outputs with those of the right device.
"""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.files import open_regular

from .cli import InputError, write_whole
from .entries import entries_by_name, specialized
from .tolerances import Tolerances, read

if TYPE_CHECKING:
    from orchestrion.hal.buffer import Buffer
    from orchestrion.hal.device import Device
    from orchestrion.schema.module import Module

    from .compare import Difference

Array = npt.NDArray[Any]
NOTE = "dispatch.json"
#: the offset of an operand in a binding that it shares is a multiple of it, in bytes
ALIGNMENT = 512


def save(folder: Path, difference: "Difference", devices: tuple[str, str], tolerances: Tolerances) -> None:
    """Writes the folder. `dispatch.json` comes last: the folder is not valid without it. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NOTE).unlink(missing_ok=True)
    for device, run_values in zip(devices, (difference.want, difference.got), strict=True):
        for kind, arrays in (("input", run_values.inputs), ("output", run_values.outputs)):
            for index, array in enumerate(arrays):
                if array is not None:
                    data = io.BytesIO()
                    np.save(data, array, allow_pickle=False)
                    write_whole(folder / f"{_plain(device)}.{kind}-{index}.npy", data.getvalue())
    ran = difference.got
    if ran.entry == difference.entry and difference.want.entry != difference.entry:
        ran = difference.want
    note = {
        "entry": difference.entry,
        "ran": ran.entry,
        "of_many": ran.of_many,
        "workload": list(ran.workload),
        "parameters": difference.want.step.parameters.hex(),
        "right": _plain(devices[0]),
        "ops": list(difference.want.ops),
        "location": difference.want.location,
        "differs": list(difference.lines),
        **tolerances.data(),
    }
    write_whole(folder / NOTE, (json.dumps(note, indent=2) + "\n").encode())


def _plain(device: str) -> str:
    """A device's name in a file name: the colon of `opencl:1` is not valid in every file system."""
    return device.replace(":", "-")


def replay(
    path: str,
    device: str,
    folder: Path,
    allow_native_code: bool,
    tolerances: Callable[[Tolerances], Tolerances],
    build_deadline: float | None = None,
    policy: str | None = None,
    signature: str | None = None,
) -> tuple[bool, str]:
    """Whether the device writes the same outputs as the right one, and a description of the comparison, a line per
    output.

    `tolerances`: returns the tolerances to use, given those of the recording.
    """
    from orchestrion.hal.building import BuildBudget
    from orchestrion.hal.policy import Policy
    from orchestrion.hal.registry import open_device
    from orchestrion.schema.container import open_file
    from orchestrion.schema.decoder import decode

    from .arrays import mismatch, type_text

    note = _note(folder)
    module = decode(open_file(path))
    builds = BuildBudget(build_deadline)
    with open_device(device, policy=Policy(allow_native_code)) as opened, opened.share(builds=builds) as share:
        if policy is not None:
            from orchestrion.vm.admission import admit

            admit(module, share, policy, signature)
        outputs = _run(module, share, folder, note)
    allowed = tolerances(read(note))
    lines, agrees = [], True
    for index, got in outputs.items():
        found = mismatch(got, _array(folder, note, "output", index), *allowed)
        agrees &= found is None
        lines.append(f"output {index}, {type_text(got)}, {found or 'agrees'}")
    return agrees, "\n".join([f"{note['entry']} on {device}, with the inputs of {note['right']}, {allowed}:", *lines])


def _note(folder: Path) -> dict[str, Any]:
    note_path = folder / NOTE
    try:
        with os.fdopen(open_regular(note_path), encoding="utf-8") as file:
            note = json.load(file)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{note_path}: not what --compare writes: {error}") from None
    wanted = {"entry": str, "ran": str, "of_many": bool, "workload": list, "parameters": str, "right": str}
    if not isinstance(note, dict) or any(type(note.get(key)) is not kind for key, kind in wanted.items()):
        raise InputError(f"{note_path}: not what --compare writes: {', '.join(wanted)} are needed")
    known: dict[str, Any] = note
    sizes = known["workload"]
    if (
        len(sizes) != 3
        or any(type(size) is not int or not 0 < size < 1 << 32 for size in sizes)
        or "/" in known["right"]
    ):
        raise InputError(f"{note_path}: not what --compare writes: workload {sizes}, right {known['right']!r}")
    try:
        bytes.fromhex(known["parameters"])
    except ValueError:
        raise InputError(f"{note_path}: not what --compare writes: parameters {known['parameters']!r}") from None
    try:
        read(known)
    except ValueError as error:
        raise InputError(f"{note_path}: not what --compare writes: {error}") from None
    return known


def _run(module: "Module", device: "Device", folder: Path, note: dict[str, Any]) -> dict[int, Array]:
    """The outputs of the dispatch on a device, by binding."""
    from orchestrion.vm.selection import choose_program, choose_variant

    from .layouts import decode, encode
    from .operands import operands_of

    program = choose_program(module, device.info)
    places = entries_by_name(module, program)
    name = note["ran"] if note["ran"] in places else note["entry"]
    if name not in places:
        raise InputError(f"the module's program for {device.info.id} has no entry {name}")
    if name == note["entry"] and specialized(name, places) and not note["of_many"]:
        raise InputError(f"the module's program for {device.info.id} has several entries {name}, by sizes not noted")
    ordinal, entry = places[name]
    texts = module.binding_types(program, ordinal, entry)
    row = module.executables[module.programs[program].executables_start + ordinal]
    chosen = choose_variant(module, row, device.info)
    assert chosen is not None, "a program was chosen without a variant"
    row_of, words = chosen.entries[entry], bytearray(bytes.fromhex(note["parameters"]))
    operands = operands_of(texts, [access for access, _ in row_of.bindings])
    if None in [one.type for one in operands]:
        raise InputError(
            f"{name}: the module does not say which tensors its bindings hold ({', '.join(texts) or 'none'})"
        )
    executable = device.create_executable(
        chosen.format, module.segment(chosen.payload), chosen.entries, module.container.digest
    )
    buffers: list[Buffer] = []
    commands = device.create_command_buffer()
    try:
        contents = [bytearray() for _ in row_of.bindings]
        words[4 * (row_of.parameter_words - sum(one.word is not None for one in operands)) :] = b""
        starts = []
        for index, one in enumerate(operands):
            assert one.type is not None
            whole = contents[one.binding]
            whole.extend(bytes(-len(whole) % ALIGNMENT))
            starts.append(len(whole))
            if one.word is not None:
                words += len(whole).to_bytes(4, "little")
            if one.access != "write":
                whole += encode(_fitting(_array(folder, note, "input", index), one.type, index), one.type).data
            else:
                whole.extend(bytes(encode(_empty(one.type), one.type).size))
        for whole, (_, least) in zip(contents, row_of.bindings, strict=True):
            whole.extend(bytes(max(0, least - len(whole))))
            buffers.append(device.allocator.allocate(len(whole)))
            buffers[-1].write(np.frombuffer(whole, np.uint8))
        bindings = [(buffer, 0, buffer.size) for buffer in buffers]
        commands.dispatch(executable, entry, tuple(note["workload"]), bindings, bytes(words))
        commands.finish()
        device.queue.execute(commands)
        found = {}
        for index, one in enumerate(operands):
            if one.access != "read" and one.type is not None:
                out = np.empty(buffers[one.binding].size, np.uint8)
                buffers[one.binding].read(out)
                found[index] = decode(out[starts[index] :].copy(), one.type)
        return found
    finally:
        commands.release()
        for buffer in buffers:
            buffer.release()
        executable.release()


def _array(folder: Path, note: dict[str, Any], kind: str, index: int) -> Array:
    from .array_files import load_array

    return load_array(str(folder / f"{note['right']}.{kind}-{index}.npy"))


def _empty(type: Any) -> Array:
    """Zeros of a tensor type."""
    from orchestrion.schema.dtypes import BY_NAME

    return np.zeros(type.shape, BY_NAME[str(type.element)].numpy)


def _fitting(array: Array, type: Any, index: int) -> Array:
    from orchestrion.schema.dtypes import BY_NAME

    if array.shape != type.shape or array.dtype != BY_NAME[str(type.element)].numpy:
        raise InputError(f"input {index} is {array.dtype} of shape {array.shape}, the entry takes {type}")
    return array
