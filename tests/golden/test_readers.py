"""Readers of released versions, each in a process of its own: they open and run what they must, and refuse the rest.

Today's runtime gets the same files, with the same expectations. `make_reader.py` packs a reader.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from golden_calls import call, compare, value
from later_format import files
from signed_modules import code_module, key_text, keys_file, rebuilt, signed

from orchestrion.schema import container
from orchestrion.schema.trust import keys

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
READERS = sorted((HERE / "readers").glob("*.zip"))
#: what readers need, and what they need to verify signatures and to call libraries
NEEDED, EXTRAS = ("numpy", "flatbuffers"), ("cryptography", "cffi", "scipy")
ALL_SCOPES = 'scopes = ["code", "weights", "native"]'
CHILD = ROOT / "tests" / "support" / "reader_answers.py"


@dataclass(frozen=True)
class Job:
    """A file, and what a reader makes of it: results of calls, or an error of a class whose message has some words."""

    file: Path
    calls: Sequence[dict[str, Any]] = ()
    error: str = ""
    words: str = ""
    policy: Path | None = None

    def row(self) -> dict[str, Any]:
        return {"file": str(self.file), "policy": self.policy and str(self.policy), "calls": list(self.calls)}

    def check(self, answer: dict[str, Any]) -> None:
        if self.error:
            assert answer.get("error") == self.error, (self.file, answer)
            assert self.words in answer["message"], (self.file, answer)
            return
        assert "error" not in answer, (self.file, answer)
        for row, results in zip(self.calls, answer["results"], strict=True):
            compare(tuple(map(value, results)), [value(x) for x in row["results"]])


def golden() -> Iterator[Job]:
    """The golden modules with their calls. Library functions need SciPy, which is an extra."""
    for path in sorted(HERE.glob("v*.fb")):
        yield Job(path, json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))


def later(folder: Path) -> Iterator[Job]:
    """Files of a synthetic 1.9. Behind a comma messages say what the reader knows, which differs by reader."""
    for at, file in enumerate(files().values()):
        path = folder / f"later{at}.fb"
        path.write_bytes(file.data)
        if not file.refusal:
            yield Job(path, [call("seven", [], 7)])
            continue
        error = "ModuleError" if file.refusal.startswith(("the module", "attachment", "section")) else "NoProgram"
        yield Job(path, [], error, file.refusal.partition(", ")[0])


def trusted(folder: Path) -> Iterator[Job]:
    """Modules under `require`, signed by a key that counts: the same answers as without a policy."""
    key = keys.generate("p256")
    policy = keys_file(folder / "keys.toml", key, ALL_SCOPES)
    for weights in HERE.glob("*.safetensors"):  # their digests are in the root, or they are not taken
        shutil.copy(weights, folder)
    note = container.Attachment("NEW1", b"of a later version")
    everything = (HERE / "v1.0-everything.fb").read_bytes()
    thinned = rebuilt(signed(everything, key), container.open_bytes(signed(everything, key)).attachments,
                      container.open_bytes(everything).sections, without=(1, 2))  # fmt: skip
    added = folder / "added.fb"
    added.write_bytes(rebuilt(code_module(), [note]))
    (folder / "thinned.fb").write_bytes(thinned)
    yield Job(folder / "thinned.fb", json.loads((HERE / "v1.0-everything.json").read_text()), policy=policy)
    for job in [*golden(), *later(folder), Job(added, [call("f", [], 7)])]:
        data = job.file.read_bytes()
        if "must be understood" not in job.words:  # what signs is of today and refuses it too
            data = signed(data, key)
        path = folder / f"signed-{job.file.name}"
        path.write_bytes(data)
        yield replace(job, file=path, policy=policy)


def untrusted(folder: Path) -> Iterator[Job]:
    """Modules that are refused under `require`, each for its reason."""
    key, former = keys.generate("ed25519"), keys.generate("p256")
    policy = keys_file(folder / "keys.toml", key, ALL_SCOPES, key_text(former, "revoked = true", "former"))
    expired = keys_file(folder / "expired.toml", key, f"{ALL_SCOPES}\nnot-after = 2020-01-01")
    least = keys_file(folder / "least.toml", key, f"{ALL_SCOPES}\n[minimum-version]\nm = 8")
    weights = keys_file(folder / "weights.toml", key, 'scopes = ["weights"]')
    module = code_module('attribute "model.name" = "m"\nattribute "model.version" = "7"')
    ours = signed(module, key)
    (sign,) = container.open_bytes(ours).attachments
    root, segment = bytearray(ours), bytearray(signed((HERE / "v1.0-mlp.fb").read_bytes(), key))
    root[200] ^= 1
    segment[container.open_bytes(segment).spans[0][0]] ^= 1
    note = container.Attachment("NEW1", b"of a later version")
    cases = {
        "it is not signed": (module, policy),
        "is not in the keys file": (signed(module, keys.generate("p256")), policy),
        "the key is revoked": (signed(module, former), policy),
        "the key expired": (ours, expired),
        "has version 7, the keys file demands 8": (ours, least),
        "for code": (ours, weights),
        "covers NEW1": (rebuilt(module, [note, sign]), policy),
        "it has the signatures of module": (rebuilt(code_module(), [sign]), policy),
        "the root is damaged": (bytes(root), policy),
        "segment 0 is damaged": (bytes(segment), policy),
    }
    for at, (words, (data, by)) in enumerate(cases.items()):
        path = folder / f"refused{at}.fb"
        path.write_bytes(data)
        yield Job(path, [], "ModuleError" if "damaged" in words else "Untrusted", words, by)


def dependencies(folder: Path, names: Sequence[str]) -> Path:
    """A folder with these distributions and no other, for a process that sees nothing else that is installed."""
    folder.mkdir()
    for name in names:
        tops = {path.parts[0] for path in metadata.files(name) or () if path.parts[0] != ".."}
        for top in sorted(tops):
            if not top.endswith((".dist-info", ".pth", "__pycache__")):
                (folder / top).symlink_to(metadata.distribution(name).locate_file(top))
    return folder


def answers(reader: Path, needed: Path, jobs: Sequence[Job]) -> dict[str, Any]:
    """What a reader in `reader/orchestrion` makes of files, in a process that imports it and `needed` alone."""
    home = {"ORCHESTRION_HOME": str(needed / "home"), "ORCHESTRION_CACHE": str(needed / "cache")}
    environment = os.environ | home | {"PYTHONPATH": os.pathsep.join([str(reader), str(needed)])}
    done = subprocess.run(
        [sys.executable, "-S", "-B", CHILD], input=json.dumps([job.row() for job in jobs]), capture_output=True,
        text=True, env=environment, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert all(Path(path).is_relative_to(reader) for path in found["folders"])
    return found


@pytest.fixture(scope="module", params=[*READERS, ROOT / ".types"], ids=lambda path: path.stem)
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader that was kept, unpacked; last that of today."""
    path: Path = request.param
    if path.is_dir():
        return path
    folder = tmp_path_factory.mktemp("reader")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def test_it_needs_two_packages(reader: Path, tmp_path: Path) -> None:
    """And opens what it must, refuses the rest by name, and a library function for its missing library."""
    jobs = [*golden(), *later(tmp_path)]
    found = answers(reader, dependencies(tmp_path / "needed", NEEDED), jobs)
    assert set(found["loaded"]) <= {"__main__", "golden_calls", "orchestrion", *NEEDED}
    for job, answer in zip(jobs, found["answers"], strict=True):
        if job.file.stem.endswith("-library"):
            job = Job(job.file, [], answer.get("error", "an error"), "scipy")
        job.check(answer)


def test_signed_modules_open_under_require(reader: Path, tmp_path: Path) -> None:
    for name in EXTRAS:
        pytest.importorskip(name)
    folders = tmp_path / "trusted", tmp_path / "untrusted"
    for folder in folders:
        folder.mkdir()
    jobs = [*trusted(folders[0]), *untrusted(folders[1])]
    found = answers(reader, dependencies(tmp_path / "needed", [*NEEDED, *EXTRAS]), jobs)
    for job, answer in zip(jobs, found["answers"], strict=True):
        job.check(answer)


def test_readers_are_as_they_were_packed() -> None:
    sums = (HERE / "readers" / "SHA256SUMS").read_text(encoding="utf-8").split("\n")
    assert sums == [*(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in READERS), ""]
    assert READERS


def test_packing_gives_the_same_bytes_again(tmp_path: Path) -> None:
    """Of the sources alone: not of the clock, nor of the rights of files."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    spec = spec_from_file_location("make_reader", HERE / "make_reader.py")
    assert spec is not None and spec.loader is not None
    make_reader = module_from_spec(spec)
    spec.loader.exec_module(make_reader)
    for name in ("one.zip", "other.zip"):
        make_reader.pack(tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
