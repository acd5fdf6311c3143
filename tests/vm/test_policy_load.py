"""Loading under a trust policy: what is refused and why, what may change in a mapped file, what no policy takes."""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from orchestrion.schema.hints import install
from orchestrion.schema.lru_cache import LruCache

pytest.importorskip("cryptography")

from signed_modules import code_module, detached, key_text, keys_file, rebuilt, signed

from orchestrion import vm
from orchestrion.hal import executable
from orchestrion.hal.errors import PolicyRefused
from orchestrion.hal.registry import open_device
from orchestrion.schema import container, files, segments, tensor_encoding
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import Attachment, Section
from orchestrion.schema.decoder import read_module
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.rows import SegmentKind
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.schema.trust import keys, signers
from orchestrion.schema.trust.policy import TrustPolicy
from orchestrion.schema.writer import write
from orchestrion.vm import admission

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([5, -1, 0.5, 2], np.float32)
Z = X * Y + np.array([1, 2, 3, 4], np.float32)
MIB = 1 << 20
ALL = 'scopes = ["code", "weights", "native"]'


@pytest.fixture(scope="module")
def key() -> keys.PrivateKey:
    return keys.generate("ed25519")


@pytest.fixture(scope="module")
def other() -> keys.PrivateKey:
    return keys.generate("p256")


@pytest.fixture
def policy(tmp_path: Path, key: keys.PrivateKey) -> Path:
    return keys_file(tmp_path / "keys.toml", key)


def refused(data: bytes | Path, policy: Path | TrustPolicy, *words: str, **more: bytes) -> None:
    with pytest.raises(vm.Untrusted) as error:
        vm.load(data, policy=policy, **more)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_a_signed_module_runs(tensors: bytes, key: keys.PrivateKey, policy: Path, tmp_path: Path) -> None:
    """From bytes, from a file, with its signatures beside it; and what follows from them can be asked."""
    whole = signed(tensors, key)
    path = tmp_path / "m.fb"
    path.write_bytes(whole)
    (tmp_path / "m.sig").write_bytes(detached(tensors, key))
    loads: list[Callable[[], vm.Program]] = [
        lambda: vm.load(whole, policy=policy),
        lambda: vm.load(path, policy=str(policy)),
        lambda: vm.load(path, policy=vm.TrustPolicy.read(policy)),
        lambda: vm.load(tensors, policy=policy, signature=tmp_path / "m.sig"),
        lambda: vm.load(tensors, policy=policy, signature=detached(tensors, key)),
        lambda: vm.load(path, policy=policy, profiling=True),
        lambda: vm.load(whole),
    ]
    for load in loads:
        program = load()
        np.testing.assert_array_equal(program.main(X, Y), Z)
        program.close()
    program = vm.load(whole, policy=policy)
    assert program.trust is not None and program.trust.signers == ("publisher",)
    assert vm.load(whole).trust is None


def test_what_is_not_signed_is_refused(
    tensors: bytes, key: keys.PrivateKey, other: keys.PrivateKey, policy: Path
) -> None:
    refused(tensors, policy, "it is not signed", "no accepted signature for code and weights")
    refused(signed(tensors, other), policy, f"key {other.public.short_id} is not in the keys file")
    stranger = detached(code_module(), key)
    refused(tensors, policy, "it has the signatures of module", signature=stranger)
    refused(tensors, policy, "signature set: 4 bytes", signature=b"ORSG")


def test_validity_revocation_and_versions_are_looked_at_anew(key: keys.PrivateKey, tmp_path: Path) -> None:
    """Between two loads of the same file the keys file changes, or time passes."""
    data = signed(code_module('attribute "model.name" = "m" attribute "model.version" = "3"'), key)
    path = tmp_path / "keys.toml"
    assert vm.load(data, policy=keys_file(path, key)).f() == 7
    refused(data, keys_file(path, key, "revoked = true"), "publisher: the key is revoked")
    refused(data, keys_file(path, key, "not-after = 2020-01-01"), "publisher: the key expired at 2020-01-02 00:00 UTC")
    refused(data, keys_file(path, key, "not-before = 2999-01-01"), "publisher: the key is not valid before 2999-01-01")
    refused(data, keys_file(path, key, 'models = ["n"]'), "publisher: the key may not sign model 'm'")
    versions = "[minimum-version]\nm = {}"
    refused(data, keys_file(path, key, before=versions.format(4)), "model 'm' has version 3, the keys file demands 4")
    assert vm.load(data, policy=keys_file(path, key, 'models = ["m"]', versions.format(3))).f() == 7


def test_a_key_expires_while_a_process_runs(
    key: keys.PrivateKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, path = signed(code_module(), key), keys_file(tmp_path / "keys.toml", key, "not-after = 2100-01-01T00:00:00Z")
    rules = TrustPolicy.read(path)
    for one in (path, rules):
        assert vm.load(data, policy=one).f() == 7
    monkeypatch.setattr(signers.time, "time", lambda: 4102444800.0)
    for one in (path, rules):
        refused(data, one, "publisher: the key expired at 2100-01-01 00:00 UTC")


def test_a_malformed_version_is_an_error(key: keys.PrivateKey, policy: Path) -> None:
    data = signed(code_module('attribute "model.version" = "1.2"'), key)
    with pytest.raises(vm.ModuleError, match="model.version"):
        vm.load(data, policy=policy)


def test_warn_loads_and_says_the_same(tensors: bytes, key: keys.PrivateKey, tmp_path: Path) -> None:
    path = keys_file(tmp_path / "keys.toml", key, before='[policy]\nmode = "warn"')
    with pytest.warns(vm.TrustWarning, match="is not trusted: it is not signed; no accepted signature") as seen:
        program = vm.load(tensors, device="reference", policy=path)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(program.main(X, Y), Z)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vm.load(signed(tensors, key), device="reference", policy=path)


def test_off_looks_at_nothing(tensors: bytes, key: keys.PrivateKey, tmp_path: Path) -> None:
    path = keys_file(tmp_path / "keys.toml", key, before='[policy]\nmode = "off"')
    program = vm.load(tensors, policy=path)
    assert program.trust is None and program.module.guard is None


def test_a_policy_that_cannot_be_read(tensors: bytes, tmp_path: Path, policy: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        vm.load(tensors, policy=tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_text("[[key]]\nrevokd = true")
    with pytest.raises(vm.KeysError, match=r"bad.toml: key\[0\]: unknown 'revokd'"):
        vm.load(tensors, policy=tmp_path / "bad.toml")
    with pytest.raises(vm.VmError, match="a signature is only used with a policy"):
        vm.load(tensors, signature=b"")
    with pytest.raises(OSError, match="nowhere"):
        vm.load(tensors, policy=policy, signature=tmp_path / "nowhere.sig")


def test_unknown_parts_must_be_signed(key: keys.PrivateKey, policy: Path) -> None:
    """Attachments and sections that nobody knows are skipped without a policy."""
    parts = ([Attachment("NOTE", b"text")], [Section("notes", b"more text")])
    whole = rebuilt(code_module(), *parts)
    assert vm.load(whole).f() == 7
    assert vm.load(signed(whole, key), policy=policy).f() == 7
    signatures = detached(code_module(), key)
    for extra in ((parts[0], []), ([], parts[1]), parts):
        data = rebuilt(code_module(), *extra)
        names = [row.tag for row in extra[0]] + [row.name for row in extra[1]]
        refused(data, policy, f"no accepted signature covers {', '.join(names)}", signature=signatures)
    file = container.open_bytes(signed(whole, key))
    for changed in ([Section("notes", b"MORE text")], [Section("notes", b"more text"), Section("notes", b"again")]):
        refused(rebuilt(code_module(), file.attachments, changed), policy, "no accepted signature covers")
    refused(
        rebuilt(code_module(), file.attachments, []), policy, "publisher: it signed notes, which is not in this file"
    )


def test_what_is_remembered_is_about_signatures(key: keys.PrivateKey, policy: Path) -> None:
    """The same bytes under another tag are no signatures, whatever was loaded before."""
    data, signatures = code_module(), detached(code_module(), key)
    for _ in range(3):
        assert vm.load(data, policy=policy, signature=signatures).f() == 7
        assert vm.load(signed(data, key), policy=policy).f() == 7
    refused(rebuilt(data, [Attachment("NOTE", signatures)]), policy, "it is not signed", "covers NOTE")
    refused(rebuilt(data, [Attachment("SIGN", signatures)] * 2, [Section("s", b"")]), policy, "covers s")
    assert vm.load(rebuilt(data, [Attachment("SIGN", signatures)] * 2), policy=policy).f() == 7


def test_a_thinned_module_stays_signed(tensors: bytes, key: keys.PrivateKey, policy: Path) -> None:
    """A segment of another program is gone; the scopes stay those of the root."""
    whole = signed(tensors, key)
    module = read_module(whole)
    spirv = next(row.payload for row in module.variants if module.strings[row.format] == "spirv")
    thinned = rebuilt(whole, module.container.attachments, without=[spirv])
    program = vm.load(thinned, policy=policy)
    np.testing.assert_array_equal(program.main(X, Y), Z)
    every = [ordinal for ordinal, row in enumerate(module.segments) if row.kind == SegmentKind.Constant]
    light = rebuilt(whole, module.container.attachments, without=every)
    code_alone = keys_file(policy.with_name("code.toml"), key, 'scopes = ["code"]')
    refused(light, code_alone, "no accepted signature for weights")


# native code


def test_native_code_runs_when_it_is_signed_for(
    key: keys.PrivateKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by a key without that scope; not without a policy; and limits of initializers stay those of strangers."""
    pytest.importorskip("pyopencl")
    from orchestrion import compiler
    from orchestrion.hal.errors import HalError

    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    text = (Path(__file__).parents[2] / "examples" / "simple_mul.generic.mlir").read_text()
    data = compiler.compile(text, targets=["opencl"])
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "another"))
    try:
        device = open_device("opencl")
    except HalError as error:
        pytest.skip(str(error))
    whole = signed(data, key)
    refused_code = pytest.raises(vm.VmError, match="opencl-c is native code")
    with refused_code as error:
        vm.load(whole, device="opencl")
    assert isinstance(error.value.__cause__, PolicyRefused)
    refused(whole, keys_file(tmp_path / "keys.toml", key), "no accepted signature for native code")
    native = keys_file(tmp_path / "native.toml", key, ALL)
    for place in ("opencl", device):
        program = vm.load(whole, device=place, policy=native)
        name = next(iter(program.functions))
        np.testing.assert_array_equal(program[name](X, Y), X * Y)
        assert not program.device.policy.trusts(program.module.container.digest)
        program.create_context().close()
        program.close()
    with pytest.raises(vm.VmError, match="opencl-c is native code"):  # what one load may do, another may not
        vm.load(data, device=device)
    warn = keys_file(tmp_path / "warn.toml", key, before='[policy]\nmode = "warn"')
    with pytest.warns(vm.TrustWarning), pytest.raises(vm.VmError, match="opencl-c is native code"):
        vm.load(whole, device=device, policy=warn)
    versions = '[policy]\nmode = "warn"\n[minimum-version]\nm = 2'
    warn = keys_file(tmp_path / "old.toml", key, ALL, versions)  # allows no more than a load without a policy
    with pytest.warns(vm.TrustWarning, match="m"), pytest.raises(vm.VmError, match="opencl-c is native code"):
        vm.load(whole, device=device, policy=warn)
    device.close()


# what changes under a mapped file


WEIGHTED = """export @byte
export @seven
program @p profile "reference" {
  constant @w : tensor<1xi8> = hex "00"
  func @byte (i64) -> i32 {
    %l1 = i64.const 1
    %r0 = buffer.constant @w, %l0, %l1
    %i0 = buffer.load8_u %r0, %l2
    return (%i0)
  }
  func @seven () -> i32 { %i0 = i32.const 7 return (%i0) }
  entry @byte
  entry @seven
}"""


def weighted(size: int, key: keys.PrivateKey) -> tuple[bytes, int]:
    """A signed module whose `byte(i)` gives byte i of its constant, all of which are 5; where that lies in the file."""
    rows = assemble(WEIGHTED)
    data = np.full(size, 5, np.uint8)
    constant = replace(rows.programs[0].constants[0], data=data, dims=(size,))
    module = signed(write(replace(rows, programs=[replace(rows.programs[0], constants=[constant])])), key)
    return module, container.open_bytes(module).spans[0][0]


def rewrite(path: Path, at: int, new: bytes) -> None:
    """In place, as nobody should."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(new)


def test_constants_are_verified_before_their_first_use(key: keys.PrivateKey, policy: Path, tmp_path: Path) -> None:
    """Piece by piece where they are long: what nobody uses is not read."""
    path = tmp_path / "m.fb"
    for size in (100, 100_000, 6 * MIB + 5):
        data, start = weighted(size, key)
        path.write_bytes(data)
        program = vm.load(path, policy=policy)
        assert program.byte(size - 1) == 5
        rewrite(path, start + size - 1, b"\6")
        program = vm.load(path, policy=policy)
        assert program.seven() == 7
        if size > 4 * MIB:
            assert program.byte(0) == 5 and program.byte(6 * MIB - 1) == 5
        with pytest.raises(vm.ModuleError, match="segment 0 is damaged: its digest differs"):
            program.byte(size - 1)
        with pytest.raises(vm.ModuleError, match="segment 0 is damaged: its digest differs"):
            program.byte(size - 1)
        assert vm.load(path).byte(size - 1) == 6


def test_a_use_over_pieces(key: keys.PrivateKey, policy: Path, tmp_path: Path) -> None:
    """Bytes of a whole device buffer: all pieces are read, whichever is damaged."""
    data, start = weighted(5 * MIB, key)
    path = tmp_path / "m.fb"
    for at in (0, MIB, 5 * MIB - 1):
        path.write_bytes(data)
        rewrite(path, start + at, b"\6")
        module = vm.load(path, policy=policy).module
        assert module.guard is not None
        with pytest.raises(vm.ModuleError, match=f"piece {at // MIB} of segment 0 is damaged"):
            module.segment(0)
        module.guard.verify(0, 2 * MIB, 3 * MIB)
        module.guard.verify(0, at, at)


def test_what_was_hashed_is_remembered_until_somebody_writes(
    key: keys.PrivateKey, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was written just now is hashed at each load: its times may stay the same when it is written again."""
    hashed: list[int] = []
    real = segments.sha256

    def counting(data: memoryview) -> object:
        hashed.append(len(data))
        return real(data)

    monkeypatch.setattr(segments, "sha256", counting)
    path, copy = tmp_path / "m.fb", tmp_path / "copy.fb"
    data, start = weighted(100_003, key)
    for place in (path, copy):
        place.write_bytes(data)

    def load(place: Path = path) -> int:
        return int(vm.load(place, policy=policy).byte(100_002))

    assert (load(), load(), hashed) == (5, 5, [100_003] * 2)
    soon = time.time_ns() + 10**10
    monkeypatch.setattr(files.time, "time_ns", lambda: soon)
    assert (load(), load(), load(), hashed) == (5, 5, 5, [100_003] * 3)
    assert (load(copy), load(copy), hashed) == (5, 5, [100_003] * 4)
    assert (vm.load(data, policy=policy).byte(0), hashed) == (5, [100_003] * 5)
    rewrite(path, start + 100_002, b"\6")
    for _ in range(2):
        with pytest.raises(vm.ModuleError, match="segment 0 is damaged"):
            load()
    copy.replace(path)
    assert (load(), load()) == (5, 5)


def test_a_module_in_another_file(key: keys.PrivateKey, policy: Path, tmp_path: Path) -> None:
    """Two entries of one archive, at places of their own."""
    path = tmp_path / "archive"
    small, large = signed(code_module(), key), weighted(100_005, key)[0]
    path.write_bytes(bytes(7) + small.ljust(20_000, b"x") + large + b"tail")
    assert vm.load(path, policy=policy, offset=7, length=len(small)).f() == 7
    assert vm.load(path, policy=policy, offset=20_007, length=len(large)).byte(100_004) == 5
    rewrite(path, 20_007 + container.open_bytes(large).spans[0][0], b"\6")
    with pytest.raises(vm.ModuleError, match="segment 0 is damaged"):
        vm.load(path, policy=policy, offset=20_007, length=len(large)).byte(0)
    with pytest.raises(vm.ModuleError):
        vm.load(path, policy=policy)


def test_the_root_is_copied_before_it_is_hashed(
    key: keys.PrivateKey, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever exchanges it in a mapped file right after that changes nothing."""
    data, _ = weighted(100_001, key)
    path = tmp_path / "m.fb"
    path.write_bytes(data)
    place = data.index(b"seven")
    real = container.sha256

    def late(root: memoryview) -> object:
        found = real(root)
        rewrite(path, place, b"SEVEN")
        return found

    monkeypatch.setattr(container, "sha256", late)
    for options in ({"policy": policy}, {}):
        path.write_bytes(data)
        assert vm.load(path, **options).seven() == 7
        assert path.read_bytes() != data


def test_what_others_made_of_a_mapped_root_is_not_remembered(
    key: keys.PrivateKey, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads are remembered by a digest that the file may no longer have."""
    data, _ = weighted(100_007, key)
    path = tmp_path / "m.fb"
    place = data.index(b"seven")
    real = container.sha256

    def late(root: memoryview) -> object:
        found = real(root)
        rewrite(path, place, b"SEVEN")
        return found

    for _ in range(3):
        path.write_bytes(data)
        with monkeypatch.context() as patch:
            patch.setattr(container, "sha256", late)
            assert "seven" in vm.load(path).functions
    path.write_bytes(data)
    for _ in range(3):
        assert "seven" in vm.load(path, policy=policy).functions
    assert "seven" in vm.load(path).functions and "seven" in vm.load(path, policy=policy).functions


def test_code_is_copied_before_it_is_hashed(
    tensors: bytes, key: keys.PrivateKey, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = signed(rebuilt(tensors, sections=[Section("room", bytes(100_000))]), key)
    path = tmp_path / "m.fb"
    path.write_bytes(whole)
    file = container.open_bytes(whole)
    rows = read_module(whole)
    places = [file.spans[row.payload] for row in rows.variants if rows.strings[row.format] == "tensor-bytecode"]
    real = segments.sha256

    def late(data: memoryview) -> object:
        found = real(data)
        for at, size in places:
            rewrite(path, at, bytes(size))
        return found

    monkeypatch.setattr(segments, "sha256", late)
    for options in ({"policy": policy}, {}):
        path.write_bytes(whole)
        program = vm.load(path, **options)
        np.testing.assert_array_equal(program.main(X, Y), Z)
        assert path.read_bytes() != whole


def test_what_others_built_of_mapped_code_is_not_used(
    tensors: bytes, key: keys.PrivateKey, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executables are kept under the digest of their code: the file must not change between that and the build."""
    whole = signed(rebuilt(tensors, sections=[Section("room", bytes(100_009))]), key)
    file, rows = container.open_bytes(whole), read_module(whole)
    (payload,) = {row.payload for row in rows.variants if rows.strings[row.format] == "tensor-bytecode"}
    other = EntryCode(4)
    row = TensorType(DTYPES["f32"], (4,))
    x, y, c = (other.emit("load_input", (), binding, row) for binding in range(3))
    other.emit("store_output", other.emit("subtract", (*other.emit("multiply", (*x, *y)), *c)), 3)
    subtracting = tensor_encoding.encode([other])
    assert len(subtracting) == file.spans[payload][1]
    path = tmp_path / "m.fb"

    def late(data: memoryview) -> object:
        found = sha256(data)
        rewrite(path, file.spans[payload][0], subtracting)
        return found

    with open_device("reference") as device:
        path.write_bytes(whole)
        with monkeypatch.context() as patch:
            patch.setattr(executable, "hashlib", SimpleNamespace(sha256=late))
            vm.load(path, device=device).close()
        path.write_bytes(whole)
        program = vm.load(path, device=device, policy=policy)
        np.testing.assert_array_equal(program.main(X, Y), Z)
        program.close()


def test_damaged_code_is_refused(tensors: bytes, key: keys.PrivateKey, policy: Path) -> None:
    whole = bytearray(signed(tensors, key))
    module = read_module(bytes(whole))
    for row in module.variants:
        if module.strings[row.format] == "tensor-bytecode":
            whole[module.container.spans[row.payload][0]] ^= 1
    with pytest.raises(vm.ModuleError, match="is damaged: its digest differs"):
        vm.load(bytes(whole), policy=policy)


# what it takes


def run(program: str, *arguments: str | Path) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout


def test_no_policy_imports_nothing(key: keys.PrivateKey, policy: Path, tmp_path: Path) -> None:
    """Of what checks signatures, nothing is there after a load without a policy."""
    path = tmp_path / "m.fb"
    path.write_bytes(signed(code_module(), key))
    program = """
import sys
from orchestrion import vm
assert vm.load(sys.argv[1], **({"policy": sys.argv[2]} if len(sys.argv) > 2 else {})).f() == 7
files = ("keys", "signature_set", "signers", "policy", "guard")
names = {"cryptography", "tomllib", "orchestrion.vm.admission", *("orchestrion.schema.trust." + file for file in files)}
print(*sorted(names & set(sys.modules)))
"""
    assert run(program, path).split() == []
    assert len(run(program, path, policy).split()) == 8


def test_require_without_cryptography_refuses(key: keys.PrivateKey, policy: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.fb"
    path.write_bytes(signed(code_module(), key))
    program = """
import sys
sys.modules["cryptography"] = None
from orchestrion import vm
try:
    vm.load(sys.argv[1], policy=sys.argv[2])
except vm.Untrusted as error:
    print(error)
"""
    said = run(program, path, policy)
    assert f"is not trusted: publisher: signatures need the package cryptography: {install('sign')}" in said


def test_cached_identities_are_bounded(key: keys.PrivateKey, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_IDENTITIES", 2)
    monkeypatch.setattr(admission, "_identities", LruCache())
    for number in range(5):
        data = signed(code_module(f'attribute "model.version" = "{number}"'), key)
        assert vm.load(data, policy=policy).f() == 7
        assert len(admission._identities) <= 2


def test_two_signers_share_the_scopes(
    tensors: bytes, key: keys.PrivateKey, other: keys.PrivateKey, tmp_path: Path
) -> None:
    path = tmp_path / "keys.toml"
    coder, trainer = key_text(key, 'scopes = ["code"]', "coder"), key_text(other, 'scopes = ["weights"]', "trainer")
    path.write_text(coder + trainer)
    refused(signed(tensors, key), path, "no accepted signature for weights")
    refused(signed(tensors, other), path, "no accepted signature for code")
    program = vm.load(signed(signed(tensors, other), key), policy=path)
    assert program.trust is not None and set(program.trust.signers) == {"coder", "trainer"}
