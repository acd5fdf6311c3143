"""vm-run --check: each device's answer; a module and its manifest give the same one, and loading agrees with it."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrion import vm
from orchestrion.hal.backend import DeviceInfo
from orchestrion.hal.errors import HalError
from orchestrion.hal.registry import list_devices
from orchestrion.schema import container, writer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import FEATURES
from orchestrion.schema.rows import Access
from orchestrion.schema.shipping.manifest import Format, Import, Manifest, read_manifest, write_manifest
from orchestrion.schema.trust.policy import TrustPolicy
from orchestrion.tools import compile as compiler
from orchestrion.tools import pack
from orchestrion.tools import run as runner
from orchestrion.vm.check import Answer, Verdict, check, subject
from orchestrion.vm.module_manifest import manifest_of

ROOT = Path(__file__).parents[2]
INFOS = [info for driver in list_devices() for info in driver.devices]
REFERENCE = next(info for info in INFOS if info.driver == "reference")

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs vm-run or vm-pack: exit status and output."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object, tool: Callable[[list[str]], int] = runner.main) -> tuple[int, str]:
        try:
            status = tool([str(argument) for argument in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        said = capsys.readouterr()
        return status, said.out + said.err

    return command


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Compiled modules: for all targets, for two, without the reference, thinned."""
    folder = tmp_path_factory.mktemp("check")
    found = {}
    for name, source, targets in (
        ("all", "mlp.mlir", "reference,spirv,opencl"),
        ("mul", "simple_mul.generic.mlir", "reference,spirv"),
        ("devices", "simple_mul.generic.mlir", "spirv,opencl"),
        ("wide", "float64.mlir", "reference,spirv,opencl"),
    ):
        text = ROOT / "examples" / source
        if name == "wide":
            text = folder / source
            text.write_text(
                "func.func @main(%x: tensor<8xf64>) -> tensor<8xf64> {\n"
                "  %0 = stablehlo.add %x, %x : tensor<8xf64>\n  return %0 : tensor<8xf64>\n}\n"
            )
        found[name] = folder / f"{name}.fb"
        assert compiler.main([str(text), f"--target={targets}", "-o", str(found[name])]) == 0
    for name, target in (("thin", "spirv"), ("plain", "reference")):
        found[name] = folder / f"{name}.fb"
        assert pack.main(["thin", str(found["all"]), f"--target={target}", "-o", str(found[name])]) == 0
    return found


def program(name: str, profile: str = "reference", **fields: object) -> writer.Program:
    (row,) = assemble(f'program @{name} profile "{profile}" {{ func @f () -> () {{ return () }} }}').programs
    return replace(row, **fields)  # type: ignore[arg-type]


def executable(*variants: writer.Variant, bindings: int = 1, length: int = 16, words: int = 0) -> writer.Executable:
    rows = [writer.Binding(Access.ReadWrite, length)] * bindings
    return writer.Executable("e", [writer.Entry("entry", rows, words)], variants)


def variant(format: str, features: tuple[str, ...] = (), size: int = 1, shared: int = 0) -> writer.Variant:
    payload = f"{format}{features}{size}{shared}".encode()
    return writer.Variant(format, payload, [(size, 1, 1)], frozenset(features), shared)


def handmade() -> Iterator[tuple[str, writer.Module]]:
    """Modules whose answers are of every kind. Nothing reads their payloads."""
    yield "nothing", writer.Module([])
    yield "several", writer.Module([program("fine", features=frozenset(FEATURES)), program("coarse")])
    for feature in FEATURES:
        rows = [program("s", "spirv", features=frozenset([feature])), program("o", "opencl")]
        yield f"wants {feature}", writer.Module(rows)
    yield "unknown profile", writer.Module([program("x", "abacus"), program("o", "opencl")])
    limits = {
        "wide workgroup": executable(variant("spirv", size=1 << 20)),
        "many bindings": executable(variant("spirv"), bindings=5000),
        "many words": executable(variant("spirv"), words=5000),
        "long binding": executable(variant("spirv"), length=1 << 62),
        "shared memory": executable(variant("spirv", shared=1 << 30)),
        "a later variant": executable(
            variant("spirv", ("gpu",)), variant("spirv", ("int8", "float64")), variant("spirv")
        ),
        "no variant": executable(variant("spirv", ("gpu",))),
        "wide variant that is not taken": executable(variant("abacus", size=1 << 20), variant("spirv")),
    }
    for name, row in limits.items():
        yield name, writer.Module([program("s", "spirv", executables=[row])])
    constant = writer.Constant("c", bytes(64), BY_NAME["i8"], (64,))
    yield "constants", writer.Module([program("s", "spirv", constants=[constant]), program("r")])


def modules(files: dict[str, Path]) -> Iterator[tuple[str, Module]]:
    for name, path in files.items():
        yield name, read_module(path.read_bytes())
    for name, made in handmade():
        yield name, read_module(writer.write(made))


def again(manifest: Manifest) -> Manifest:
    return read_manifest(write_manifest(manifest))


@pytest.mark.parametrize("native", [False, True])
def test_a_manifest_answers_as_its_module_does(files: dict[str, Path], native: bool, swiftshader: str) -> None:
    """On every device here, SwiftShader included, and on devices that each lack one feature."""
    assert swiftshader in [info.id for info in INFOS]
    poorer = [replace(info, features=info.features - {name}) for info in INFOS for name in info.features]
    verdicts = set()
    for name, module in modules(files):
        one, two = subject(module), subject(again(manifest_of(module)))
        for info in INFOS + poorer:
            answer = check(one, info, native)
            assert answer == check(two, info, native), (name, info.id)
            verdicts.add(answer.verdict)
    assert verdicts == set(Verdict)


def test_loading_agrees(files: dict[str, Path]) -> None:
    """A program that the answer says runs is loaded from the file; any other is refused."""
    for name, path in files.items():
        asked = subject(read_module(path.read_bytes()))
        for info in INFOS:
            answer = check(asked, info)
            try:
                loaded = vm.load(path, info.id)
            except (vm.VmError, HalError) as error:
                assert answer.verdict == Verdict.NOT, (name, info.id, answer, error)
                continue
            assert answer.verdict != Verdict.NOT and answer.program == loaded.name, (name, info.id, answer)
            loaded.close()


def reasons(module: writer.Module, info: DeviceInfo) -> Answer:
    return check(subject(read_module(writer.write(module))), info)


def vulkan(**limits: int) -> DeviceInfo:
    """A device that runs SPIR-V, with the limits that a test sets."""
    own = dataclasses.replace(
        REFERENCE.limits,
        **({"max_bindings": 16, "max_binding_length": 1 << 27, "max_workgroup_size": 256} | limits),
    )
    return replace(
        REFERENCE,
        driver="vulkan",
        formats=("spirv",),
        verified_formats=frozenset({"spirv"}),
        features=frozenset(),
        limits=own,
    )


EXPECTED = {
    "nothing": (Verdict.NOT, "the module holds no program"),
    "wants robust": (Verdict.NOT, "program s wants robust, which the device lacks"),
    "unknown profile": (Verdict.NOT, "its profile abacus is unknown to this version"),
    "wide workgroup": (Verdict.NOT, "1048576 invocations in a workgroup, the device's limit is 256"),
    "many bindings": (Verdict.NOT, "entry entry: 5000 bindings, the device's limit is 16"),
    "many words": (Verdict.NOT, "20000 bytes of parameters, the device's limit is 128"),
    "long binding": (Verdict.NOT, "bytes in one binding, the device's limit is 134217728"),
    "shared memory": (Verdict.NOT, "wants 1073741824 bytes of shared memory, the device has 0"),
    "a later variant": (Verdict.SLOWER, "executable e runs a later variant: spirv: wants gpu"),
    "no variant": (Verdict.NOT, "no variant of executable e runs on device vulkan: spirv: wants gpu"),
    "wide variant that is not taken": (Verdict.SLOWER, "abacus: the device runs spirv"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_reasons(name: str) -> None:
    verdict, words = EXPECTED[name]
    answer = reasons(dict(handmade())[name], vulkan())
    assert answer.verdict == verdict and words in str(answer), answer


def test_an_earlier_program_that_is_passed_over_makes_it_slower() -> None:
    rows = [program("fast", "spirv", features=frozenset(["gpu"])), program("slow", "spirv")]
    answer = reasons(writer.Module(rows), vulkan())
    assert str(answer) == "vulkan: runs slower, program slow: program fast wants gpu, which the device lacks"


def test_memory() -> None:
    small = replace(vulkan(), memory_bytes=63)
    answer = reasons(dict(handmade())["constants"], small)
    assert answer.verdict == Verdict.NOT
    assert answer.reasons == ("its constants take 64 bytes, the device has 63",)


def test_native_code_is_a_question_of_policy(files: dict[str, Path]) -> None:
    info = replace(vulkan(), driver="opencl", formats=("opencl-c",))
    stranger = replace(manifest_of(read_module(files["all"].read_bytes())))
    stranger = replace(stranger, file=replace(stranger.file, digest="00" * 32))
    answer = check(subject(stranger), info)
    assert answer.verdict == Verdict.NOT and "opencl-c is native code" in str(answer)
    assert check(subject(stranger), info, allow_native_code=True).verdict == Verdict.RUNS


def signed(run: Run, files: dict[str, Path], tmp_path: Path) -> Path:
    """A module with native code and a model's name and version, signed by a key."""
    text = (tmp_path / "m.mlir").resolve()
    text.write_text((ROOT / "examples" / "mlp.mlir").read_text())
    arguments = [text, "--attribute=model.name=mlp", "--attribute=model.version=6", "-o", tmp_path / "m.fb"]
    assert run(*arguments, tool=compiler.main)[0] == 0
    assert run("keygen", "--type=ed25519", "-o", "key.pem", tool=pack.main)[0] == 0
    status, said = run("sign", "m.fb", "--key=key.pem", "-o", "s.fb", tool=pack.main)
    assert status == 0, said
    return tmp_path / "s.fb"


def test_a_manifest_answers_under_a_policy_as_its_module_does(
    run: Run, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest contains the signatures, which are verified."""
    module = read_module(signed(run, files, tmp_path).read_bytes())
    bare = read_module((tmp_path / "m.fb").read_bytes())
    key = '[[key]]\nname = "publisher"\nfile = "key.pub.pem"\n'
    everything = 'scopes = ["code", "weights", "native"]\n'
    cases = {
        "": "is not in the keys file",
        key: "no accepted signature for native code",
        key + everything: "",
        key + everything + "revoked = true\n": "the key is revoked",
        key + everything + "not-after = 2020-01-01\n": "the key expired",
        key + everything + "[minimum-version]\nmlp = 7\n": "model 'mlp' has version 6, the keys file demands 7",
    }
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "elsewhere"))
    for text, words in cases.items():
        (tmp_path / "keys.toml").write_text(text)
        policy = TrustPolicy.read(tmp_path / "keys.toml")
        for info in INFOS:
            answer = check(subject(module), info, policy=policy)
            assert answer == check(subject(again(manifest_of(module))), info, policy=policy)
            assert (answer.verdict == Verdict.NOT) == bool(words) and words in str(answer), answer
            unsigned = check(subject(again(manifest_of(bare))), info, policy=policy)
            assert unsigned.verdict == Verdict.NOT and "it is not signed" in str(unsigned)
    forged = dataclasses.replace(manifest_of(bare), signatures=manifest_of(module).signatures)
    other = dataclasses.replace(forged, file=dataclasses.replace(forged.file, digest="ab" * 32))
    (tmp_path / "keys.toml").write_text(key + everything + '[policy]\nmode = "warn"\n[minimum-version]\nmlp = 7\n')
    native = dataclasses.replace(vulkan(), driver="opencl", formats=("opencl-c",))
    answer = check(subject(module), native, policy=TrustPolicy.read(tmp_path / "keys.toml"))
    assert answer.verdict == Verdict.NOT and "opencl-c is native code" in str(answer)
    (tmp_path / "keys.toml").write_text(key + everything)
    policy = TrustPolicy.read(tmp_path / "keys.toml")
    assert "it has the signatures of module" in str(check(subject(again(other)), REFERENCE, policy=policy))
    assert run("manifest", "s.fb", "-o", "s.json", tool=pack.main)[0] == 0
    for name in ("s.fb", "s.json"):
        status, said = run("--check", name, "--policy=keys.toml")
        assert status == 0 and "will not run" not in said, said
    assert run("sign", "m.fb", "--key=key.pem", "--detached=d.sig", tool=pack.main)[0] == 0
    assert run("manifest", "m.fb", "--detached=d.sig", "-o", "d.json", tool=pack.main)[0] == 0
    assert run("--check", "d.json", "--policy=keys.toml")[0] == 0
    assert run("--check", "m.fb", "--signature=d.sig", "--policy=keys.toml")[0] == 0
    assert run("--check", "m.fb", "--policy=keys.toml")[0] == 1


def test_newer_formats_are_named() -> None:
    known = manifest_of(read_module(writer.write(dict(handmade())["several"])))
    newer = replace(known, format=Format(1, 9))
    assert "needs format 1.9, this version reads" in str(check(subject(again(newer)), REFERENCE))
    strange = replace(known, format=Format(1, 0, 1 << 40))
    assert "needs features 0x10000000000 of the format" in str(check(subject(again(strange)), REFERENCE))
    first = replace(known.programs[1], bytecode_minor=9)
    later = replace(known, programs=(first,))
    assert "wants bytecode 1.9, this version runs up to" in str(check(subject(again(later)), REFERENCE))


def test_what_a_device_never_meets_is_no_reason() -> None:
    """Another device's program that does not verify, and attributes and a signature set that nothing reads."""
    (broken,) = assemble('program @s profile "spirv" { func @f () -> () { return () } }').programs
    functions = [replace(broken.functions[0], bytecode=b"\xff\xff\xff\xff")]
    rows = [replace(broken, functions=functions), program("r")]
    made = writer.Module(rows, attributes={"model.version": "new"})
    file = container.open_bytes(writer.write(made))
    sign = container.Attachment("SIGN", b"no signature set")
    pieces = container.build(file.root, [file.segment(at) for at in range(len(file.spans))], [sign])
    module = read_module(b"".join(pieces))
    assert check(subject(module), REFERENCE).verdict == Verdict.SLOWER
    vm.load(bytes(module.container.data), "reference").close()
    assert check(subject(module), vulkan()).verdict == Verdict.NOT
    policy = TrustPolicy((), "warn")
    assert "model.version is 'new'" in str(check(subject(module), REFERENCE, policy=policy))
    with pytest.raises(ModuleError):
        manifest_of(module)


def test_imports_and_libraries_that_are_not_there() -> None:
    known = manifest_of(read_module(writer.write(dict(handmade())["several"])))
    wanting = replace(known.programs[1], imports=(Import("clock.now", "() -> i64"),), libraries=("abacus.add",))
    answer = check(subject(again(replace(known, programs=(wanting,)))), REFERENCE)
    assert answer.verdict == Verdict.NOT and len(answer.reasons) == 2
    assert "clock.now () -> i64 is not there" in str(answer) and "there is no library abacus" in str(answer)
    optional = replace(wanting, imports=(Import("clock.now", "() -> i64", True),), libraries=("abacus.add",))
    assert len(check(subject(replace(known, programs=(optional,))), REFERENCE).reasons) == 1


def test_libraries_are_found_in_the_code() -> None:
    pytest.importorskip("scipy")
    from module_corpus import calling_libraries

    found = {
        name
        for _, made in calling_libraries()
        for program in manifest_of(read_module(writer.write(made))).programs
        for name in program.libraries
    }
    assert found and all("." in name for name in found)


def test_a_manifest_is_small(files: dict[str, Path]) -> None:
    for path in files.values():
        assert len(write_manifest(manifest_of(read_module(path.read_bytes())))) < 4096


def test_thinned_executables_take_one_row(files: dict[str, Path]) -> None:
    """Each lacks a segment of its own; the manifest names the first."""
    made = manifest_of(read_module(files["plain"].read_bytes()))
    gone = next(row for row in made.programs if row.profile == "spirv")
    assert sum(row.count for row in gone.executables) == 4 and len(gone.executables) <= 2


# the command


def test_the_command_line(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    module = files["mul"]
    assert run("manifest", module, "-o", "m.json", tool=pack.main)[0] == 0
    assert run("bundle", module, "-o", "m.zip", tool=pack.main)[0] == 0
    status, said = run("--check", module)
    assert status == 0, said
    assert "reference: runs slower, program reference: the device interprets its code with NumPy" in said
    for path in ("m.json", "m.zip"):
        assert run("--check", path) == (status, said)
    lines = said.splitlines()
    there = [info.id for info in INFOS if info.driver != "null"]
    assert [line.partition(":")[0] for line in lines if "not available" not in line] == [
        name.partition(":")[0] for name in there
    ]
    status, said = run("--check", module, "--device=opencl")
    assert status == 1 and "will not run" in said and "runs on none of 1 devices" in said


def test_what_cannot_be_read_runs_on_no_device(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    made = json.loads(write_manifest(manifest_of(read_module(files["mul"].read_bytes()))))
    (tmp_path / "new.json").write_text(json.dumps(made | {"manifest": "2.0"}))
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "damaged.fb").write_bytes(files["mul"].read_bytes()[:-1])
    for name, words in (
        ("new.json", "version 2.0"),
        ("bad.json", "not a manifest"),
        ("empty", "not a manifest"),
        ("damaged.fb", "truncated"),
    ):
        status, said = run("--check", name)
        assert status == 1 and words in said and "will not run on any device" in said, said
    status, said = run("--check", "nothing.fb")
    assert status == 1 and "No such file" in said
    status, said = run("--check", files["mul"], "--input=4xf32=1")
    assert status == 2 and "--check and --input cannot be combined" in said
