"""The digits of examples/microcontroller on an emulated Cortex-M4, and what its code needs of flash and RAM."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler.driver import compile
from orchestrion.tools import codegen

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "microcontroller"
DIGITS = FOLDER / "digits.mlir"
COMPILER = "arm-none-eabi-gcc"
TOOLS = (COMPILER, "qemu-system-arm", "make")
#: what is printed in docs/microcontrollers.md
RIGHT = 342


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the built example."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("microcontroller")
    command = folder / "vm-codegen"
    run = "import sys; from orchestrion.tools.codegen import main; sys.exit(main())"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{run}' \"$@\"\n")
    command.chmod(0o755)
    made = make(folder)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    given = [f"BUILD={folder}", f"VM_CODEGEN={folder / 'vm-codegen'}", *arguments]
    return subprocess.run(["make", "-C", str(FOLDER), *given], capture_output=True, text=True, timeout=120)


def test_digits_are_classified_on_a_microcontroller(built: Path) -> None:
    ended = make(built, "report")
    said = ended.stdout
    assert ended.returncode == 0, said + ended.stderr
    assert f"right: {RIGHT} of 360" in said, said
    counts = [int(count) for count in re.findall(r"kernel_\w+: (\d+) instructions", said)]
    (total,) = re.findall(r"digit: (\d+) instructions", said)
    assert len(counts) == 5 and sum(counts) <= int(total) < 250_000
    report = said[said.index("kernel  ") :]
    assert [int(count) for count in re.findall(r"^kernel_\w+ +\d+ +\d+ +\d+ +(\d+)", report, re.M)] == counts


def test_the_linker_enforces_the_flash(built: Path, tmp_path: Path) -> None:
    """The limits of the linker script, with less memory."""
    script = (FOLDER / "digits.ld").read_text()
    assert "LENGTH = 256K" in script and "LENGTH = 64K" in script
    small = tmp_path / "small.ld"
    small.write_text(script.replace("LENGTH = 256K", "LENGTH = 16K"))
    ended = subprocess.run(
        [COMPILER, "-mcpu=cortex-m4", "-mthumb", "-O2", f"-I{built}", f"-I{FOLDER}", str(FOLDER / "main.c"),
         str(built / "digits.c"), "-nostartfiles", f"-T{small}", "-o", str(tmp_path / "small.elf")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode != 0 and "region `flash' overflowed" in ended.stderr


def test_the_report_counts_code_and_constants(built: Path) -> None:
    report = (built / "report.txt").read_text()
    rows = {line.split()[0]: line.split()[1:4] for line in report.splitlines() if line.startswith("kernel_")}
    assert len(rows) == 5 and all(int(code) > 0 for _, code, _ in rows.values())
    constants, code, memory = (int(x) for x in re.findall(r"^program +(\d+) +(\d+) +(\d+)", report, re.M)[0])
    assert f"flash {constants + code} bytes of 262144, RAM {memory} bytes of 65536" in report
    assert constants >= sum(int(row[0]) for row in rows.values()) and code < 8 << 10 and memory < 4 << 10


def images() -> tuple[np.ndarray, np.ndarray]:
    """The images and classes that the example compiles in."""
    text = (FOLDER / "test_digits.h").read_text()
    rows = [row.split(",") for row in re.findall(r"^  \{([^}]*)\}", text, re.M)]
    classes = text[text.index("test_classes[TEST_DIGITS] =") :].split("{")[1].split("}")[0].split(",")
    return np.array(rows, np.int8).reshape(-1, 1, 8, 8, 1), np.array(classes, np.uint8)


def test_the_accuracy_is_that_of_the_reference_device() -> None:
    given, classes = images()
    with vm.load(compile(DIGITS, targets="reference"), device="reference") as program:
        found = [program.main(image)[0].argmax() for image in given]
    assert (np.array(found) == classes).sum() == RIGHT


def test_initializers_run_when_code_is_generated(tmp_path: Path) -> None:
    """Sums of weights are constants for a microcontroller; elsewhere init computes such values."""
    bodies = {}
    for machine in ("mcu", "cpu"):
        flags = ["--style=c", "--quiet", f"--machine={machine}", "-o", str(tmp_path / machine)]
        assert codegen.main([str(DIGITS), *flags]) == 0
        code = (tmp_path / machine / "digits.c").read_text()
        bodies[machine] = code.partition("int digits_init(")[2].partition("\n}\n")[0]
    assert "recording" in bodies["cpu"] and "recording" not in bodies["mcu"]


def test_a_budget_that_is_not_met_names_the_largest_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--style=c", "--quiet", "--machine=mcu", "-o", str(tmp_path / "out")]
    assert codegen.main([str(DIGITS), *flags, "--flash=4096", "--ram=1024"]) == 1
    said = capsys.readouterr().err
    assert re.search(
        r"digits: needs \d+ bytes of flash, the machine has 4096; most by kernel_main_dispatch_3 \d+", said
    )
    assert re.search(r"digits: needs \d+ bytes of RAM, the machine has 1024; most by kernel_main_dispatch_2 \d+", said)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flag", ["--flash=1", "--ram=1", "--cc=gcc", "--report=x", "--counts=x"])
def test_flags_that_only_style_c_has(flag: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        codegen.main([str(ROOT / "examples" / "mlp.mlir"), "--style=hal", flag, "-o", str(tmp_path / "out")])


def test_a_compiler_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        codegen.main([str(DIGITS), "--style=c", "--flash=99999", "--cc=no-such-compiler", "-o", str(tmp_path / "out")])
    assert "--cc: no-such-compiler" in capsys.readouterr().err


@pytest.mark.parametrize("language", [["-std=c99", "-x", "c"], ["-std=c++11", "-x", "c++"]], ids=["c", "c++"])
def test_the_code_on_this_processor(language: list[str], tmp_path: Path) -> None:
    """It compiles without warnings, tells of each kernel, and computes what the reference device computes."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    assert codegen.main([str(DIGITS), "--style=c", "--machine=mcu", "--quiet", "-o", str(tmp_path)]) == 0
    given, _ = images()
    (tmp_path / "main.c").write_text(_HOST.replace("PIXELS", ", ".join(map(str, given[:4].reshape(-1)))))
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off", "-O2", "-Ddigits_TRACE=count"]
    files = [str(tmp_path / name) for name in ("main.c", "digits.c")]
    subprocess.run(["gcc", *language, *strict, *files, "-o", str(tmp_path / "run")], check=True)
    lines = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=True).stdout.splitlines()
    with vm.load(compile(DIGITS, targets="reference"), device="reference") as program:
        wanted = [program.main(image).reshape(-1).tolist() for image in given[:4]]
    assert [[int(x) for x in line.split()] for line in lines[:4]] == wanted
    assert lines[4:] == ["20 kernels"]


_HOST = r"""
#include <stdio.h>
#include <stdlib.h>
#include "digits.h"

#ifdef __cplusplus
extern "C" {
#endif
void count(const char *kernel, int ends);
#ifdef __cplusplus
}
#endif

static int began, ended;

void count(const char *kernel, int ends)
{
  *(ends ? &ended : &began) += kernel != NULL;
}

int main(void)
{
  static const int8_t pixels[4 * 64] = {PIXELS};
  char *memory = (char *)malloc(digits_MEMORY_BYTES + 64);
  int8_t scores[10];
  digits_context context;
  digits_inputs inputs;
  digits_outputs outputs;
  int i, j;
  if (digits_init(&context, memory + (64 - (uintptr_t)memory % 64), digits_MEMORY_BYTES, NULL) != digits_OK)
    return 1;
  outputs.result0.data = scores;
  for (i = 0; i < 4; ++i) {
    inputs.arg0.data = pixels + 64 * i;
    if (digits_run(&context, &inputs, &outputs) != digits_OK)
      return 2;
    for (j = 0; j < 10; ++j)
      printf("%d ", scores[j]);
    printf("\n");
  }
  printf("%d kernels\n", began == ended ? ended : -1);
  digits_fini(&context);
  free(memory);
  return 0;
}
"""
