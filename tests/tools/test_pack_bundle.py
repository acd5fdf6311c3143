"""vm-pack bundle and unbundle: an archive that an app can map, in which any changed byte is found; app stores."""

import dataclasses
import json
import os
import random
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from everyday import of_the_day

from orchestrion import vm
from orchestrion.schema import container
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.safetensors import Values, write_file
from orchestrion.schema.shipping import archive, bundle
from orchestrion.schema.shipping.archive import Row, build
from orchestrion.schema.shipping.bundle import find_entry, open_bundle, unpack_bundle, verify_folder
from orchestrion.schema.shipping.manifest import read_manifest, write_manifest
from orchestrion.tools import compile as compiler
from orchestrion.tools import pack
from orchestrion.tools.packing import device_groups, stores

ROOT = Path(__file__).parents[2]
CHOOSE = random.Random(5)
X, Y = np.array([1, 2, 3, 4], np.float32), np.array([10, 20, 30, 40], np.float32)

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs vm-pack: exit status and output."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> tuple[int, str]:
        try:
            status = pack.main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        said = capsys.readouterr()
        return status, said.out + said.err

    return command


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module for two targets without native code."""
    path = tmp_path_factory.mktemp("bundle") / "m.fb"
    source = str(ROOT / "examples" / "simple_mul.generic.mlir")
    assert compiler.main([source, "--target=reference,spirv", "-o", str(path)]) == 0
    return path


@pytest.fixture
def packed(run: Run, compiled: Path, tmp_path: Path) -> Path:
    """A bundle with entries of every kind."""
    (tmp_path / "w.safetensors").write_bytes(CHOOSE.randbytes(70_000))
    (tmp_path / "CARD.md").write_text("# A card\n")
    assert run("keygen", "--type=p256", "-o", "key.pem")[0] == 0
    assert run("sign", compiled, "--key=key.pem", "--detached=m.sig")[0] == 0
    arguments = ["--parameters=w.safetensors", f"--licence={ROOT / 'LICENSE'}", "--model-card=CARD.md"]
    status, said = run("bundle", compiled, *arguments, "--detached=m.sig", "--key=key.pem", "-o", "b.zip")
    assert status == 0, said
    return tmp_path / "b.zip"


def test_it_runs_from_where_it_lies(packed: Path, compiled: Path) -> None:
    offset, length = find_entry(packed, "module.fb")
    assert packed.read_bytes()[offset : offset + length] == compiled.read_bytes()
    program = vm.load(packed, "reference", offset=offset, length=length)
    np.testing.assert_array_equal(program.simple_mul(X, Y), X * Y)
    program.close()


def test_a_large_module_is_mapped_where_it_lies(run: Run, tmp_path: Path) -> None:
    """Its segments of at least 64 KiB begin at page boundaries of the file."""
    table = CHOOSE.randbytes(1 << 18)
    (tmp_path / "m.mlir").write_text(
        "func.func @main(%i: tensor<65536xf32>) -> tensor<65536xf32> {\n"
        f'  %c = stablehlo.constant dense<"0x{table.hex()}"> '
        ": tensor<65536xi32>\n  %f = stablehlo.convert %c : (tensor<65536xi32>) -> tensor<65536xf32>\n"
        "  %0 = stablehlo.add %i, %f : tensor<65536xf32>\n  return %0 : tensor<65536xf32>\n}\n"
    )
    assert compiler.main(["m.mlir", "--target=reference", "-o", "m.fb"]) == 0
    (tmp_path / "CARD.md").write_text("x" * 5000)
    assert run("bundle", "m.fb", "--model-card=CARD.md", "-o", "b.zip")[0] == 0
    offset, length = find_entry("b.zip", "module.fb")
    program = vm.load("b.zip", "reference", offset=offset, length=length)
    file = program.module.container
    large = [at for at, size in file.spans if size >= 65536]
    assert large and all((offset + at) % 16384 == 0 for at in large)
    found = program.main(np.zeros(65536, np.float32))
    np.testing.assert_array_equal(found, np.frombuffer(table, np.int32).astype(np.float32))
    program.close()


def test_what_is_in_it(packed: Path, run: Run, tmp_path: Path) -> None:
    digest = sha256((tmp_path / "w.safetensors").read_bytes()).hexdigest()
    with zipfile.ZipFile(packed) as other:
        assert other.namelist() == [
            "manifest.json",
            "manifest.json.sig",
            "module.fb",
            f"parameters/{digest}.safetensors",
            "licence.txt",
            "model-card.md",
            "module.fb.sig",
        ]
        manifest = read_manifest(other.read("manifest.json"))
    assert [entry.role for entry in manifest.entries] == [
        "module",
        "parameters",
        "licence",
        "model-card",
        "signatures",
    ]
    place = find_entry(packed, f"parameters/{digest}.safetensors")
    assert place.offset % 16384 == 0
    status, said = run("bundle", "--verify", packed)
    assert status == 0 and "7 entries" in said, said


def test_the_same_goods_give_the_same_bytes(run: Run, compiled: Path, tmp_path: Path) -> None:
    for name in ("1.zip", "2.zip"):
        assert run("bundle", compiled, f"--licence={ROOT / 'LICENSE'}", "--compress-code", "-o", name)[0] == 0
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()


def test_licence_and_model_card_of_the_module(run: Run, tmp_path: Path) -> None:
    (tmp_path / "l").write_text("as you like\n")
    arguments = [str(ROOT / "examples" / "simple_mul.mlir"), "--target=reference", "-o", str(tmp_path / "m.fb")]
    assert compiler.main([*arguments, f"--licence={tmp_path / 'l'}", "--attribute=model.card=It multiplies."]) == 0
    assert run("bundle", "m.fb", "-o", "b.zip")[0] == 0
    found = open_bundle(tmp_path / "b.zip")
    assert bytes(found.content("licence.txt")).strip() == b"as you like"
    assert bytes(found.content("model-card.txt")) == b"It multiplies."


def verified(data: bytes) -> str:
    """The error of verifying a bundle; empty if there is none."""
    try:
        bundle.Bundle(archive.read_archive(data)).verify()
    except ModuleError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("flags", [(), ("--compress-code",)], ids=["plain", "compressed code"])
def test_each_changed_byte_is_found(
    run: Run, compiled: Path, tmp_path: Path, flags: tuple[str, ...], pytestconfig: pytest.Config
) -> None:
    """Every byte of headers, manifest and signatures, and 2,000 random bytes of the entries' data."""
    (tmp_path / "licence.txt").write_text("do as you like\n")
    assert run("keygen", "--type=ed25519", "-o", "key.pem")[0] == 0
    status, said = run("bundle", compiled, "--licence=licence.txt", "--key=key.pem", *flags, "-o", "b.zip")
    assert status == 0, said
    data = (tmp_path / "b.zip").read_bytes()
    assert not verified(data)
    found = archive.read_archive(data)
    large = [entry for entry in found.entries.values() if entry.compressed > 4000]
    inside = {at for entry in large for at in range(entry.data, entry.end)}
    padding = {at for at in range(len(data)) if not any(data[max(at - 8, 0) : at + 8])}
    every = [at for at in range(len(data)) if at not in inside and at not in padding]
    some = CHOOSE.sample(sorted(inside | padding), min(2000, len(inside | padding)))
    assert len(every) > 1500
    for at in of_the_day(pytestconfig, every + some, 3):
        damaged = bytearray(data)
        damaged[at] ^= CHOOSE.randrange(1, 256)
        assert verified(damaged), at


def test_what_a_stranger_puts_together_is_found(packed: Path) -> None:
    """Valid archives that are no bundles."""
    found = open_bundle(packed)
    rows = [Row(name, bytes(found.content(name))) for name in found.archive.entries]
    by_name = {row.name: row for row in rows}
    other = Row("module.fb", by_name["licence.txt"].content)
    cases = [
        (rows[1:], "the first entry is"),
        (rows[:-1], "the entries are not those that the manifest lists: module.fb.sig"),
        ([*rows, Row("x", b"")], "the entries are not those that the manifest lists: x"),
        ([*rows[:2], *reversed(rows[2:])], "the entries are not those that the manifest lists: their order"),
        ([*rows[:2], other, *rows[3:]], "entry module.fb is damaged"),
        ([rows[0], Row(rows[1].name, by_name["module.fb.sig"].content), *rows[2:]], "signatures of another file"),
        ([row._replace(deflate=True) for row in rows], "manifest.json is compressed"),
        ([*rows[:2], rows[2]._replace(deflate=True), *rows[3:]], "entry module.fb is damaged"),
    ]
    for changed, words in cases:
        assert words in verified(b"".join(build(changed))), words


def test_a_manifest_of_another_module_is_found(run: Run, compiled: Path, tmp_path: Path) -> None:
    source = str(ROOT / "examples" / "mlp.mlir")
    assert compiler.main([source, "--target=reference", "-o", str(tmp_path / "mlp.fb")]) == 0
    assert run("bundle", compiled, "-o", "a.zip")[0] == run("bundle", "mlp.fb", "-o", "b.zip")[0] == 0
    one, two = open_bundle(tmp_path / "a.zip"), open_bundle(tmp_path / "b.zip")
    wrong = dataclasses.replace(one.manifest, entries=two.manifest.entries)
    rows = [Row("manifest.json", write_manifest(wrong)), Row("module.fb", two.content("module.fb"))]
    assert "another module than the manifest describes" in verified(b"".join(build(rows)))


def test_compressed_code_comes_back(run: Run, compiled: Path, tmp_path: Path) -> None:
    assert run("bundle", compiled, "--compress-code", "-o", "b.zip")[0] == 0
    found = open_bundle(tmp_path / "b.zip")
    found.verify()
    assert list(found.archive.entries) == ["manifest.json", "module.fb", "code.bin"]
    assert len(found.archive.stored(found.archive.find("module.fb"))) < compiled.stat().st_size
    assert b"".join(found.module_pieces()) == compiled.read_bytes()
    status, said = run("unbundle", "b.zip", "-o", "out")
    assert status == 0, said
    assert (tmp_path / "out" / "module.fb").read_bytes() == compiled.read_bytes()


def test_code_that_does_not_fit_is_refused(run: Run, compiled: Path, tmp_path: Path) -> None:
    assert run("bundle", compiled, "--compress-code", "-o", "b.zip")[0] == 0
    found = open_bundle(tmp_path / "b.zip")
    file = container.open_bytes(found.archive.stored(found.archive.find("module.fb")))
    code = bytes(found.content("code.bin"))
    for content, words in (
        (b"", "truncated"),
        (b"\xff\xff\xff\xff", "does not list segments"),
        (code[:-1], "cut off"),
        (code + b"x", "1 bytes behind its segments"),
        (code[:4] + b"\xff\0\0\0" + code[8:], "which the module has, or which it does not know|does not list"),
    ):
        with pytest.raises(ModuleError, match=words):
            list(bundle.unpack_code(memoryview(content), file))


def test_unbundling(packed: Path, compiled: Path, run: Run, tmp_path: Path) -> None:
    status, said = run("unbundle", packed, "-o", tmp_path / "out")
    assert status == 0 and "model-card.md, module.fb.sig, module.fb" in said, said
    digest = sha256((tmp_path / "w.safetensors").read_bytes()).hexdigest()
    there = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert there == [
        "licence.txt",
        "manifest.json",
        "manifest.json.sig",
        "model-card.md",
        "module.fb",
        "module.fb.sig",
        f"parameters/{digest}.safetensors",
    ]
    assert (tmp_path / "out" / "module.fb").read_bytes() == compiled.read_bytes()
    for path in (tmp_path / "out").rglob("*.*"):
        if path.name not in ("manifest.json", "manifest.json.sig"):
            data = path.read_bytes()
            verify_folder(tmp_path / "out")
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            with pytest.raises(ModuleError, match="is damaged: its digest"):
                verify_folder(tmp_path / "out")
            path.write_bytes(data)


@pytest.mark.parametrize("name", ["../x", "/x", "a/b/c", "a//b", ".x", "a/..", "A", "a\\b", "con:", "a/.x", "setup.py"])
def test_names_that_leave_the_folder_are_not_unpacked(name: str, packed: Path, tmp_path: Path) -> None:
    found = open_bundle(packed)
    extra = b"x"
    entry = dataclasses.replace(found.manifest.entries[1], name=name, bytes=1, sha256=sha256(extra).hexdigest())
    module = found.manifest.entries[0]
    manifest = write_manifest(dataclasses.replace(found.manifest, entries=(module, entry)))
    rows = [Row("manifest.json", manifest), Row("module.fb", found.content("module.fb")), Row(name, extra)]
    path = tmp_path / "hostile.zip"
    path.write_bytes(b"".join(build(rows)))
    with pytest.raises(ModuleError, match="is not a name that is unpacked"):
        unpack_bundle(path, tmp_path / "deep" / "out")
    assert not [path for path in tmp_path.rglob("x")]


def test_bad_goods(run: Run, compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"abc")
    damaged = bytearray(compiled.read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "damaged.fb").write_bytes(damaged)
    for arguments, status, words in (
        ([compiled], 2, "-o OUT is missing"),
        ([compiled, "--licence=nothing", "-o", "b.zip"], 1, "nothing: No such file"),
        ([compiled, "--parameters=w", "--parameters=w", "-o", "b.zip"], 1, "a file of parameters is there twice"),
        ([compiled, "--detached=w", "-o", "b.zip"], 1, "signature set: 3 bytes"),
        (["damaged.fb", "-o", "b.zip"], 1, "is damaged: its digest differs"),
        (["w", "-o", "b.zip"], 1, "not a module"),
        (["--verify", "w"], 1, "not a zip archive"),
        (["--verify", compiled], 1, "not a zip archive"),
    ):
        got, said = run("bundle", *arguments)
        assert got == status and words in said, said
    assert not (tmp_path / "b.zip").exists()


def test_a_manifest_that_lies_about_its_module(packed: Path, run: Run, tmp_path: Path) -> None:
    found = open_bundle(packed)
    lie = dataclasses.replace(found.manifest, programs=found.manifest.programs[:1])
    rows = [Row(name, bytes(found.content(name))) for name in found.archive.entries if name != "manifest.json.sig"]
    (tmp_path / "lie.zip").write_bytes(b"".join(build([Row("manifest.json", write_manifest(lie)), *rows[1:]])))
    open_bundle(tmp_path / "lie.zip").verify()
    status, said = run("bundle", "--verify", "lie.zip")
    assert status == 1 and "the manifest does not describe this module" in said


def test_who_signed_a_bundle(packed: Path, run: Run, compiled: Path, tmp_path: Path) -> None:
    """In `packed`, module and manifest are signed; a file of parameters must be signed too."""
    keys = '[[key]]\nname = "publisher"\nfile = "key.pub.pem"\n'
    (tmp_path / "keys.toml").write_text(keys)
    status, said = run("bundle", "--verify", packed, "--policy=keys.toml")
    assert status == 1 and "is not trusted: it is not signed; no accepted signature for weights" in said, said
    assert run("sign", "w.safetensors", "--key=key.pem", "--detached=w.safetensors.sig")[0] == 0
    arguments = [compiled, "--parameters=w.safetensors", "--detached=m.sig"]
    assert run("bundle", *arguments, "--key=key.pem", "-o", "signed.zip")[0] == 0
    status, said = run("bundle", "--verify", "signed.zip", "--policy=keys.toml")
    assert status == 0 and "6 entries are as the manifest says, signed by publisher" in said, said
    for flag in ("--policy=keys.toml", "--key=key.pub.pem"):
        status, said = run("verify", "signed.zip", flag)
        assert status == 0 and "signed.zip: every byte is intact, 6 entries, signed by " in said, said
    data = bytearray((tmp_path / "signed.zip").read_bytes())
    for at in (5, len(data) // 2, len(data) - 30):
        damaged = bytearray(data)
        damaged[at] ^= 4
        (tmp_path / "damaged.zip").write_bytes(damaged)
        assert run("verify", "damaged.zip", "--policy=keys.toml")[0] == 1
    assert run("keygen", "--type=ed25519", "-o", "other.pem")[0] == 0
    status, said = run("verify", "signed.zip", "--key=other.pub.pem")
    assert status == 1 and "is not in the keys file" in said
    assert run("bundle", *arguments, "-o", "bare.zip")[0] == 0
    status, said = run("bundle", "--verify", "bare.zip", "--policy=keys.toml")
    assert status == 1 and "manifest" in said and "it is not signed" in said, said
    (tmp_path / "old.toml").write_text(keys + "revoked = true\n")
    status, said = run("bundle", "--verify", "signed.zip", "--policy=old.toml")
    assert status == 1 and "the key is revoked" in said


PARAMETERS = """
func.func public @main(%w: tensor<4xf32> loc("w"), %x: tensor<4xf32> loc("x")) -> tensor<4xf32> {
  %c = stablehlo.constant dense<"0xDATA"> : tensor<32768xf32> loc("table")
  %s = stablehlo.slice %c [2:6] : (tensor<32768xf32>) -> tensor<4xf32> loc("table")
  %0 = stablehlo.multiply %w, %x : tensor<4xf32>
  %1 = stablehlo.add %0, %s : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
"""


def test_parameters_are_taken_from_where_they_lie(run: Run, tmp_path: Path) -> None:
    """A module without weights, with its own parameter file and another one in the bundle, under a policy."""
    pytest.importorskip("jaxlib")
    table = np.arange(32768, dtype=np.float32)
    (tmp_path / "p.mlir").write_text(PARAMETERS.replace("DATA", table.tobytes().hex()))
    flags = ["--target=reference,spirv", "--parameter-arguments=w", "--parameters=t.safetensors"]
    assert compiler.main(["p.mlir", "-o", "m.fb", *flags]) == 0
    write_file("w.safetensors", {"w": Values(BY_NAME["f32"], (4,), Y)})
    assert run("keygen", "--type=ed25519", "-o", "key.pem")[0] == 0
    assert run("sign", "m.fb", "--key=key.pem", "-o", "m.fb")[0] == 0
    assert run("sign", "w.safetensors", "--key=key.pem", "--detached=w.safetensors.sig")[0] == 0
    status, said = run("bundle", "m.fb", "--parameters=t.safetensors", "--parameters=w.safetensors", "-o", "b.zip")
    assert status == 0, said
    (tmp_path / "keys.toml").write_text('[[key]]\nname = "publisher"\nfile = "key.pub.pem"\n')
    os.remove("t.safetensors")
    os.remove("w.safetensors")
    offset, length = find_entry("b.zip", "module.fb")
    for policy in (None, "keys.toml"):
        program = vm.load("b.zip", "reference", offset=offset, length=length, parameters="b.zip", policy=policy)
        np.testing.assert_array_equal(program.main(X), Y * X + table[2:6])
        program.close()
    manifest = open_bundle(tmp_path / "b.zip").manifest
    assert [(row.name, row.type) for row in manifest.parameters] == [("table", "32768xf32"), ("w", "4xf32")]
    assert manifest.parameter_bytes == 4 * 32772
    assert run("unbundle", "b.zip", "-o", "out")[0] == 0
    program = vm.load("out/module.fb", "reference", parameters="out/parameters")
    np.testing.assert_array_equal(program.main(X), Y * X + table[2:6])
    program.close()
    assert run("bundle", "m.fb", f"--parameters=out/{manifest.entries[2].name}", "-o", "c.zip")[0] == 0
    offset, length = find_entry("c.zip", "module.fb")
    with pytest.raises(vm.VmError, match="parameters do not fit the module: missing"):
        vm.load("c.zip", "reference", offset=offset, length=length, parameters="c.zip")


def test_parameters_of_a_bundle_that_nobody_signed(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    table = np.arange(32768, dtype=np.float32)
    (tmp_path / "p.mlir").write_text(PARAMETERS.replace("DATA", table.tobytes().hex()))
    flags = ["--target=reference", "--parameter-arguments=w", "--parameters=t.safetensors"]
    assert compiler.main(["p.mlir", "-o", "m.fb", *flags]) == 0
    write_file("w.safetensors", {"w": Values(BY_NAME["f32"], (4,), Y)})
    assert run("keygen", "--type=ed25519", "-o", "key.pem")[0] == 0
    assert run("sign", "m.fb", "--key=key.pem", "-o", "m.fb")[0] == 0
    assert run("bundle", "m.fb", "--parameters=t.safetensors", "--parameters=w.safetensors", "-o", "b.zip")[0] == 0
    (tmp_path / "keys.toml").write_text('[[key]]\nname = "publisher"\nfile = "key.pub.pem"\n')
    offset, length = find_entry("b.zip", "module.fb")
    with pytest.raises(Exception, match=r"b.zip/parameters/.* is not trusted: it is not signed"):
        vm.load("b.zip", "reference", offset=offset, length=length, parameters="b.zip", policy="keys.toml")


# stores


def test_an_ai_pack_of_play(run: Run, compiled: Path, tmp_path: Path) -> None:
    status, said = run("bundle", compiled, f"--licence={ROOT / 'LICENSE'}", "--layout=play-ai-pack", "-o", "out")
    assert status == 0, said
    out = tmp_path / "out"
    build_file = (out / "model" / "build.gradle").read_text()
    assert "id 'com.android.ai-pack'" in build_file and 'packName = "model"' in build_file
    assert 'deliveryType = "on-demand"' in build_file
    assets = out / "model" / "src" / "main" / "assets"
    assert sorted(path.name for path in assets.iterdir()) == ["model#group_other", "model#group_spirv"]
    for group, targets in (("spirv", ["reference", "spirv"]), ("other", ["reference"])):
        folder = assets / f"model#group_{group}"
        assert sorted(path.name for path in folder.iterdir()) == ["licence.txt", "manifest.json", "module.fb"]
        manifest = read_manifest((folder / "manifest.json").read_bytes())
        there = [row.profile for row in device_groups.whole_programs(manifest)]
        assert sorted(there) == targets
        assert manifest.file.sha256 == sha256((folder / "module.fb").read_bytes()).hexdigest()
    program = vm.load(assets / "model#group_other" / "module.fb", "reference")
    np.testing.assert_array_equal(program.simple_mul(X, Y), X * Y)
    program.close()
    tree = ElementTree.parse(out / "device_targeting_config.xml").getroot()
    space = "{http://schemas.android.com/apk/config}"
    assert tree.tag == f"{space}device-targeting-config"
    (group,) = tree
    assert (group.tag, group.get("name")) == (f"{space}device-group", "spirv")
    assert [row.tag for row in group.iter()][2:] == [f"{space}required-system-feature"]


def test_device_groups_of_play(run: Run, compiled: Path, tmp_path: Path) -> None:
    groups = [
        "--group=fast:programs=spirv,reference,ram=6GB-12GB,soc=QTI/SM8750,soc=Qualcomm/SM8750",
        "--group=fast:device=google/husky,feature=android.hardware.vulkan.compute",
        "--group=other:programs=reference",
    ]
    status, said = run("bundle", compiled, "--layout=play-ai-pack", "--name=mul", *groups, "-o", "out")
    assert status == 0, said
    (group,) = ElementTree.parse(tmp_path / "out" / "device_targeting_config.xml").getroot()
    one, two = group
    assert one.attrib == {"ram-min-bytes": "6000000000", "ram-max-bytes": "12000000000"}
    assert [row.attrib for row in one] == [
        {"manufacturer": "QTI", "model": "SM8750"},
        {"manufacturer": "Qualcomm", "model": "SM8750"},
    ]
    assert [sorted(row.attrib) for row in two] == [["brand", "device"], ["name"]]
    assert (tmp_path / "out" / "mul" / "src" / "main" / "assets" / "mul#group_fast" / "module.fb").exists()


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--name=1st"], 1, "'1st' is no valid pack name for Play"),
        (["--name=a-b"], 1, "'a-b' is no valid pack name for Play"),
        (["--group=a"], 2, "NAME:CONDITIONS wanted"),
        (["--group=a:ram=6"], 2, "ram='6' is not like 4GB-, 4GB-8GB or -8GB"),
        (["--group=a:soc=QTI"], 2, "soc='QTI' is not like MAKER/MODEL"),
        (["--group=a:colour=red"], 2, "none of programs=, ram=, soc=, device=, feature="),
        (["--group=a:programs=spirv"], 2, "a has none"),
        (["--group=other:ram=6GB-"], 2, "other has no conditions"),
        (["--group=a:programs=opencl,ram=6GB-"], 1, "no program for target opencl"),
        ([f"--group=a:soc=Q/{n}" for n in range(6)], 2, "a has 6 selectors, 5 at most"),
        (["--compress-code"], 2, "--compress-code is for --layout=plain"),
    ],
)
def test_what_play_would_refuse(flags: list[str], status: int, words: str, run: Run, compiled: Path) -> None:
    got, said = run("bundle", compiled, "--layout=play-ai-pack", *flags, "-o", "out")
    assert got == status and words in said, said
    assert not os.path.exists("out")


def test_a_pack_above_the_limit_of_play(
    run: Run, compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limit divided by a million; the compressed size counts."""
    monkeypatch.setattr(stores, "PLAY_BYTES", 30_000)
    (tmp_path / "zeros").write_bytes(bytes(100_000))
    (tmp_path / "noise").write_bytes(CHOOSE.randbytes(100_000))
    status, said = run("bundle", compiled, "--parameters=zeros", "--layout=play-ai-pack", "-o", "out")
    assert status == 0, said
    status, said = run("bundle", compiled, "--parameters=noise", "--layout=play-ai-pack", "-o", "no")
    assert status == 1 and "bytes to download, a pack of Play at most 30000" in said
    assert not (tmp_path / "no").exists()


def test_an_asset_pack_of_apple(run: Run, compiled: Path, tmp_path: Path) -> None:
    arguments = ["--layout=apple-asset-pack", "--name=mul", "--download=essential", "--platforms=iOS,macOS"]
    status, said = run("bundle", compiled, *arguments, "-o", "out")
    assert status == 0 and "xcrun ba-package Manifest.json -o mul.aar" in said, said
    assert json.loads((tmp_path / "out" / "Manifest.json").read_text()) == {
        "assetPackID": "mul",
        "downloadPolicy": {"essential": {"installationEventTypes": ["firstInstallation", "subsequentUpdate"]}},
        "fileSelectors": [{"directory": "mul"}],
        "platforms": ["iOS", "macOS"],
    }
    assert (tmp_path / "out" / "mul" / "module.fb").read_bytes() == compiled.read_bytes()


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--platforms=iOS,DOS"], 2, "no DOS; there are iOS"),
        (["--name=a b"], 1, "'a b' is no valid pack name for Apple"),
    ],
)
def test_what_apple_would_refuse(flags: list[str], status: int, words: str, run: Run, compiled: Path) -> None:
    got, said = run("bundle", compiled, "--layout=apple-asset-pack", *flags, "-o", "out")
    assert got == status and words in said, said


def test_a_pack_above_the_limit_of_apple(run: Run, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "APPLE_BYTES", 1000)
    status, said = run("bundle", compiled, "--layout=apple-asset-pack", "-o", "out")
    assert status == 1 and "all packs of an app together have at most 1000" in said


@pytest.mark.parametrize("layout", ["play-ai-pack", "apple-asset-pack"])
def test_stores_take_no_native_code(layout: str, run: Run, tmp_path: Path) -> None:
    source = str(ROOT / "examples" / "simple_mul.generic.mlir")
    assert compiler.main([source, "-o", str(tmp_path / "all.fb")]) == 0
    status, said = run("bundle", "all.fb", f"--layout={layout}", "-o", "out")
    assert status == 1 and "program opencl is native code" in said, said
    command = said[said.index("vm-pack thin") :].split("takes")[0].split()[1:]
    assert run(*command, "all.fb", "-o", "thin.fb")[0] == 0
    status, said = run("bundle", "thin.fb", f"--layout={layout}", "-o", "out")
    assert status == 0, said
    status, said = run("bundle", "--verify", "out")
    assert status == 0 and "files are as the manifest says" in said, said
    status, said = run("bundle", "thin.fb", f"--layout={layout}", "-o", "out")
    assert status == 1 and "is there already and not an empty folder" in said


# OpenSSF Model Signing


@pytest.mark.parametrize("layout", ["plain", "apple-asset-pack"])
def test_openssf_model_signing(layout: str, run: Run, compiled: Path, tmp_path: Path) -> None:
    pytest.importorskip("model_signing")
    assert run("keygen", "--type=p256", "-o", "key.pem")[0] == 0
    assert run("keygen", "--type=p256", "-o", "other.pem")[0] == 0
    status, said = run("bundle", compiled, f"--layout={layout}", "--model-signing-key=key.pem", "-o", "out")
    assert status == 0 and "out.model.sig" in said, said
    statement = json.loads((tmp_path / "out.model.sig").read_text())
    assert statement["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    status, said = run("bundle", "--verify", "out", f"--layout={layout}", "--model-signing-key=key.pub.pem")
    assert status == 0, said
    status, said = run("bundle", "--verify", "out", f"--layout={layout}", "--model-signing-key=other.pub.pem")
    assert status == 1 and "not a signature of out by other.pub.pem" in said
    changed = tmp_path / "out" if layout == "plain" else tmp_path / "out" / "out" / "module.fb"
    if not changed.exists():
        changed = next((tmp_path / "out").rglob("module.fb"))
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    from orchestrion.tools.packing import openssf

    with pytest.raises(Exception, match="not a signature of"):
        openssf.verify(str(tmp_path / "out"), str(tmp_path / "key.pub.pem"))


def test_openssf_takes_keys_on_its_curves_alone(run: Run, compiled: Path) -> None:
    pytest.importorskip("model_signing")
    assert run("keygen", "--type=ed25519", "-o", "key.pem")[0] == 0
    status, said = run("bundle", compiled, "--model-signing-key=key.pem", "-o", "b.zip")
    assert status == 1 and "key.pem: model-signing cannot sign with it" in said
