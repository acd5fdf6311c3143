"""A script that `test_frozen_app` freezes into one file: says as JSON what the runtime finds and does in there.

`frozen_probe MODULE [late]`; with `late` it does not call `freeze_support`.
"""

import json
import sys

import numpy as np

from orchestrion import vm
from orchestrion.hal import registry
from orchestrion.hal.libraries.registry import libraries
from orchestrion.hal.vulkan.trial_build import helper
from orchestrion.schema.child_process import ChildFailed


def run(device: str, **options: float) -> list[float] | str:
    x = np.array([1, 2, 3, 4], np.float32)
    try:
        program = vm.load(sys.argv[1], device, **options)
    except vm.VmError as error:
        return f"{type(error).__name__}: {error}"
    made: list[float] = np.asarray(program.simple_mul(x, x)).tolist()
    program.close()
    return made


def limits() -> dict[str, int] | str:
    """What the system says of the helper process."""
    try:
        helper.start()
        answer = helper.request({"kind": "open", "identity": "none", "enabled": [], "features": []}, deadline=60)
    except ChildFailed as error:
        return str(error)
    assert answer.fields == {"missing": True}
    with open(f"/proc/{helper.pid}/limits", encoding="ascii") as file:
        rows = {line[:26].strip(): line[26:].split()[0] for line in file}
    return {name: int(rows[name]) for name in ("Max data size", "Max core file size")}


def main() -> None:
    if sys.argv[2:] != ["late"]:
        vm.freeze_support()
    said = {
        "frozen": getattr(sys, "frozen", False),
        "drivers": {status.name: status.reason for status in registry.list_devices()},
        "libraries": [status.name for status in libraries()],
        "reference": run("reference"),
        "vulkan": run("vulkan"),
        "vulkan without a deadline": run("vulkan", build_deadline=float("inf")),
        "vulkan in no time": run("vulkan", build_deadline=1e-6),
        "limits": limits(),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
