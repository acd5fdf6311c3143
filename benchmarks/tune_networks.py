"""What `vm-tune` finds for a small ResNet-18 and a small transformer: the five entries of each that take longest.

    python benchmarks/tune_networks.py --budget=200 opencl vulkan

Prints a table in Markdown, as docs/tuning.md has it, with the load of the machine before each search. Other work on
the machine makes a search see fewer schedules, and times longer.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from harness import EXAMPLES

from orchestrion.tools import tune

ENTRIES = 5


def export(folder: Path) -> dict[str, Path]:
    """network -> its portable artifact, with its weights."""
    import sys

    import jax
    import numpy as np
    from jax.export import export

    sys.path.insert(0, str(EXAMPLES))
    import networks

    random = np.random.default_rng(0)
    resnet = networks.resnet18(random, width=32, classes=100)
    encoder = networks.encoder(random, layers=2, width=256, vocabulary=1000, longest=128)
    programs = {
        "ResNet-18": (lambda x: networks.apply_resnet18(resnet, x), (1, 64, 64, 3), np.float32),
        "transformer": (lambda tokens: networks.apply_encoder(encoder, tokens, 8), (1, 128), np.int32),
    }
    made = {}
    for name, (function, shape, dtype) in programs.items():
        made[name] = folder / f"{name}.mlirbc"
        exported = export(jax.jit(function))(jax.ShapeDtypeStruct(shape, dtype))
        made[name].write_bytes(exported.mlir_module_serialized)
    return made


def rows(network: str, found: dict[str, Any]) -> list[str]:
    """The rows of one search."""
    lines = []
    for row in found["entries"][:ENTRIES]:
        name, op = row["entry"].removeprefix("main_dispatch_"), row["op"].removeprefix("stablehlo.")
        kept = row["found"] == row["chosen"]
        times = f"{1e6 * row['before']:,.0f} us | {1e6 * row['after']:,.0f} us"
        what = "as before" if kept else f"`{row['found']}`"
        lines.append(f"| {network} | {name}, {op} | {row['share']:.0%} | {times} | {row['trials']} | {what} |")
    call = found["call"]
    if call["after"]:
        lines.append(f"| {network} | the call | | {1e6 * call['before']:,.0f} us | {1e6 * call['after']:,.0f} us | | |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=200, metavar="SECONDS", help="of each search")
    parser.add_argument("devices", nargs="*", default=["opencl", "vulkan"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = export(folder)
        for device in options.devices:
            print(f"{device}\n\n| network | entry | share | before | after | trials | schedule |")
            print("| --- | --- | --- | --- | --- | --- | --- |")
            for network, path in programs.items():
                print(f"<!-- load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors -->")
                report = folder / "report.json"
                flags = [str(path), f"--device={device}", f"--entries={ENTRIES}", f"--budget={options.budget}"]
                if tune.main([*flags, f"--report={report}", "--quiet", "-o", str(folder / "found")]):
                    raise SystemExit(1)
                print("\n".join(rows(network, json.loads(report.read_text("utf-8")))), flush=True)
            print()


if __name__ == "__main__":
    main()
