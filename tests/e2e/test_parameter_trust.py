"""Parameters and adapters under a trust policy: what the module was compiled with, and what was signed."""

import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")
pytest.importorskip("jaxlib")

from signed_modules import keys_file, signed

from orchestrion import compiler, vm
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.safetensors import Values, open_file, write_file
from orchestrion.schema.trust import keys, signature_set
from orchestrion.tools import pack
from orchestrion.vm.errors import ParameterError

PROGRAM = """
func.func public @main(%x: tensor<1024xf32> loc("x")) -> tensor<1024xf32> {
  %c = stablehlo.constant dense<"0xDATA"> : tensor<1024xf32> loc("table")
  %0 = stablehlo.add %x, %c : tensor<1024xf32> loc("table")
  func.return %0 : tensor<1024xf32>
}
"""
TABLE = np.arange(1024, dtype=np.float32)
X = np.ones(1024, np.float32)


@pytest.fixture(scope="module")
def key() -> keys.PrivateKey:
    return keys.generate("ed25519")


@pytest.fixture
def policy(tmp_path: Path, key: keys.PrivateKey) -> Path:
    return keys_file(tmp_path / "keys.toml", key)


@pytest.fixture
def module(tmp_path: Path, key: keys.PrivateKey) -> Path:
    """A signed module whose table lies beside it, unsigned."""
    text = PROGRAM.replace("DATA", TABLE.tobytes().hex())
    blob = compiler.compile(text, targets=["reference"], parameters=tmp_path / "m.safetensors")
    (tmp_path / "m.fb").write_bytes(signed(blob, key))
    return tmp_path / "m.fb"


def saved(path: Path, **arrays: np.ndarray[Any, Any]) -> Path:
    write_file(path, {name.replace("__", "."): Values(BY_NAME["f32"], a.shape, a) for name, a in arrays.items()})
    return path


def sign(path: Path, key: keys.PrivateKey, kind: str) -> Path:
    digest = open_file(path).digest()
    row = keys.sign(key, kind, digest)
    made = signature_set.SignatureSet(kind, digest, (row,))
    path.with_name(f"{path.name}.sig").write_bytes(signature_set.encode(made))
    return path


def refused(module: Path, policy: Path, *words: str, **options: Any) -> None:
    with pytest.raises(vm.Untrusted) as error:
        vm.load(module, policy=policy, **options)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_what_the_module_was_compiled_with_needs_no_signature(module: Path, policy: Path, tmp_path: Path) -> None:
    assert np.array_equal(vm.load(module, policy=policy).main(X), X + TABLE)
    other = saved(tmp_path / "other.safetensors", table=TABLE)
    assert np.array_equal(vm.load(module, policy=policy, parameters=other).main(X), X + TABLE)
    assert np.array_equal(vm.load(module, policy=policy, parameters={"table": TABLE}).main(X), X + TABLE)


def test_other_values_need_one(module: Path, policy: Path, tmp_path: Path, key: keys.PrivateKey) -> None:
    other = saved(tmp_path / "other.safetensors", table=TABLE * 2)
    why = (
        f"{other} is not trusted: it is not signed, there is no {other}.sig; 'table' has not the value that the module"
    )
    refused(module, policy, why, parameters=other)
    refused(module, policy, "the arrays are not trusted: only files can be signed", parameters={"table": TABLE * 2})
    assert np.array_equal(vm.load(module, parameters=other).main(X), X + TABLE * 2)
    sign(other, key, "params")
    assert np.array_equal(vm.load(module, policy=policy, parameters=other).main(X), X + TABLE * 2)


def test_whose_signatures_count(module: Path, tmp_path: Path, key: keys.PrivateKey) -> None:
    other = saved(tmp_path / "other.safetensors", table=TABLE * 2)
    stranger = keys.generate("p256")
    plain = keys_file(tmp_path / "keys.toml", key)
    refused(module, plain, "other.safetensors.sig", parameters=other)
    sign(other, stranger, "params")
    refused(module, plain, f"key {stranger.public.short_id} is not in the keys file", parameters=other)
    sign(other, key, "adapter")
    refused(module, plain, "it has the signatures of adapter", parameters=other)
    sign(other, key, "params")
    assert vm.load(module, policy=plain, parameters=other).main(X)[3] == 7
    Path(f"{other}.sig").write_bytes(b"ORSG")
    refused(module, plain, "signature set: 4 bytes", parameters=other)


def test_a_key_for_code_does_not_answer_for_weights(module: Path, tmp_path: Path, key: keys.PrivateKey) -> None:
    from orchestrion.schema.trust.policy import TrustedKey, TrustPolicy

    weights = keys.generate("ed25519")
    other = sign(saved(tmp_path / "other.safetensors", table=TABLE * 2), weights, "params")
    publisher = TrustedKey("publisher", key.public)
    code_only = TrustedKey("trainer", weights.public, frozenset(("code",)))
    refused(module, TrustPolicy((publisher, code_only)), "no accepted signature for weights", parameters=other)
    trainer = TrustedKey("trainer", weights.public, frozenset(("weights",)))
    program = vm.load(module, policy=TrustPolicy((publisher, trainer)), parameters=other)
    assert np.array_equal(program.main(X), X + TABLE * 2)


def test_adapters_are_signed(module: Path, policy: Path, tmp_path: Path, key: keys.PrivateKey) -> None:
    """Also where the module's own values are used."""
    a, b = np.ones((1, 1024), np.float32), np.ones((1,), np.float32)
    adapter = saved(tmp_path / "a.safetensors", table__lora_A=a, table__lora_B=b)
    assert np.array_equal(vm.load(module, adapters=[adapter]).main(X), X + TABLE + 1)
    refused(module, policy, f"{adapter} is not trusted: it is not signed", adapters=[adapter])
    sign(adapter, key, "params")
    refused(module, policy, f"{adapter}: adapter ", "it has the signatures of params", adapters=[adapter])
    sign(adapter, key, "adapter")
    assert np.array_equal(vm.load(module, policy=policy, adapters=[adapter]).main(X), X + TABLE + 1)


def test_a_policy_that_warns(module: Path, tmp_path: Path, key: keys.PrivateKey) -> None:
    policy = keys_file(tmp_path / "keys.toml", key, before='[policy]\nmode = "warn"')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vm.load(module, policy=policy)
    with pytest.warns(vm.TrustWarning, match="the arrays are not trusted"):
        program = vm.load(module, policy=policy, parameters={"table": TABLE * 2})
    assert np.array_equal(program.main(X), X + TABLE * 2)


def test_every_changed_byte_is_found(
    module: Path, policy: Path, tmp_path: Path, key: keys.PrivateKey, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a small file all, of its data, header and signatures; by loads and by vm-pack verify."""
    (tmp_path / "key.pub.pem").write_bytes(keys.public_pem(key))
    small = saved(tmp_path / "small.safetensors", table=TABLE[:4])
    sign(small, key, "params")
    verify = ["verify", str(small), f"--key={tmp_path / 'key.pub.pem'}"]
    assert pack.main(verify) == 0
    for path in (small, Path(f"{small}.sig")):
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
            assert pack.main(verify) == 1, at
        path.write_bytes(whole)
    assert capsys.readouterr().err.count("\n") == len(small.read_bytes()) + len(Path(f"{small}.sig").read_bytes())


def test_changed_bytes_are_found_at_load(module: Path, policy: Path, tmp_path: Path, key: keys.PrivateKey) -> None:
    other = sign(saved(tmp_path / "other.safetensors", table=TABLE * 2), key, "params")
    whole = other.read_bytes()
    for at in np.random.default_rng(1).integers(0, len(whole), 200):
        other.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises((vm.Untrusted, ModuleError, ParameterError)):
            vm.load(module, policy=policy, parameters=other)


def test_a_file_that_changes_after_its_header_was_read(
    module: Path, policy: Path, tmp_path: Path, key: keys.PrivateKey
) -> None:
    """The digest is that of the header that was decoded: names cannot be exchanged while a file is being looked at."""
    rows = {name: Values(BY_NAME["f32"], (32768,), np.full(32768, n, np.float32)) for n, name in enumerate("ab")}
    place = tmp_path / "large.safetensors"
    write_file(place, rows)
    honest = open_file(place).digest()
    changed = place.read_bytes().replace(b'"a"', b'"c"', 1)
    with open(place, "r+b") as file:
        file.write(changed)
        file.flush()
        opened = open_file(place)
        file.seek(0)
        file.write(changed.replace(b'"c"', b'"a"', 1))
    assert set(opened.tensors) == {"c", "b"}
    assert opened.digest() != honest == open_file(place).digest()


@pytest.mark.parametrize("rows", [1, 40])
def test_entries_of_an_archive(rows: int, tmp_path: Path, key: keys.PrivateKey, policy: Path) -> None:
    """Parameters and an adapter that an archive holds as they are, small ones and mapped ones; with signatures."""
    table = np.arange(rows * 1024, dtype=np.float32).reshape(rows, 1024)
    text = PROGRAM.replace("1024", f"{rows}x1024").replace("DATA", table.tobytes().hex())
    blob = compiler.compile(text, targets=["reference"], parameters=tmp_path / "m.safetensors")
    a, b = np.ones((1, 1024), np.float32), np.ones((rows, 1), np.float32)
    sign(saved(tmp_path / "t.safetensors", table=table * 2), key, "params")
    sign(saved(tmp_path / "a.safetensors", table__lora_A=a, table__lora_B=b), key, "adapter")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for name in ("t.safetensors", "a.safetensors"):
            archive.write(tmp_path / name, name)
    parts = [_entry(tmp_path / "app.zip", name) for name in ("t.safetensors", "a.safetensors")]
    x = np.ones((rows, 1024), np.float32)
    program = vm.load(blob, parameters=parts[0], adapters=[parts[1]])
    assert np.array_equal(program.main(x), x + table * 2 + 1)
    refused(
        signed(blob, key), policy, f"{tmp_path / 'app.zip'} at {parts[0].offset} is not trusted", parameters=parts[0]
    )
    by = [(tmp_path / f"{name}.safetensors.sig").read_bytes() for name in ("t", "a")]
    parts = [replace(part, signature=signature) for part, signature in zip(parts, by, strict=True)]
    program = vm.load(signed(blob, key), policy=policy, parameters=[parts[0]], adapters=[parts[1]])
    assert np.array_equal(program.main(x), x + table * 2 + 1)
    with pytest.raises(ModuleError, match=r"app.zip at 1: offset 1 and length 99999999 are no part of a file of"):
        vm.load(blob, parameters=vm.FilePart(tmp_path / "app.zip", 1, 99999999))


def _entry(path: Path, name: str) -> vm.FilePart:
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    data = path.read_bytes()
    lengths = [int.from_bytes(data[info.header_offset + at :][:2], "little") for at in (26, 28)]
    return vm.FilePart(path, info.header_offset + 30 + sum(lengths), info.file_size)
