"""The programs by which JAX tests its own lowering, on each device, compared with XLA: `make jax-programs`.

`python tests/fuzz/jax_programs_run.py --devices=reference,cpu --every=1 --part=0/2` prints a line per program that is
refused or differs, and counts at the end. The exit status is 1 if a result differs. Programs that JAX itself refuses
on CPUs are left out. So are programs that are the same as an earlier one: JAX has some for other exporters of its own.

`--together=16` compiles so many programs as one module, which takes an eighth of the time on PoCL. If anything is
refused or differs, each program of the module runs by itself, and what it does then counts.
"""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import jax
import numpy as np
from jax_programs import Program, joined, programs
from long_run import DEVICES

from orchestrion import compiler, vm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="reference,cpu", help=f"some of {', '.join(DEVICES)}")
    parser.add_argument("--every", type=int, default=1, help="run every n-th program of each group")
    parser.add_argument("--part", default="0/1", help="I/N runs the programs whose number is I modulo N")
    parser.add_argument("--together", type=int, default=1, help="compile so many programs as one module")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    part, parts = map(int, given.part.split("/"))
    counts: Counter[str] = Counter()
    mine = distinct(islice(programs(given.every), part, None, parts), counts)
    while some := list(islice(mine, given.together)):
        for name, subject, said in verdicts(some, given.devices.split(",")):
            counts[f"{subject}: {said.partition(':')[0]}"] += 1
            if said != "equal":
                print(f"{name}: {subject}: {said}", flush=True)
    print("\n".join(f"{count:6} {key}" for key, count in sorted(counts.items())))
    sys.exit(any("differs" in key for key in counts))


def distinct(some: Iterable[Program], counts: Counter[str]) -> Iterator[Program]:
    """Yields the programs that JAX lowers, without those that are the same as an earlier one; counts the others."""
    seen: set[bytes] = set()
    for program in some:
        try:
            text = jax.jit(program.function).lower(*program.arguments).as_text()
        except Exception as error:  # many types: JAX raises what it likes
            print(f"{program.name}: JAX: refused: {type(error).__name__}", flush=True)
            counts["JAX: refused"] += 1
            continue
        digest = hashlib.sha256(text.encode())
        for leaf in map(np.asarray, jax.tree.leaves(program.arguments)):
            digest.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
        if digest.digest() in seen:
            counts["the same as an earlier program"] += 1
            continue
        seen.add(digest.digest())
        yield program


def verdicts(some: Sequence[Program], devices: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yields name, device or program, and outcome. Several programs run as one, then alone if one is not equal."""
    if len(some) > 1:
        together = list(outcomes(joined(some), devices))
        if all(said == "equal" for _, said in together):
            yield from ((program.name, subject, said) for program in some for subject, said in together)
            return
        print(f"{some[0].name} and {len(some) - 1} others: {together[-1]}", flush=True)
    for program in some:
        yield from ((program.name, subject, said) for subject, said in outcomes(program, devices))


def outcomes(program: Program, devices: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields a device or program, and `equal`, or the reason why not."""
    jitted, arguments = jax.jit(program.function), program.arguments
    want: Any
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
