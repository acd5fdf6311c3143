"""Programs of which `compare_versions.py` times warm calls, from the tables of the benchmarks that measure them alone.

A group is a generator of programs. Its name begins the titles of its rows.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
Arrays = list[Any]


@dataclass(frozen=True)
class Program:
    """StableHLO text, and the arguments of the calls to time, by the title of their row.

    `resident`: arguments and the only result stay on the device. `flags`: further ones of `vm-compile`.
    """

    text: str
    cases: dict[str, Arrays]
    resident: bool = False
    flags: tuple[str, ...] = ()


def examples() -> Iterator[Program]:
    import jax

    sys.path.insert(0, str(ROOT / "examples"))
    import networks

    four = np.arange(4, dtype=np.float32)
    yield Program((ROOT / "examples" / "simple_mul.mlir").read_text(), {"simple_mul": [four, four]})
    generator = np.random.default_rng(0)
    weights = networks.resnet18(generator)
    image = generator.standard_normal((1, 224, 224, 3), np.float32)
    text = jax.jit(lambda x: networks.apply_resnet18(weights, x)).lower(image).as_text()
    yield Program(text, {"ResNet-18": [image]})


def heroes() -> Iterator[Program]:
    import jax
    from bench_heroes import ROWS

    for row in ROWS:
        arguments = row.arguments()
        yield Program(jax.jit(row.function).lower(*arguments).as_text(), {row.title: arguments}, resident=True)


def dynamic() -> Iterator[Program]:
    from bench_dynamic import program_of, real_programs, rows

    programs = {name: program_of(row) for name, row in rows().items()} | real_programs()
    for name, program in programs.items():
        yield Program(program.text, {f"{name}, {at}": values for at, _, values in program.cases})


def fft() -> Iterator[Program]:
    import jax
    from bench_fft import ROWS, argument, title

    for name, function, shape in ROWS:
        z = argument(shape)
        yield Program(jax.jit(function).lower(z).as_text(), {title(name, shape): [z]})


def factors() -> Iterator[Program]:
    import jax
    from bench_factors import ROWS, SIZES, matrix

    for name, (function, _) in ROWS.items():
        for size in SIZES:
            a = matrix(size)
            yield Program(jax.jit(function).lower(a).as_text(), {f"{name} {size}": [a]})


def packed() -> Iterator[Program]:
    from bench_packed_dot import KINDS, SHAPES, operands, text

    for shape in SHAPES:
        for kind, (encodings, constant) in KINDS.items():
            given = operands(shape)[: 1 if constant else 2]
            title = f"{' x '.join(map(str, shape))}, {kind}"
            yield Program(text(*shape, constant), {title: given}, True, (f"--encodings={encodings}",))


GROUPS: dict[str, Callable[[], Iterator[Program]]] = {
    "examples": examples,
    "heroes": heroes,
    "dynamic": dynamic,
    "fft": fft,
    "factors": factors,
    "packed": packed,
}
