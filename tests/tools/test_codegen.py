"""vm-codegen: its input, its files and what it refuses. `tests/codegen` runs what the styles write."""

from pathlib import Path

import pytest

from orchestrion.compiler.codegen.styles import STYLES
from orchestrion.compiler.driver import EMBEDDED, EMBEDDED_NAME, Compilation
from orchestrion.compiler.errors import ArgumentValueError
from orchestrion.schema.decoder import read_module
from orchestrion.schema.writer import write
from orchestrion.tools import codegen, compile, pack

SIMPLE_MUL = Path(__file__).parents[2] / "examples" / "simple_mul.generic.mlir"


@pytest.fixture
def embedding(tmp_path: Path) -> Path:
    """simple_mul for target cpu, with its IR."""
    path = tmp_path / "embedding.fb"
    assert compile.main([str(SIMPLE_MUL), "-o", str(path), "--target=cpu", "--embed-ir", "--quiet"]) == 0
    return path


def test_a_module_keeps_its_ir_where_that_is_wanted() -> None:
    job = Compilation(targets=("cpu",), embed_ir=True)
    module = read_module(write(job.rows(SIMPLE_MUL)))
    kept = module.debug(EMBEDDED_NAME)
    assert kept is not None and bytes(kept).decode() == job.text(SIMPLE_MUL, EMBEDDED)
    assert read_module(write(Compilation(targets=("cpu",)).rows(SIMPLE_MUL))).debug(EMBEDDED_NAME) is None


def test_ir_that_is_not_there_cannot_be_kept() -> None:
    with pytest.raises(ArgumentValueError, match="phase bytecode has no IR of phase executables to embed"):
        Compilation(start="bytecode", embed_ir=True)


def test_a_module_without_ir_is_refused(embedding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stripped = tmp_path / "stripped.fb"
    assert pack.main(["strip", str(embedding), "-o", str(stripped)]) == 0
    assert codegen.main([str(stripped), "--style=c", "-o", str(tmp_path / "out")]) == 1
    assert "segment" in capsys.readouterr().err
    plain = tmp_path / "plain.fb"
    assert compile.main([str(SIMPLE_MUL), "-o", str(plain), "--target=cpu", "--quiet"]) == 0
    assert codegen.main([str(plain), "--style=c", "-o", str(tmp_path / "out")]) == 1
    assert "plain.fb: has no IR: compile it with --embed-ir" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_page_describes_every_style() -> None:
    page = (Path(__file__).parents[2] / "docs" / "codegen.md").read_text(encoding="utf-8")
    assert all(f"## Style `{name}`" in page for name in STYLES)


def test_a_module_and_its_source_give_the_same_code(embedding: Path, tmp_path: Path) -> None:
    folders = tmp_path / "module", tmp_path / "source"
    for source, folder in zip((embedding, SIMPLE_MUL), folders, strict=True):
        assert codegen.main([str(source), "--style=c", "--name=m", "--quiet", "-o", str(folder)]) == 0
    first, second = ((folder / "m.c").read_text().partition("#include")[2] for folder in folders)
    assert first == second and "m_run" in first


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--style=c", "--target=cpu"], "--target has no effect: "),
        (["--style=c", "--compile-from=flow"], "--compile-from has no effect: "),
        (["--style=c", "--name=2x"], "--name=2x is not made of letters, digits and underscores behind a letter"),
        (["--style=c", "--counts=x.txt"], "--counts has no effect without --report"),
        (["--style=c", "--cc=gcc"], "--cc has no effect without --report or --flash"),
        (["--style=hal", "--flash=1"], "--flash has no effect on style hal"),
        (["--style=pascal"], "--style: no 'pascal': there are "),
        (["--style=c", "--weights=cloud"], "--weights: no 'cloud': there are array, file"),
        (["--style=c", "--limits=least"], "--limits has no effect on style c"),
        (["--style=hal", "--machine=gpu"], "--machine has no effect: "),
    ],
)
def test_wrong_flags(embedding: Path, flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        codegen.main([str(embedding), *flags, "-o", str(embedding.parent / "out")])
    assert ended.value.code == 2 and said in capsys.readouterr().err


def test_a_file_name_that_is_no_identifier_needs_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "my-model.mlir"
    source.write_bytes(SIMPLE_MUL.read_bytes())
    with pytest.raises(SystemExit):
        codegen.main([str(source), "--style=c", "-o", str(tmp_path)])
    assert "the name of the input, my-model, is not made of letters" in (said := capsys.readouterr().err)
    assert said.rstrip().endswith(": give a --name")


def test_nothing_is_left_behind_where_a_file_cannot_be_written(
    embedding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    (folder / "m.c").mkdir(parents=True)
    assert codegen.main([str(embedding), "--style=c", "--name=m", "--quiet", "-o", str(folder)]) == 1
    assert "m.c: is a folder" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["m.c"]


def test_hal_code_of_some_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The programs of a module for `--target`, or all."""
    module, out = tmp_path / "simple_mul.fb", tmp_path / "out"
    assert compile.main([str(SIMPLE_MUL), "-o", str(module), "--target=reference,spirv", "--quiet"]) == 0
    capsys.readouterr()
    assert codegen.main([str(module), "--style=hal", "-o", str(out)]) == 0
    payloads = ("simple_mul.simple_mul_dispatch_0.spv", "simple_mul.simple_mul_dispatch_0.tensors")
    assert capsys.readouterr().err == f"{out}: {', '.join(('simple_mul.py', *payloads))}\n"
    some = tmp_path / "some"
    assert codegen.main([str(module), "--style=hal", "--target=vulkan", "--name=app", "-o", str(some), "--quiet"]) == 0
    assert sorted(path.name for path in some.iterdir()) == ["app.py", "app.simple_mul_dispatch_0.spv"]
    assert codegen.main([str(module), "--style=hal", "--target=opencl", "-o", str(some)]) == 1
    assert "simple_mul.fb: has no program for target opencl, only for reference, spirv" in capsys.readouterr().err


def test_hal_code_of_a_text_is_that_of_its_module(tmp_path: Path) -> None:
    module, one, other = tmp_path / "simple_mul.fb", tmp_path / "one", tmp_path / "other"
    assert compile.main([str(SIMPLE_MUL), "-o", str(module), "--target=reference", "--quiet"]) == 0
    assert codegen.main([str(module), "--style=hal", "-o", str(one), "--quiet"]) == 0
    assert codegen.main([str(SIMPLE_MUL), "--style=hal", "--target=reference", "-o", str(other), "--quiet"]) == 0
    texts = [(folder / "simple_mul.py").read_text() for folder in (one, other)]
    assert texts[0].replace("simple_mul.fb", SIMPLE_MUL.name) == texts[1]


def test_hal_code_of_a_damaged_module_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "simple_mul.fb"
    assert compile.main([str(SIMPLE_MUL), "-o", str(module), "--target=reference", "--quiet"]) == 0
    data = bytearray(module.read_bytes())
    data[len(data) // 3] ^= 0xFF
    module.write_bytes(data)
    assert codegen.main([str(module), "--style=hal", "-o", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists() and "Traceback" not in capsys.readouterr().err


def test_vulkan_code_of_a_machine_and_of_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(__file__).parents[2] / "examples" / "matmul_static.mlir"
    module = tmp_path / "m.fb"
    flags = ["--target=spirv", "--machine=gpu,cpu", "--embed-ir", "--quiet"]
    assert compile.main([str(source), "-o", str(module), *flags]) == 0

    def code(path: Path, *flags: str) -> str:
        given = [str(path), "--style=vulkan", "--name=m", "--quiet", "-o", str(tmp_path / "out"), *flags]
        assert codegen.main(given) == 0
        return (tmp_path / "out" / "m.c").read_text().partition("#include")[2]

    best = code(source)
    assert best == code(module) == code(module, "--machine=gpu") == code(source, "--machine=gpu", "--limits=least")
    assert best != code(module, "--machine=cpu") == code(source, "--machine=cpu")
    plain = tmp_path / "plain.fb"
    assert compile.main([str(source), "-o", str(plain), "--target=spirv", "--embed-ir", "--quiet"]) == 0
    assert codegen.main([str(plain), "--style=vulkan", "--machine=gpu", "-o", str(tmp_path / "none")]) == 1
    assert "has no program for target spirv and machine gpu, only for cpu" in capsys.readouterr().err
