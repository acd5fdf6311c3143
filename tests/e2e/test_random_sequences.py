"""Random hl_seq programs: whatever the sequencer lets share memory, a call gives what the ops say, one after the other.

The oracle (`hl_seq_oracle.py`) interprets the text over arrays that share nothing. Each program is called again and
again in two contexts in turn, with arguments from the host and on the device, into new, given and donated memory.
`ORCHESTRION_SEQUENCES` sets how many programs there are.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hl_seq_oracle import Array, Oracle, TooLong, typed
from random_sequences import generate

from orchestrion.compiler import Compilation
from orchestrion.schema.writer import write

LoadOn = Callable[[bytes, str], Any]

COUNT = int(os.environ.get("ORCHESTRION_SEQUENCES", "30"))
TARGETS = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
#: device -> every how many programs run on it; kernels are built by slow compilers
DEVICES = {"reference": 1, "opencl": 20, "vulkan": 10}
#: programs (seed, size) that the sequencer once got wrong
FOUND = ((54, 4), (22, 4), (7, 4), (1106, 7), (1060, 7), (1103, 7))
CASES = [(device, seed, 4) for device, step in DEVICES.items() for seed in range(0, COUNT, step)]
CASES += [("reference", seed, size) for seed, size in FOUND]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("device", "seed", "size"), CASES)
def test_program(device: str, seed: int, size: int, load_on: LoadOn) -> None:
    target = TARGETS[device]
    text = generate(seed, size, 2 if size == 4 else 3, target)
    compilation = Compilation(targets=(target,), start="hl_seq")
    blob = write(compilation.rows(text.encode()))
    memory = compilation.text(text.encode(), "ll_seq")
    assert write(Compilation(targets=(target,), start="ll_seq").rows(memory.encode())) == blob
    program = load_on(blob, device)
    contexts = [(program, Oracle(text)), (program.create_context(), Oracle(text))]
    random = np.random.default_rng(seed)
    for turn, number in enumerate((0, 0, 0, 1, 0, 1)):
        context, oracle = contexts[number]
        for name, function in oracle.functions.items():
            arguments = oracle.arguments(name, random)
            try:
                results = oracle.call(name, *arguments)
            except TooLong:
                pytest.skip("runs for too long")
            wanted = [typed(x, t) for x, t in zip(results, function.function_type.results, strict=True)]
            found = call(program, getattr(context, name), turn % 3, arguments, wanted)
            for index, (got, want) in enumerate(zip(found, wanted, strict=True)):
                np.testing.assert_array_equal(np.asarray(got), want, f"result {index} of {name}, turn {turn}\n{text}")
    contexts[1][0].close()


def call(program: Any, function: Any, way: int, arguments: list[Array], wanted: list[Array]) -> list[Any]:
    """From the host; on the device into given memory; with what is donated given for its result."""
    if way == 0:
        found = function(*arguments)
        return [found] if len(wanted) == 1 else list(found)
    resident = [program.put(x) for x in arguments]
    aliases = function.export.aliases if way == 2 else [len(arguments)] * len(wanted)
    out = [
        resident[alias] if 0 <= alias < len(arguments) else program.empty(want.shape, want.dtype)
        for alias, want in zip(aliases, wanted, strict=True)
    ]
    function(*resident, out=out[0] if len(out) == 1 else out)
    for index, (given, array) in enumerate(zip(resident, arguments, strict=True)):
        if index not in aliases:
            np.testing.assert_array_equal(np.asarray(given), array, f"argument {index} changed")
    return out
