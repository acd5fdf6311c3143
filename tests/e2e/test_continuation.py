"""The examples: what continues from the dumped text of any phase is the same module, byte for byte."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrion import compiler
from orchestrion.compiler.pipeline import FIRST_PHASE, PHASES
from orchestrion.schema.profiles import PROFILES
from orchestrion.schema.writer import write

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCES = sorted(EXAMPLES.glob("*.mlir"))


def _noted(source: Path, what: str) -> str:
    """What a comment in front of a program says."""
    return source.read_text().partition("\n")[0].partition(f"// {what}: ")[2]


def _targets(source: Path) -> tuple[str, ...]:
    named = _noted(source, "targets")
    return tuple(named.split(", ")) if named else tuple(PROFILES)


def _start(source: Path) -> str:
    """The phase that the text is of."""
    return _noted(source, "phase") or FIRST_PHASE


@pytest.mark.parametrize("source", SOURCES, ids=[path.name for path in SOURCES])
def test_example(source: Path, tmp_path: Path) -> None:
    targets = _targets(source)
    start = _start(source)
    whole = write(compiler.Compilation(targets=targets, start=start, dump=tmp_path).rows(str(source)))
    continued = {}
    for path in sorted(tmp_path.iterdir()):
        phase = path.stem.partition("-")[2]
        continued[phase] = write(compiler.Compilation(targets=targets, start=phase).rows(str(path)))
    assert list(continued) == list(PHASES)[list(PHASES).index(start) :]
    assert [phase for phase, data in continued.items() if data != whole] == []


@pytest.mark.parametrize("source", SOURCES, ids=[path.name for path in SOURCES])
def test_mlir_reads_every_phase(source: Path, tmp_path: Path) -> None:
    """What we print is MLIR: another implementation parses it, dialects of ours unregistered, and verifies it, where no
    type has symbolic sizes, which its StableHLO does not take.
    """
    ir = pytest.importorskip("jaxlib.mlir.ir")
    compiler.Compilation(targets=_targets(source), start=_start(source), dump=tmp_path).rows(str(source))
    for path in sorted(tmp_path.iterdir()):
        text = path.read_text()
        with ir.Context() if "#util.dims" in text else _stablehlo_context(ir) as context:
            context.allow_unregistered_dialects = True
            assert ir.Module.parse(text), path.name


def _stablehlo_context(ir: Any) -> Any:
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    return context


def test_the_order_of_hashes_does_not_show(tmp_path: Path) -> None:
    """Same input, same bytes, whatever PYTHONHASHSEED."""
    code = "import sys; from orchestrion import compiler; compiler.compile_to_file(sys.argv[1], sys.argv[2])"
    found = set()
    for seed in ("0", "1", "12345"):
        out = tmp_path / f"{seed}.fb"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(EXAMPLES / "mlp.mlir"), str(out)], env=environment, check=True)
        found.add(out.read_bytes())
    assert len(found) == 1
