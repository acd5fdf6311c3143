"""The commands as a user runs them: their output, exit status, and files left after bad input."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from later_format import files

from orchestrion.compiler.targets.choice import default_targets

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests" / "golden"
SIMPLE_MUL = EXAMPLES / "simple_mul.generic.mlir"
INPUTS = ("--input=4xf32=1,2,3,4", "--input=4xf32=10,20,30,40")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path, command_folder: Path) -> Command:
    """Runs `vm-NAME` in a process of its own, with its own trust store and caches.

    `prefix` sets limits, which `command_folder` cannot do.
    """

    def run(name: str, *arguments: str | Path, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "ORCHESTRION_HOME": str(tmp_path / "home"),
            "ORCHESTRION_CACHE": str(tmp_path / "cache"),
        }
        started = [*prefix, sys.executable, "-m", f"orchestrion.tools.{name}"]
        return subprocess.run(
            [*(started if prefix else [command_folder / f"vm-{name}"]), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=120,
        )

    return run


@pytest.fixture
def module(tmp_path: Path, command: Command) -> Path:
    """simple_mul compiled for every target."""
    path = tmp_path / "simple_mul.fb"
    done = command("compile", SIMPLE_MUL, "-o", path, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    return path


def refused(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    """Checks for this exit status and one clear error without a traceback."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_compile_and_run(module: Path, command: Command, tmp_path: Path) -> None:
    done = command("run", module, *INPUTS, "--expected-output=4xf32=10,40,90,160", "--output=@out.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 1 results are as expected" in done.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.array([10, 40, 90, 160], np.float32))


def test_statistics_are_those_of_the_driver(module: Path, command: Command, tmp_path: Path) -> None:
    done = command("run", module, *INPUTS, "--repeat=3", "--print-statistics=s.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["load"]["executables_created"] == 1 and found["load"]["command_buffers_recorded"] == 1
    last = found["calls"][-1]
    assert len(found["calls"]) == 3
    assert (last["submissions"], last["dispatches"], last["waits"], last["allocations"]) == (1, 1, 1, 0)
    assert (last["host_to_device_bytes"], last["device_to_host_bytes"]) == (32, 16)


def test_a_module_for_another_device(command: Command, tmp_path: Path) -> None:
    module = tmp_path / "m.fb"
    command("compile", SIMPLE_MUL, "-o", module, "--target=spirv")
    listed = command("run", module, "--list-functions")
    assert listed.stdout == "simple_mul(arg0: f32[4], arg1: f32[4]) -> (f32[4])\n", listed.stderr
    no_program = "no program of the module runs on device reference"
    refused(command("run", module, *INPUTS), 1, no_program, "; --device=NAME names another")
    assert "names another" not in command("run", module, *INPUTS, "--device=reference").stderr


def test_dump_lists_every_program(module: Path, command: Command) -> None:
    done = command("dump", module)
    assert done.returncode == 0
    for text in ("simple_mul(lhs: 4xf32, rhs: 4xf32)", "program reference", "program opencl", "program spirv", "bytes"):
        assert text in done.stdout.replace("arg0", "lhs").replace("arg1", "rhs"), done.stdout
    found = json.loads(command("dump", module, "--json").stdout)
    assert {program["profile"] for program in found["programs"]} == set(default_targets())
    code = command("dump", module, "--disassemble").stdout
    assert "OpFMul" in code and "multiply" in code and "__kernel" in code and "call_import @hal.execute" in code


def test_dump_shows_what_stands_beside_programs(command: Command) -> None:
    lines = command("dump", GOLDEN / "v1.0-everything.fb").stdout.splitlines()
    for line in (
        "  model.name: everything",
        "  icon: hex 89504e470d0a",
        "    task: multiplication",
        "  tuned.for: spirv",
        "  custom segment org.example.tokens: 12 bytes",
        "attachment NOTE: 15 bytes",
        "section appended: 17 bytes",
    ):
        assert line in lines, line
    found = json.loads(command("dump", GOLDEN / "v1.0-everything.fb", "--json", "--verify").stdout)
    assert {row["kind"] for row in found["segments"]} == {"constant", "executable", "debug", "custom"}
    assert [row["chunks"] for row in found["segments"] if row["kind"] == "constant"] == [1]
    assert [row["tag"] for row in found["attachments"]] == ["NOTE", "MORE"]
    assert found["programs"][0]["bytecode"] == "1.0"


def test_a_module_inside_of_another_file(command: Command, tmp_path: Path) -> None:
    data = (GOLDEN / "v1.0-simple_mul.fb").read_bytes()
    (tmp_path / "app.apk").write_bytes(b"another entry" + data + b"the end")
    part = ("app.apk", "--offset=13", f"--length={len(data)}")
    done = command("run", *part, *INPUTS, "--expected-output=4xf32=10,40,90,160")
    assert done.returncode == 0 and "1 of 1 results are as expected" in done.stdout, done.stderr
    assert "simple_mul" in command("dump", *part).stdout
    assert command("bench", *part, "--seconds=0.01").returncode == 0
    for name in ("run", "dump", "bench"):
        done = command(name, "app.apk", "--offset=13", "--length=999999")
        assert done.returncode == 1 and "app.apk: offset 13 and length 999999 are no part of a file of" in done.stderr
    done = command("run", *part, "--replay=x")
    assert done.returncode == 2 and "--replay and --offset cannot be combined" in done.stderr


def test_run_tells_of_programs_that_were_passed_over(command: Command, tmp_path: Path) -> None:
    (tmp_path / "later.fb").write_bytes(files()["another program's bytecode"].data)
    done = command("run", "later.fb")
    note = "vm-run: note: program later was passed over: wants bytecode 1.9, this version runs up to 1.0"
    assert done.stderr.splitlines() == [note]
    assert (done.returncode, done.stdout) == (0, "result[0]: 7\n"), "a function of the VM alone gives numbers"


def test_assembler_goes_there_and_back(module: Path, command: Command, tmp_path: Path) -> None:
    assert command("asm", "--disassemble", module, "-o", "m.vmasm").returncode == 0
    assert command("asm", "m.vmasm", "-o", "again.fb").returncode == 0
    assert (tmp_path / "again.fb").read_bytes() == module.read_bytes()


@pytest.mark.parametrize("phase", ["input", "stablehlo", "flow", "hl_seq", "ll_seq", "executables", "bytecode"])
def test_every_phase_continues_to_the_same_bytes(phase: str, module: Path, command: Command, tmp_path: Path) -> None:
    done = command("compile", SIMPLE_MUL, f"--compile-to={phase}", "-o", "phase.mlir")
    assert done.returncode == 0, done.stderr
    done = command("compile", "phase.mlir", f"--compile-from={phase}", "-o", "again.fb")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.fb").read_bytes() == module.read_bytes()


def test_dump_phases_and_print_ir(command: Command, tmp_path: Path) -> None:
    done = command("compile", SIMPLE_MUL, "-o", "m.fb", "--dump-phases=phases", "--print-ir-after=cse")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "phases").iterdir())) == 7
    assert "IR after cse" in done.stderr


def test_listing_libraries(command: Command) -> None:
    pytest.importorskip("scipy")
    lines = command("run", "--list-libraries").stdout.splitlines()
    assert "blas.dot: (x, y) -> sum of x y" in lines and any(line.startswith("lapack.gesv: ") for line in lines)


def test_devices_say_why_they_are_missing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    done = command("run", "--list-devices")
    assert done.returncode == 0
    assert "reference: NumPy" in done.stdout
    monkeypatch.setenv("VK_DRIVER_FILES", "/nowhere.json")
    monkeypatch.setenv("VK_ICD_FILENAMES", "/nowhere.json")
    monkeypatch.setenv("OCL_ICD_VENDORS", "/nowhere")
    done = command("run", "--list-devices")
    assert done.returncode == 0
    assert "vulkan: not available: " in done.stdout


# (arguments of vm-run after the module, exit status, words of the error)
BAD_CALLS = [
    ((), 1, ["takes 2 arguments, got 0"]),
    ((INPUTS[0],), 1, ["takes 2 arguments, got 1"]),
    ((INPUTS[0], "--input=4xf64=1"), 1, ["argument 1", "expected f32[4]", "f64[4]"]),
    ((INPUTS[0], "--input=5xf32=1"), 1, ["argument 1", "expected f32[4]", "f32[5]"]),
    ((INPUTS[0], "--input=@missing.npy"), 1, ["missing.npy", "No such file"]),
    ((INPUTS[0], "--input=4xf32=1,2"), 1, ["2 values for 4 elements"]),
    ((*INPUTS, "--function=nope"), 1, ["no function 'nope'", "simple_mul"]),
    ((*INPUTS, "--device=nope"), 1, ["no driver 'nope'", "reference"]),
    ((*INPUTS, "--device=reference:7"), 1, ["no device 'reference:7'"]),
    ((*INPUTS, "--expected-output=4xf32=1"), 1, ["not as expected", "result[0] differs in 4 of 4 elements"]),
    ((*INPUTS, "--output=@no/such/folder.npy"), 1, ["folder.npy", "could not be written"]),
    ((*INPUTS, "--nonsense"), 2, ["no flag --nonsense"]),
    ((*INPUTS, "--repeat=0"), 2, ["0 is not at least 1"]),
]


@pytest.mark.parametrize(("arguments", "status", "words"), BAD_CALLS, ids=[" ".join(row[2]) for row in BAD_CALLS])
def test_bad_calls(module: Path, command: Command, arguments: tuple[str, ...], status: int, words: list[str]) -> None:
    refused(command("run", module, *arguments), status, *words)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without named pipes")
def test_sources_and_outputs_that_are_no_files(module: Path, command: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))
    refused(command("compile", "/dev/zero", "-o", "out.fb"), 1, "is a device, not a file")
    refused(command("compile", "folder", "-o", "out.fb"), 1, "folder: no StableHLO, this is a folder")
    for source, words in (("/dev/zero", "is a device, not a file"), ("folder", "folder: is a directory, not a file")):
        refused(command("opt", source), 1, words)
        refused(command("asm", source, "-o", "out.fb"), 1, words)
        refused(command("run", module, f"--input=@{source}", INPUTS[1]), 1, words)
        refused(command("bench", module, f"--input=@{source}", INPUTS[1]), 1, words)
    for output, words in (
        ("pipe", "without a reader"),
        ("folder", "Is a directory"),
        ("no/file", "No such file"),
    ):
        refused(command("compile", SIMPLE_MUL, "-o", output), 1, output, words)
        refused(command("compile", SIMPLE_MUL, "--compile-to=flow", "-o", output), 1, output, words)
        refused(command("run", module, *INPUTS, f"--output={output}"), 1, output, words)
    refused(command("run", module, *INPUTS, "--output="), 1, "Is a directory")
    assert sorted(os.listdir(tmp_path)) == before and (tmp_path / "pipe").is_fifo()


def damaged(data: bytes, part: str) -> bytes:
    """The file with one bit of a part flipped, or its end cut off; the digests are not updated."""
    from orchestrion.schema.container import open_bytes

    file = open_bytes(data)
    directory = -(-len(file.root) // 64) * 64
    executable = next(offset for offset, size in file.spans if size)
    place = {"root": len(file.root) // 2, "directory": directory + 30, "executable": executable + 20}
    if part == "truncated":
        return data[: len(data) // 2]
    changed = bytearray(data)
    changed[place[part]] ^= 4
    return bytes(changed)


@pytest.mark.parametrize("part", ["truncated", "root", "directory", "executable"])
def test_damaged_modules_are_refused(part: str, module: Path, command: Command) -> None:
    module.write_bytes(damaged(module.read_bytes(), part))
    refused(command("run", module, "--device=reference", *INPUTS), 1, "vm-run: ")


@pytest.mark.parametrize("name", ["run", "dump"])
def test_files_that_are_no_modules(name: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.fb").touch()
    (tmp_path / "text.fb").write_text("hello, this is no module at all, whatever its name says")
    refused(command(name, "missing.fb"), 1, "missing.fb", "No such file")
    refused(command(name, "empty.fb"), 1, "not a module: 0 bytes")
    refused(command(name, "text.fb"), 1, "not a module")
    refused(command(name, "."), 1, "directory")


def test_an_unreadable_source_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text('"builtin.module"() ({ "stablehlo.nope"')
    (tmp_path / "noise.mlir").write_bytes(bytes(range(256)))
    for source in ("missing.mlir", "bad.mlir", "noise.mlir"):
        done = command("compile", source, "-o", "out.fb")
        refused(done, 1, source)
        assert not (tmp_path / "out.fb").exists()


def test_everything_unsupported_is_said_at_once(command: Command, tmp_path: Path) -> None:
    (tmp_path / "two.mlir").write_text(
        '"builtin.module"() ({ "func.func"() <{function_type = (tensor<4xf80>, tensor<4xf32>) -> tensor<4xf32>, '
        'sym_name = "f"}> ({ ^bb0(%x: tensor<4xf80>, %y: tensor<4xf32>):\n'
        '  %0 = "stablehlo.cosine"(%x) : (tensor<4xf80>) -> tensor<4xf80> loc("here")\n'
        '  %1 = "stablehlo.cholesky"(%y) : (tensor<4xf32>) -> tensor<4xf32> loc("there")\n'
        '  "func.return"(%1) : (tensor<4xf32>) -> () }) : () -> () }) : () -> ()'
    )
    done = command("compile", "two.mlir", "-o", "out.fb")
    refused(done, 1, "f80", "stablehlo.cholesky", "there")
    assert not (tmp_path / "out.fb").exists()


def test_a_full_disk_leaves_nothing_behind(command: Command, tmp_path: Path) -> None:
    small_files = ("/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh")
    done = command("compile", SIMPLE_MUL, "-o", "out.fb", prefix=small_files)
    refused(done, 1, "out.fb")
    assert not [path for path in tmp_path.iterdir() if "out.fb" in path.name]


def test_a_phase_that_cannot_be_written_is_refused(command: Command, tmp_path: Path) -> None:
    """With a full disk, and with a folder in place of the file. Earlier phases are written; nothing of this one is."""
    small_files = ("/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh")
    (tmp_path / "long.mlir").write_text("// much to read\n" * 10 + SIMPLE_MUL.read_text())
    refused(
        command("compile", "long.mlir", "-o", "out.fb", "--dump-phases=full", prefix=small_files), 1, "full/", "mlir"
    )
    (tmp_path / "taken" / "2-flow.mlir").mkdir(parents=True)
    done = command("compile", SIMPLE_MUL, "-o", "out.fb", "--dump-phases=taken")
    refused(done, 1, "taken/2-flow.mlir: could not be written")
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in (tmp_path / "taken").iterdir()) == [
        "0-input.mlir",
        "1-stablehlo.mlir",
        "2-flow.mlir",
    ]
    assert not (tmp_path / "out.fb").exists() and not list((tmp_path / "full").glob(".*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "x.fb"), ["IN"]),
        ((str(SIMPLE_MUL),), ["-o OUT is missing"]),
        (
            (str(SIMPLE_MUL), "-o", "x.fb", "--target=metal"),
            ["no target is called metal", "reference, spirv, spirv_least, opencl"],
        ),
        ((str(SIMPLE_MUL), "-o", "x.fb", "--target=spirv,spirv"), ["twice"]),
        ((str(SIMPLE_MUL), "--compile-to=flow", "--compile-from=ll_seq"), ["comes after"]),
        ((str(SIMPLE_MUL), "-o", "x.fb", "--print-ir-after=nope"), ["no pass nope"]),
    ],
)
def test_bad_command_lines_of_compile(command: Command, arguments: tuple[str, ...], words: list[str]) -> None:
    refused(command("compile", *arguments), 2, *words)


def test_opencl_c_from_elsewhere_needs_permission(module: Path, command: Command, tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    if "opencl: not available" in command("run", "--list-devices").stdout:
        pytest.skip("no OpenCL device")
    # compiled here: it may run
    assert command("run", module, *INPUTS, "--device=opencl").returncode == 0
    # as if it came from elsewhere: a store that has never seen it
    for digest in (tmp_path / "home" / "trust").iterdir():
        digest.unlink()
    refused(
        command("run", module, *INPUTS, "--device=opencl"), 1, "native code", "--allow-native-code", "another device"
    )
    assert command("run", module, *INPUTS, "--device=opencl", "--allow-native-code").returncode == 0
    for device in ("reference", "vulkan"):
        done = command("run", module, *INPUTS, f"--device={device}")
        assert done.returncode == 0 or "not available" in done.stderr or "no Vulkan" in done.stderr, done.stderr


SPIN = """
export @f
program @p profile "reference" {
  func @f () -> () { return () }
  func @init () -> () {
    %i1 = i32.const 1
    %i2 = i32.const 1000000
  ^again:
    %i0 = i32.add %i0, %i1
    %i3 = i32.lt_s %i0, %i2
    br_if %i3, ^again, ^end
  ^end:
    return ()
  }
  initializer program @init
  entry @f
}
"""


@pytest.mark.parametrize("name", ["run", "bench"])
def test_an_initializer_that_takes_too_much_is_one_line(name: str, command: Command, tmp_path: Path) -> None:
    """A module of `vm-asm` is untrusted, so it has the limits of an untrusted module, which flags raise or remove."""
    (tmp_path / "spin.asm").write_text(SPIN)
    assert command("asm", tmp_path / "spin.asm", "-o", tmp_path / "spin.fb").returncode == 0
    assert not (tmp_path / "home" / "trust").exists()
    short = ("--seconds=0.01",) if name == "bench" else ()
    refused(command(name, tmp_path / "spin.fb", *short), 1, "used up its fuel of 1000000", "--load-fuel raises it")
    for fuel in ("10000000", "inf"):
        done = command(name, tmp_path / "spin.fb", f"--load-fuel={fuel}", *short)
        assert done.returncode == 0, done.stderr
    refused(command(name, tmp_path / "spin.fb", "--load-deadline=0"), 1, "ran longer than 0.0 s")
    refused(
        command(name, tmp_path / "spin.fb", "--load-memory=x"), 2, "--load-memory: expected a whole number, got 'x'"
    )


def test_run_writes_a_trace(module: Path, command: Command, tmp_path: Path) -> None:
    done = command("run", module, *INPUTS, "--repeat=3", "--trace=out.json", "--expected-output=4xf32=10,40,90,160")
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    launches = [event for event in events if event.get("cat") == "dispatch"]
    assert [event["name"] for event in launches] == ["stablehlo.multiply"] * 3
    assert [event["args"]["location"] for event in launches] == ["simple_mul.generic.mlir:5:16"] * 3
    refused(command("run", module, *INPUTS, "--trace=no/such/out.json"), 1, "out.json", "could not be written")


def test_names_of_a_strangers_module_stay_in_their_cell() -> None:
    from orchestrion.tools import profiles
    from orchestrion.vm.profile import Command, Launch, Profile, ProfiledCall, Submission

    odd = Command("dispatch", "entry\n\x1b[2J", "x" * 1000, ("a\tb",), "\r", None, 4, None)
    call = ProfiledCall("main\n", "call", 1, 0, 10, (Submission(1, (Launch(odd, 2, 3),)),))
    text = profiles.table(Profile("p", "null", "null device", (call,)))
    assert text.count("\n") == 2 and all(character.isprintable() or character == "\n" for character in text)
    assert max(map(len, text.splitlines())) < 300
    assert profiles.table(Profile("p", "null", "null device", ())) == "nothing was launched"
