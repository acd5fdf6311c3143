"""`vm-compile` with `--attribute`, `--model-card`, `--licence`, `--model-name`, `--limit-...`: results and errors."""

import re
from pathlib import Path

import pytest

from orchestrion import compiler
from orchestrion.compiler.errors import CompileError
from orchestrion.schema.attributes import KNOWN
from orchestrion.schema.decoder import open_module, read_module
from orchestrion.tools import attributes, compile

SOURCE = Path(__file__).parents[2] / "examples" / "simple_mul.generic.mlir"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))


@pytest.fixture
def card(tmp_path: Path) -> Path:
    path = tmp_path / "card.md"
    path.write_text("# Multiplies\n\nFour numbers – no more.\n", encoding="utf-8")
    return path


def written(path: Path) -> dict[str, str | bytes]:
    module = open_module(path)
    return {module.strings[row.key]: module.attribute_value(row) for row in module.attributes}


def test_every_flag_writes_its_attribute(tmp_path: Path, card: Path) -> None:
    """One flag for each row of the table, and any other key with `--attribute`."""
    values = {"text": "a text", "amount": "7", "seconds": "2.5"}
    wanted = {key: values[row.kind] for key, row in KNOWN.items()}
    wanted |= {"model.card": card.read_text(encoding="utf-8"), "model.licence": "MIT", "author": "A=B C"}
    licence = tmp_path / "LICENCE"
    licence.write_text("MIT")
    flags = [
        "--" + key.replace("limits.", "limit-").replace(".", "-") + f"={values[row.kind]}"
        for key, row in KNOWN.items()
        if key not in ("model.card", "model.licence")
    ]
    flags += [f"--model-card={card}", f"--licence={licence}", "--attribute=author=A=B C"]
    out = tmp_path / "out.fb"
    assert compile.main([str(SOURCE), "-o", str(out), "--target=reference", *flags]) == 0
    assert written(out) == wanted


def test_the_same_attributes_give_the_same_bytes(tmp_path: Path, card: Path) -> None:
    outs = [tmp_path / "a.fb", tmp_path / "b.fb"]
    for out in outs:
        arguments = [str(SOURCE), "-o", str(out), "--target=reference", f"--model-card={card}", "--model-version=3"]
        assert compile.main(arguments) == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()
    text = SOURCE.read_text()
    given = {"model.card": card.read_text(encoding="utf-8"), "model.version": "3"}
    assert compiler.compile(text, targets=["reference"], attributes=given)
    compiler.compile_to_file(SOURCE, outs[1], targets=["reference"], attributes=given)
    assert outs[0].read_bytes() == outs[1].read_bytes()


REFUSED = {
    "--model-version=1.2": (2, "model.version is '1.2', a whole number from 0"),
    "--model-version=-1": (2, "model.version is '-1'"),
    "--model-version=9223372036854775808": (2, "model.version is '9223372036854775808'"),
    "--model-name=": (2, "model.name is '', a text that is not empty expected"),
    "--limit-fuel=many": (2, "limits.fuel is 'many', a whole number"),
    "--limit-build-deadline=0": (2, "limits.build-deadline is '0', a number of seconds above 0"),
    "--attribute=limits.feul=3": (2, "limits.feul is no limit; limits are limits.fuel, "),
    "--attribute=limits.fuel=3.5": (2, "limits.fuel is '3.5'"),
    "--attribute=novalue": (2, "--attribute=novalue: KEY=VALUE expected"),
    "--attribute==x": (2, "KEY=VALUE expected"),
    "--model-card=missing.md": (1, "missing.md: No such file"),
    "--licence=binary": (1, "--licence=binary: no UTF-8 text: invalid start byte at byte 1"),
    "--licence=nul": (1, "--licence=nul: no text: it holds a NUL"),
    "--licence=long": (1, "--licence=long: 1048577 bytes, the limit of an attribute is 1048576"),
}


@pytest.mark.parametrize("flag", REFUSED)
def test_what_is_refused(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on standard error, and no file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"a\xff")
    (tmp_path / "nul").write_bytes(b"a\0")
    (tmp_path / "long").write_bytes(b"a" * (attributes.MAX_BYTES + 1))
    status, words = REFUSED[flag]
    arguments = [str(SOURCE), "-o", "out.fb", "--target=reference", flag]
    if status == 2:
        with pytest.raises(SystemExit) as ended:
            compile.main(arguments)
        assert ended.value.code == 2
    else:
        assert compile.main(arguments) == status
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out.fb").exists()


def test_a_key_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (["--attribute=a=1", "--attribute=a=2"], ["--model-name=a", "--attribute=model.name=b"]):
        with pytest.raises(SystemExit):
            compile.main([str(SOURCE), "-o", "never.fb", *flags])
        assert "is given twice" in capsys.readouterr().err


def test_the_text_of_a_phase_has_no_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compile.main([str(SOURCE), "--compile-to=flow", "--model-name=x"])
    assert "model.name: the text of a phase holds no attributes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model.version": "x"}, "model.version is 'x'"),
        ({"limits.speed": "1"}, "limits.speed is no limit"),
        ({"model.card": b"x"}, "model.card is 1 bytes, a text that is not empty expected"),
        ({"limits.fuel": b"3"}, "limits.fuel is 1 bytes, a whole number"),
        ({"a\0": "b"}, "holds a NUL"),
        ({"a": 3}, "attribute 'a' is 3, a text or bytes expected"),
        ({"": "b"}, "an empty key"),
    ],
)
def test_python_refuses_the_same(given: dict[str, str], words: str) -> None:
    with pytest.raises(CompileError, match=words):
        compiler.compile(SOURCE, targets=["reference"], attributes=given)


def test_python_writes_the_same() -> None:
    given: dict[str, str | bytes] = {"model.name": "m", "x": "", "y": b"\xff"}
    module = read_module(compiler.compile(SOURCE, targets=["reference"], attributes=given))
    assert {module.strings[row.key]: module.attribute_value(row) for row in module.attributes} == given


def test_the_page_lists_what_a_module_says_of_itself() -> None:
    page = (SOURCE.parents[1] / "docs" / "lint.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(model\.\w+)` \| `(--[\w-]+)=\w+` \| (.*) \|$", page, re.MULTILINE)
    flags = {key: "--" + key.replace(".", "-") for key in KNOWN} | {"model.licence": "--licence"}
    assert rows == [(key, flags[key], row.doc) for key, row in KNOWN.items() if key.startswith("model.")]
