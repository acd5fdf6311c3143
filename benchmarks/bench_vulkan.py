"""A warm call of simple_mul on Vulkan, with copies in and out, compared with a plain submission of the same commands.

The plain sequence is cffi's vkQueueSubmit, vkWaitForFences and vkResetFences on the very VkCommandBuffer that the call
replays, with structs made beforehand. It is what remains without all of Python's part.

Expected before measuring: 35 to 60 us for the plain sequence on lavapipe, most of it waking its threads; our part is
about 8 us.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import EXAMPLES, arguments, measure, save, table, versions

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([10, 20, 30, 40], np.float32)


def raw(program: Any) -> Callable[[], None]:
    """A function that submits, waits for and resets what the program's last call replayed."""
    from orchestrion.vm.recording import Recording

    recording = next(value for value in program.context.globals if isinstance(value, Recording))
    commands = recording.commands.backend
    info = next(reversed(commands._recordings.values())).submit_info
    queue = commands._device.queue
    submit, wait, reset = queue._submit, queue._wait, queue._reset
    ticket = queue.create_ticket()
    handle, device, fence, fences = queue.handle, queue._device_handle, ticket.fence, ticket.fences

    def call() -> None:
        if submit(handle, 1, info, fence) or wait(device, 1, fences, 1, 1 << 62) or reset(device, 1, fences):
            raise RuntimeError("a Vulkan call failed")

    return call


def main() -> None:
    options = arguments("warm call of simple_mul on Vulkan")
    from orchestrion import compiler, vm

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "simple_mul.fb"
        compiler.compile_to_file(EXAMPLES / "simple_mul.generic.mlir", path, targets=["spirv"])
        program = vm.load(path, device="vulkan")
    function = program.simple_mul
    np.testing.assert_array_equal(function(X, Y), X * Y)
    candidates: dict[str, Callable[[], Any]] = {
        "orchestrion, NumPy in and out": lambda: function(X, Y),
        "raw submit, wait, reset": raw(program),
    }
    timings = measure(candidates, calls=50, rounds=options.rounds)
    note = f"{program.device.info.name}; {versions('vulkan')}"
    table("simple_mul, 4 x f32 (aim: below 2)", timings, "raw submit, wait, reset", [note])
    save(options.json, timings)


if __name__ == "__main__":
    main()
