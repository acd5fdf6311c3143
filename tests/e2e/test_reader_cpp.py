"""examples/reader_cpp: a reader over flatc's code lists what vm-dump lists, and refuses what was changed."""

import json
import os
import random
import shutil
import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from everyday import of_the_day
from later_format import _Tables, files, packed
from signed_modules import CODE, code_module, rebuilt, signed

from orchestrion.schema import container
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.dtypes import BY_NAME as DTYPES_BY_NAME
from orchestrion.schema.dtypes import DTYPES
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.segments import CHUNK
from orchestrion.schema.trust import keys
from orchestrion.schema.trust.guard import verify_both
from orchestrion.schema.writer import Constant, Export, Module, Value, write
from orchestrion.tools import dump

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "reader_cpp"
GOLDEN = sorted((ROOT / "tests" / "golden").glob("v*.fb"))
LATER = files()
TYPES = ["ed25519", "p256"]
#: changed bytes per region of a file
CHANGES = 12
#: forged roots per golden module
FORGED = 10

Done = subprocess.CompletedProcess[str]


def need(what: str) -> None:
    if shutil.which(what) is None:
        pytest.skip(f"{what} is not installed (`make drivers` installs what examples/reader_cpp is built with)")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built here with every warning an error, and with the checks of undefined behaviour."""
    for what in ("flatc", "g++", "make"):
        need(what)
    for header in ("flatbuffers/flatbuffers.h", "openssl/evp.h"):
        found = subprocess.run(["g++", "-E", "-include", header, "-x", "c++", os.devnull], capture_output=True)
        if found.returncode:
            pytest.skip(f"the header {header} is not installed (Debian: libflatbuffers-dev, libssl-dev)")
    folder = tmp_path_factory.mktemp("reader")
    flags = "CXXFLAGS=-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"  # at -O2 it takes twice as long
    done = subprocess.run(["make", "-C", SOURCE, f"BUILD={folder}", flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "reader"


def run(reader: Path, *arguments: Path) -> Done:
    return subprocess.run([reader, *arguments], capture_output=True, text=True, timeout=60)


def read(reader: Path, folder: Path, data: bytes, *key: Path) -> Done:
    path = folder / "module.fb"
    path.write_bytes(data)
    return run(reader, path, *key)


def refusal(done: Done) -> str:
    """The one line of reason."""
    assert (done.returncode, done.stdout) == (1, ""), done
    (line,) = done.stderr.splitlines()
    assert line.startswith("reader: ")
    return line


def shown(text: str) -> str:
    plain = (chr(byte) if 32 <= byte <= 126 and byte != 0x5C else f"\\x{byte:02x}" for byte in text.encode())
    return "".join(plain)


def listing(found: dict[str, Any]) -> list[str]:
    """What the reader prints for what `vm-dump --json` says."""
    lines = [f"format {found['format']}, by {shown(found['producer'])}", f"digest {found['digest']}"]
    lines += attributes(found, "")
    for row in found["exports"]:
        lines += [f"export {shown(dump.signature(row))}", *attributes(row, "  ")]
    for row in found["programs"]:
        needs = "".join(f" {name}" for name in row["features"])
        words = f"profile {shown(row['profile'])}, bytecode {row['bytecode']}" + (f", needs{needs}" if needs else "")
        lines += [f"program {shown(row['name'])}: {words}", *attributes(row, "  ")]
    for ordinal, row in enumerate(found["segments"]):
        name = "" if row["name"] is None else f" {shown(row['name'])}"
        state = "not in this file" if row["missing"] or row["kind"] == "parameter" else "digest as in the root"
        lines.append(f"segment {ordinal}: {row['kind']}{name}, {row['bytes']} bytes, {state}")
    lines += [f"attachment {row['tag']}: {row['bytes']} bytes" for row in found["attachments"]]
    return [*lines, *(f"section {row['name']}: {row['bytes']} bytes" for row in found["sections"])]


def attributes(found: dict[str, Any], indent: str) -> list[str]:
    return [f"{indent}attribute {shown(key)}: {shown(value)}" for key, value in found["attributes"].items()]


def assert_agrees(done: Done, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (done.returncode, done.stderr) == (0, "")
    capsys.readouterr()
    assert dump.main([str(path), "--json"]) == 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("signed by ")] == listing(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_it_lists_what_vm_dump_lists(reader: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_agrees(run(reader, path), path, capsys)


def test_it_knows_every_element_type(reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = tuple(Value(f"a{at}", row, (at,)) for at, row in enumerate(DTYPES))
    module = replace(assemble(CODE.format("")), exports=[Export("f", arguments)])
    done = read(reader, tmp_path, write(module))
    assert_agrees(done, tmp_path / "module.fb", capsys)
    assert all(f"x{row.name}" in done.stdout for row in DTYPES)


def test_a_thinned_module_is_listed(reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = rebuilt((ROOT / "tests" / "golden" / "v1.0-everything.fb").read_bytes(), without=(0, 4))
    done = read(reader, tmp_path, data)
    assert_agrees(done, tmp_path / "module.fb", capsys)
    assert done.stdout.count("not in this file") == 2


def test_chunks_are_verified(reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = 2 * CHUNK + 5
    constant = Constant("long", bytes(size), DTYPES_BY_NAME["ui8"], (size,), chunked=True)
    module = assemble(CODE.format(""))
    module = replace(module, programs=[replace(row, constants=(constant,)) for row in module.programs])
    data = write(module)
    done = read(reader, tmp_path, data)
    assert_agrees(done, tmp_path / "module.fb", capsys)
    file = container.open_bytes(data)
    at = bytes(file.root).index(sha256(bytes(CHUNK)).digest())
    root = bytes(file.root[:at]) + b"x" + bytes(file.root[at + 1 :])
    made = b"".join(container.build(root, [file.segment(row) for row in range(len(file.spans))]))
    assert refusal(read(reader, tmp_path, made)).endswith("the digest of chunk 0 differs")


def test_roots_that_were_forged_are_listed_or_refused(reader: Path, tmp_path: Path) -> None:
    """Changed bytes under a digest that is right: no fault of memory, and nothing is refused that the decoder takes."""
    choice = random.Random(7)
    outcomes = set()
    for path in GOLDEN:
        file = container.open_file(path)
        segments = [file.segment(row) if start else None for row, (start, _) in enumerate(file.spans)]
        for _ in range(FORGED):
            root = bytearray(file.root)
            for _ in range(choice.choice([1, 1, 2, 5])):
                root[choice.randrange(12, len(root))] = choice.choice([0, 1, 2, 255, choice.randrange(256)])
            data = b"".join(container.build(bytes(root), segments))
            done = read(reader, tmp_path, data)
            if done.returncode:
                refusal(done)
            outcomes.add((done.returncode, taken(data)))
            assert (done.returncode, taken(data)) != (1, True), done.stderr
    assert {(0, True), (1, False)} <= outcomes


#: a row or more of each vector that the reader lists
FULL = """
attribute "model.name" = "m"
attribute "icon" = hex "ff00"
custom "org.example" = hex "01"
export @f attributes ["task" = "seven"] (x: tensor<2x?xf32> "n") -> (y: tensor<?xf32> "n" alias 0)
program @p profile "reference" features [int8] {
  attribute "made" = "here"
  constant @c : tensor<4xi8> = hex "01020304"
  executable @e { entry @x bindings [] variant "tensor-bytecode" workgroups [(1, 1, 1)] payload hex "00" }
  func @f () -> (i32) { %i0 = i32.const 7 return (%i0) }
  entry @f
}"""


def test_rows_that_were_forged_are_listed_or_refused(reader: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Each number of each row, at its bounds and behind them."""
    module = assemble(FULL)
    tables = _Tables(module)
    outcomes: dict[bool, int] = {True: 0, False: 0}
    numbers = [
        (vector, position, value)
        for vector, rows in tables.rows.items()
        for position in range(len(rows[0]) if rows else 0)
        for value in (0, 1, len(rows), 2**32 - 1, -(2**63), -9)
    ]
    chosen = of_the_day(pytestconfig, numbers, 5)
    for vector, position, value in chosen:
        data = forged(module, vector, position, value)
        if data is None:
            continue
        done = read(reader, tmp_path, data)
        if done.returncode:
            refusal(done)
        assert (done.returncode, taken(data)) != (1, True), (vector, position, value, done.stderr)
        outcomes[not done.returncode] += 1
    assert min(outcomes.values()) > 50 * len(chosen) // len(numbers)


def forged(module: Module, vector: str, position: int, value: int) -> bytes | None:
    """The module with one number changed in the first row of a vector; None where the number does not fit."""

    def change(tables: _Tables) -> None:
        first = list(tables.rows[vector][0])
        first[position] = value if isinstance(first[position], int) else bytes(32)
        tables.rows[vector][0] = tuple(first)

    try:
        return packed(change, module)
    except ValueError:
        return None


def taken(data: bytes) -> bool:
    """Whether the decoder takes a module, and its segments are as its root says."""
    try:
        verify_both(read_module(data))
    except ModuleError:
        return False
    return True


#: what a reader that runs nothing lists, though no program of it can run here
LISTED = ("bytecode", "features of", "devices", "profile", "version of", "format of", "another", "attribute kind")


@pytest.mark.parametrize("name", LATER)
def test_later_files_are_listed_or_refused(reader: Path, tmp_path: Path, name: str) -> None:
    """Like `test_later.py`; what concerns single programs alone is listed."""
    file = LATER[name]
    done = read(reader, tmp_path, file.data)
    if not file.refusal or name.startswith(LISTED):
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert any(word in refusal(done) for word in ("needs format 1.9", "needs features", "must be understood"))


@pytest.fixture(scope="module", params=TYPES)
def key(request: pytest.FixtureRequest) -> keys.PrivateKey:
    pytest.importorskip("cryptography")
    return keys.generate(request.param)


@pytest.fixture
def pem(key: keys.PrivateKey, tmp_path: Path) -> Path:
    path = tmp_path / "key.pub.pem"
    path.write_bytes(keys.public_pem(key))
    return path


@pytest.fixture(scope="module")
def module(key: keys.PrivateKey) -> bytes:
    """Signed by the key and by others; with attachments and sections."""
    others = [keys.generate(name) for name in TYPES]
    return signed((ROOT / "tests" / "golden" / "v1.0-everything.fb").read_bytes(), *others, key)


def test_a_signature_is_verified(
    reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: keys.PrivateKey, pem: Path, module: bytes
) -> None:
    done = read(reader, tmp_path, module, pem)
    assert_agrees(done, tmp_path / "module.fb", capsys)
    assert done.stdout.endswith(f"signed by key {key.public.id.hex()}\n")
    thinned = rebuilt(module, *parts(module), without=(1,))
    assert read(reader, tmp_path, thinned, pem).returncode == 0


def parts(data: bytes) -> tuple[tuple[container.Attachment, ...], tuple[container.Section, ...]]:
    file = container.open_bytes(data)
    return file.attachments, file.sections


def regions(data: bytes) -> dict[str, tuple[int, int]]:
    """The parts of a file by name, from start to end."""
    file = container.open_bytes(data)
    root = len(file.root)
    directory = -(-root // 64) * 64
    segments = [(start, start + size) for start, size in file.spans if size]
    found = {"size": (0, 4), "root": (4, root), "padding": (root, directory), "directory": (directory, segments[0][0])}
    found |= {f"segment {at}": span for at, span in enumerate(segments)}
    found["before the page"] = (segments[3][1], segments[4][0])
    found |= {row.tag: (row.offset, row.offset + len(row.data)) for row in file.attachments if row.data}
    last = file.attachments[-1]
    return found | {"sections": (last.offset + len(last.data), len(data))}


def test_every_change_is_refused(
    reader: Path, tmp_path: Path, pem: Path, module: bytes, pytestconfig: pytest.Config
) -> None:
    choice = random.Random(12)
    found = regions(module)
    assert {"NOTE", "SIGN"} <= set(found)
    for name, (start, end) in found.items():
        for at in of_the_day(pytestconfig, choice.sample(range(start, end), min(CHANGES, end - start)), 4):
            changed = bytearray(module)
            changed[at] ^= 1 << choice.randrange(8)
            done = read(reader, tmp_path, bytes(changed), pem)
            assert refusal(done), f"{name}: byte {at}"
    for length in (0, 11, 12, 60, len(module) // 2, len(module) - 1):
        assert refusal(read(reader, tmp_path, module[:length], pem))
    assert refusal(read(reader, tmp_path, module + b"\0", pem))


def test_what_the_key_did_not_sign_is_refused(reader: Path, tmp_path: Path, pem: Path, module: bytes) -> None:
    attachments, sections = parts(module)
    one = container.Section("later", b"behind")
    note = container.Attachment("NOTE", b"x")
    cases = {
        "it is not among the signers": code_module(),
        "it did not sign later": rebuilt(module, attachments, (*sections, one)),
        "it did not sign NOTE": rebuilt(module, (note, *attachments[1:]), sections),
        "it signed something that is not in this file": rebuilt(module, attachments, ()),
    }
    for reason, data in cases.items():
        assert refusal(read(reader, tmp_path, data, pem)).endswith(reason)
    other = signed(code_module(), keys.generate("ed25519"), keys.generate("p256"))
    assert refusal(read(reader, tmp_path, other, pem)).endswith("it is not among the signers")
    moved = rebuilt(code_module(), [row for row in attachments if row.tag == "SIGN"])
    assert refusal(read(reader, tmp_path, moved, pem)).endswith("it is not among the signers")


def test_the_other_half_of_s_is_refused(reader: Path, tmp_path: Path) -> None:
    """OpenSSL takes both forms of a P-256 signature; only one is this format's."""
    pytest.importorskip("cryptography")
    from orchestrion.schema.trust import signature_set

    key = keys.generate("p256")
    pem = tmp_path / "key.pub.pem"
    pem.write_bytes(keys.public_pem(key))
    module = signed(code_module(), key)
    assert read(reader, tmp_path, module, pem).returncode == 0
    found = signature_set.decode(parts(module)[0][0].data)
    (row,) = found.signatures
    s = int.from_bytes(row.value[32:], "big")
    other = row._replace(value=row.value[:32] + (keys._ORDER - s).to_bytes(32, "big"))
    data = signature_set.encode(found._replace(signatures=(other,)))
    module = rebuilt(module, [container.Attachment("SIGN", data)])
    assert refusal(read(reader, tmp_path, module, pem)).endswith("its signature is wrong")


@pytest.mark.parametrize("text", [b"", b"no key", b"private"])
def test_what_is_no_public_key_is_refused(reader: Path, tmp_path: Path, text: bytes) -> None:
    pytest.importorskip("cryptography")
    if text == b"private":
        text = keys.private_pem(keys.generate("ed25519"))
    pem = tmp_path / "key.pem"
    pem.write_bytes(text)
    assert refusal(read(reader, tmp_path, code_module(), pem)).endswith("the key is no public key in PEM")


def test_flatc_makes_readers_for_phones(tmp_path: Path) -> None:
    need("flatc")
    need("make")
    done = subprocess.run(["make", "-C", SOURCE, "readers", f"BUILD={tmp_path}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for language, wanted in {
        "swift": ("public struct orchestrion_Digest", "public struct orchestrion_Module"),
        "kotlin": ("package orchestrion", "class Digest", "class Module"),
        "go": ("package orchestrion\n", "type Digest struct", "type Module struct"),
        "dart": ("library orchestrion;", "class Digest", "class Module"),
    }.items():
        made = "".join(path.read_text() for path in sorted((tmp_path / language).rglob("*.*")))
        assert [text for text in wanted if text not in made] == [], language
