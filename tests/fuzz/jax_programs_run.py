"""The programs by which JAX tests its own lowering, on each device, compared with XLA: `make jax-programs`.

`python tests/fuzz/jax_programs_run.py --devices=reference,cpu --every=1 --part=0/2` prints a line per program that is
refused or differs, and counts at the end. The exit status is 1 if a result differs. Programs that JAX itself refuses
on CPUs are left out.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import jax
from jax_programs import Program, programs
from long_run import DEVICES

from orchestrion import compiler, vm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="reference,cpu", help=f"some of {', '.join(DEVICES)}")
    parser.add_argument("--every", type=int, default=1, help="run every n-th program of each group")
    parser.add_argument("--part", default="0/1", help="I/N runs the programs whose number is I modulo N")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    part, parts = map(int, given.part.split("/"))
    counts: Counter[str] = Counter()
    for number, program in enumerate(programs(given.every)):
        if number % parts == part:
            for subject, said in outcomes(program, given.devices.split(",")):
                counts[f"{subject}: {said.partition(':')[0]}"] += 1
                if said != "equal":
                    print(f"{program.name}: {subject}: {said}", flush=True)
    print("\n".join(f"{count:6} {key}" for key, count in sorted(counts.items())))
    sys.exit(any("differs" in key for key in counts))


def outcomes(program: Program, devices: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields a device or program, and `equal`, or the reason why not."""
    jitted, arguments = jax.jit(program.function), program.arguments
    try:
        lowered, want = jitted.lower(*arguments), jitted(*arguments)
    except Exception as error:  # many types: XLA and JAX raise what they like
        yield "XLA", f"refused: {type(error).__name__}"
        return
    try:
        blob = compiler.compile(lowered, targets=list(dict.fromkeys(DEVICES[device] for device in devices)))
    except compiler.CompileError as error:
        yield "compiler", f"refused: {error}"
        return
    for device in devices:
        try:
            with vm.load(blob, device=device) as loaded:
                found = program.difference(loaded.main(*arguments), want)
        except vm.VmError as error:
            yield device, f"refused: {error}"
        else:
            yield device, f"differs: {found}" if found else "equal"


if __name__ == "__main__":
    main()
