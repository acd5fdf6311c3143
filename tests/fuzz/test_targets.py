"""Fuzz targets as ordinary tests: every property holds for the seeds, for earlier findings, and for mutants of a second
or two; and the runner finds what it is there to find.

`tests/fuzz/findings/<target>/` holds one file per finding, as it was found.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import fuzzing
import pytest

RUN = Path(__file__).parent / "run.py"
#: seconds of mutation per target
SECONDS = float(os.environ.get("ORCHESTRION_FUZZ_SECONDS", "1"))
#: seconds that a search for a planted fault may take; it ends at the first finding
PATIENCE = 100
NAMES = fuzzing.names()

FAULTY = {
    "raises": ('    if b"\\xff" in data:\n        raise KeyError("ff")\n', "KeyError"),
    "takes long": ('    if b"\\xff" in data:\n        end = time.process_time() + 0.5\n'
                   "        while time.process_time() < end:\n            pass\n", "0.2 allowed"),
    "crashes": ('    if b"\\xff" in data:\n        ctypes.string_at(8)\n', "killed by SIGSEGV"),
    "takes memory": ('    if b"\\xff" in data:\n        bytearray(1 << 34)\n', "MemoryError"),
    "exits": ('    if b"\\xff" in data:\n        os._exit(3)\n', "exit status 3"),
}  # fmt: skip

#: target -> a fault in what it watches, which it must find
PLANTED = {
    "container": "from orchestrion.schema import container\ncontainer._refuse_place = lambda *_: None",
    "dims": "from orchestrion.compiler.ir import dims\ndims._is_remainder = lambda size, _: dims.bounds(size)[0] >= 0",
    "root": "from orchestrion.schema import structure\nstructure.verify = lambda tables: None",
    "bytecode": "from orchestrion.vm import verifier\nverifier._CHECKS['target'] = lambda *_: None",
    "tensor": (
        "from orchestrion.schema import tensor_bytecode\n"
        "code = tensor_bytecode.EntryCode\n"
        "code.accesses = property(lambda self: tuple(('read', self.reads.get(at, 0)) for at in range(self.bindings)))"
    ),
    "safetensors": "from orchestrion.schema import safetensors\nsafetensors._check_cover = lambda *_: None",
    "signature": "from orchestrion.schema import signature\nsignature.is_value_type = lambda name: True",
    "admission": "from orchestrion.schema.trust import signers\nsigners._uncovered = lambda *_: ()",
    "signature_set": (
        "from orchestrion.schema.trust import signature_set\nsignature_set._name = lambda field, _: 'module'"
    ),
    "trust_policy": "from orchestrion.schema.trust import policy\npolicy._known = lambda *_: None",
    "arrays": "from orchestrion.tools import arrays\narrays._BOOLS['true'] = False",
    "bundle": "from orchestrion.schema.shipping import archive\narchive.Archive.check_form = lambda self: None",
    "delta": "from orchestrion.schema.shipping import delta\ndelta._check_steps = lambda *_: None",
    "trees": "from orchestrion.schema import trees\ntrees._check_places = lambda *_: None",
    "manifest": (
        "from orchestrion.schema.shipping import manifest\n"
        "manifest.READERS[manifest.Variant]['invocations'] = lambda value, where: value"
    ),
}


def test_every_target_has_what_it_needs() -> None:
    assert len(NAMES) > 12
    for name in NAMES:
        target = fuzzing.load(name)
        assert target.doc, name
        assert 0 < target.most_bytes <= 1 << 16 and target.seconds <= 20, name
    folders = {path.name for path in fuzzing.FINDINGS.iterdir()}
    assert folders <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_seeds_and_findings(name: str) -> None:
    target = fuzzing.load(name)
    if reason := target.ready():
        pytest.skip(reason)
    seeds = list(target.seeds())
    assert seeds and any(len(data) <= target.most_bytes for data in seeds)
    for data in seeds[:: max(1, len(seeds) // 40)]:
        target.one_input(data[: target.most_bytes])
    for path in sorted((fuzzing.FINDINGS / name).glob("*")):
        target.one_input(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_mutants_are_made_of_their_seed(name: str) -> None:
    """The same seed gives the same mutants, and most of them are something new."""
    target = fuzzing.load(name)
    seeds = list(target.seeds())

    def made() -> list[bytes]:
        choose = random.Random(5)
        return [fuzzing.mutant(target, choose, choose.choice(seeds), seeds, None) for _ in range(40)]

    first = made()
    assert first == made()
    assert sum(data in seeds for data in first) < 20


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", NAMES)
def test_mutants(name: str, tmp_path: Path) -> None:
    said = run("--plain", f"--target={name}", f"--time={SECONDS}", f"--to={tmp_path}")
    assert said.returncode == 0, said.stdout + said.stderr
    assert " skipped: " in said.stdout or int(said.stdout.splitlines()[-1].split()[1]) > 1, said.stdout


@pytest.mark.parametrize("fault", FAULTY)
def test_the_runner_finds(fault: str, tmp_path: Path) -> None:
    body, message = FAULTY[fault]
    target = tmp_path / "faulty.py"
    target.write_text(
        '"""Holds for nobody."""\nimport ctypes, os, time\nSECONDS = 0.2\n'
        f'def seeds():\n    return [b"a", b"b"]\ndef one_input(data):\n{body}'
    )
    said = run("--plain", "--first", f"--target={target}", f"--time={PATIENCE}", f"--to={tmp_path}")
    assert said.returncode == 1 and message in said.stdout, said.stdout + said.stderr
    (kept, *_) = (tmp_path / "faulty").glob("*.bin")
    assert b"\xff" in kept.read_bytes()


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", PLANTED)
def test_targets_find_planted_faults(name: str, tmp_path: Path) -> None:
    """Without coverage, and within seconds on a machine that has them."""
    target = tmp_path / f"{name}.py"
    parts = ("one_input", "seeds", "mutate", "repair", "pool", "most_bytes")
    target.write_text(
        f'"""With a fault."""\nimport fuzzing\n{PLANTED[name]}\nreal = fuzzing.load("{name}")\n'
        + "".join(f"{part.upper() if part in ('pool', 'most_bytes') else part} = real.{part}\n" for part in parts)
    )
    said = run("--plain", "--first", f"--target={target}", f"--time={PATIENCE}", f"--to={tmp_path}")
    assert said.returncode == 1, said.stdout + said.stderr
    assert list((tmp_path / name).glob("*.bin")), said.stdout


@pytest.mark.skipif(not fuzzing.has_atheris(), reason="atheris is not installed: python -m pip install 'atheris>=3.0'")
def test_coverage_guides(tmp_path: Path) -> None:
    """What no mutation of the seeds alone would meet: a word, found letter by letter."""
    (tmp_path / "orchestrion").mkdir()
    lines = [f"    if data[{at}:{at + 1}] != {bytes([letter])!r}: return" for at, letter in enumerate(b"ORCH")]
    text = "\n".join(["def check(data):", *lines, "    raise KeyError('the word')", ""])
    (tmp_path / "orchestrion" / "words.py").write_text(text)
    target = tmp_path / "guided.py"
    target.write_text(
        f'"""A word."""\nimport sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom orchestrion import words\n'
        'def seeds():\n    return [b"    "]\ndef one_input(data):\n    words.check(data)\n'
    )
    said = run("--first", f"--target={target}", f"--time={PATIENCE}", f"--to={tmp_path}")
    assert "the word" in said.stdout, said.stdout + said.stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
