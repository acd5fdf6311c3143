"""The examples: what continues from the dumped text of any phase is the same module, byte for byte."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from phase_texts import check_texts_continue, dumped_texts

from orchestrion import compiler
from orchestrion.compiler.pipeline import FIRST_PHASE
from orchestrion.schema.profiles import PROFILES
from orchestrion.schema.writer import write

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCES = sorted(EXAMPLES.glob("*.mlir"))
Compiled = Callable[[Path], tuple[bytes, dict[str, str]]]


def _noted(source: Path, what: str) -> str:
    """What a comment in front of a program says."""
    return source.read_text().partition("\n")[0].partition(f"// {what}: ")[2]


def _targets(source: Path) -> tuple[str, ...]:
    named = _noted(source, "targets")
    return tuple(named.split(", ")) if named else tuple(PROFILES)


def _start(source: Path) -> str:
    """The phase that the text is of."""
    return _noted(source, "phase") or FIRST_PHASE


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """`compiled(source)`: the module of an example, and phase -> its text, for all of its targets."""

    @functools.cache
    def compile(source: Path) -> tuple[bytes, dict[str, str]]:
        folder = tmp_path_factory.mktemp("phases")
        job = compiler.Compilation(targets=_targets(source), start=_start(source), dump=folder)
        return write(job.rows(str(source))), dumped_texts(folder)

    return compile


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("source", SOURCES, ids=[path.name for path in SOURCES])
def test_example(source: Path, compiled: Compiled) -> None:
    module, texts = compiled(source)
    check_texts_continue(texts, module, _start(source), targets=_targets(source))


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("source", SOURCES, ids=[path.name for path in SOURCES])
def test_mlir_reads_every_phase(source: Path, compiled: Compiled) -> None:
    """What we print is MLIR: another implementation parses it, dialects of ours unregistered, and verifies it, where no
    type has symbolic sizes, which its StableHLO does not take.
    """
    ir = pytest.importorskip("jaxlib.mlir.ir")
    for phase, text in compiled(source)[1].items():
        with ir.Context() if "#util.dims" in text else _stablehlo_context(ir) as context:
            context.allow_unregistered_dialects = True
            assert ir.Module.parse(text), phase


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


@pytest.mark.long
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
