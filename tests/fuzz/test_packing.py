"""`vm-pack lint`, `thin` and `strip` on mutants of a module: a verdict or one line, never another exception."""

import json
import os
from dataclasses import replace
from pathlib import Path

import mutate
import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.schema import writer
from orchestrion.schema.container import Attachment, Section
from orchestrion.tools import pack

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNT = int(os.environ.get("ORCHESTRION_MUTANTS", "20000")) // 100
#: so many tests share them, one of which runs every day
PARTS = 8
ATTRIBUTES = {"model.name": "m", "model.version": "3", "limits.fuel": "7", "limits.memory": "8", "other": "x"}


@pytest.fixture(scope="module")
def corpus() -> dict[str, writer.Module]:
    rows = Compilation(targets=("reference", "spirv"), attributes=ATTRIBUTES).rows(EXAMPLES / "mlp.mlir")
    more = replace(
        rows, attachments=[Attachment("WHAT", b"x")], sections=[Section("tail", b"y")], custom={"preview": b"z"}
    )
    return {"mlp": more}


@pytest.mark.sampled(every=PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_are_judged(
    part: int, corpus: dict[str, writer.Module], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = {name: writer.write(module) for name, module in corpus.items()}
    path, out = tmp_path / "m.fb", tmp_path / "out.fb"
    judged = 0
    for seed in range(part, COUNT, PARTS):
        made = mutate.mutant(corpus, "mlp", seed, written)
        if made.data is None:
            continue
        path.write_bytes(made.data)
        flags = [f"--json={tmp_path / 'r.json'}", f"--html={tmp_path / 'r.html'}"]
        assert pack.main(["lint", str(path), *flags]) in (0, 1), f"{seed}: {made.applied}"
        report = json.loads((tmp_path / "r.json").read_text())
        judged += report["module"] is not None
        for command in (["thin", "--target=spirv"], ["strip"]):
            out.unlink(missing_ok=True)
            status = pack.main([command[0], str(path), *command[1:], "-o", str(out)])
            assert out.exists() == (status == 0), f"{seed}: {made.applied}"
        capsys.readouterr()
    assert judged > COUNT // PARTS // 10
