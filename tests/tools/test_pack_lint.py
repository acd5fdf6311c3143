"""`vm-pack lint`: a module for each rule that breaks only that rule; the report, the page, and the documentation."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.schema import writer
from orchestrion.schema.container import Attachment, build
from orchestrion.schema.container import reseal as reseal_container
from orchestrion.schema.decoder import open_module, read_module
from orchestrion.schema.layout import layout
from orchestrion.schema.rows import SegmentKind
from orchestrion.schema.structure import structure
from orchestrion.tools import pack
from orchestrion.tools.packing.linting import profiles as lint_profiles
from orchestrion.tools.packing.linting import rules as lint_rules
from orchestrion.tools.packing.linting.profiles import LINT_PROFILES, UpperBound
from orchestrion.tools.packing.linting.rules import ERROR, RULES, WARNING

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "lint.md"
GOOD = {
    "model.name": "mlp",
    "model.version": "7",
    "model.card": "# mlp\n\nTrained on nothing. See /usr/share/doc/mlp and <b>no tags</b>.",
    "model.licence": "Apache-2.0",
    "limits.memory": str(64 << 20),
    "limits.fuel": "100000",
    "limits.build-deadline": "60",
}
Rows = writer.Module
Change = Callable[[Rows], Rows]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key pair, another key, and keys files that trust them."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("publisher", "stranger"):
        assert pack.main(["keygen", "-o", str(folder / f"{name}.pem")]) == 0
        (folder / f"{name}.toml").write_text(f'[[key]]\nname = "{name}"\nfile = "{name}.pub.pem"\n')
    return folder


@pytest.fixture(scope="session")
def rows() -> Rows:
    return Compilation(targets=("reference", "spirv"), attributes=GOOD).rows(EXAMPLES / "mlp.mlir")


Make = Callable[[Rows], Path]


def sign(path: Path, home: Path, out: Path) -> None:
    assert pack.main(["sign", str(path), f"--key={home / 'publisher.pem'}", "-o", str(out)]) == 0


@pytest.fixture
def make(tmp_path: Path, home: Path) -> Make:
    """A file of rows, stripped and signed as a publisher does it."""

    def made(rows: Rows) -> Path:
        paths = [tmp_path / f"{name}.fb" for name in ("whole", "stripped", "m")]
        writer.write_file(paths[0], rows)
        assert pack.main(["strip", str(paths[0]), "-o", str(paths[1])]) == 0
        sign(paths[1], home, paths[2])
        return paths[2]

    return made


class Linted:
    """The exit status and the report."""

    def __init__(self, path: Path, *flags: str) -> None:
        out = path.with_suffix(".json")
        self.status = pack.main(["lint", str(path), f"--json={out}", *flags])
        self.report = json.loads(out.read_text())
        self.broken = {row["id"]: row for row in self.report["rules"] if row["verdict"] == "broken"}


def with_attributes(**changes: str | None) -> Change:
    """Sets attributes, or removes those that are None. In the names `__` stands for a dot and `_` for a hyphen."""

    def changed(rows: Rows) -> Rows:
        found = dict(rows.attributes)
        for name, value in changes.items():
            key = name.replace("__", ".").replace("_", "-")
            found.pop(key, None)
            if value is not None:
                found[key] = value
        return replace(rows, attributes=found)

    return changed


def with_bytecode(rows: Rows) -> Rows:
    """Replaces the first function of the last program by invalid bytecode."""
    program = rows.programs[-1]
    functions = (replace(program.functions[0], bytecode=b"\xff\xff"), *program.functions[1:])
    return replace(rows, programs=(*rows.programs[:-1], replace(program, functions=functions)))


def with_payload(rows: Rows) -> Rows:
    """Replaces the first SPIR-V shader by 64 zeros."""
    program = rows.programs[-1]
    first, *others = program.executables
    variants = [replace(row, payload=bytes(64)) for row in first.variants]
    return replace(
        rows, programs=(*rows.programs[:-1], replace(program, executables=(replace(first, variants=variants), *others)))
    )


def with_native(rows: Rows) -> Rows:
    return Compilation(targets=("reference", "spirv", "opencl"), attributes=GOOD).rows(EXAMPLES / "mlp.mlir")


def with_library(rows: Rows) -> Rows:
    return Compilation(targets=("reference",), attributes=GOOD).rows(EXAMPLES / "library_call.mlir")


def with_path(rows: Rows) -> Rows:
    return replace(rows, exports=[replace(row, doc="from /home/ann/model.py") for row in rows.exports])


#: rule -> what is changed in the rows before the file is written, stripped and signed
ROWS: dict[str, Change] = {
    "bytecode": with_bytecode,
    "device-code": with_payload,
    "native-code": with_native,
    "imports": lambda rows: replace(rows, imports=[*rows.imports, writer.Import("app.execute", "(i32) -> i32")]),
    "library-calls": with_library,
    "limits-declared": with_attributes(limits__fuel=None),
    "limits-known": with_attributes(limits__wonders="3"),
    "limits-within": with_attributes(limits__memory=str(3 << 30)),
    "licence": with_attributes(model__licence=None),
    "model-card": with_attributes(model__card=" \n"),
    "model-name": with_attributes(model__name=None),
    "model-version": with_attributes(model__version="1.0"),
    "unknown-parts": lambda rows: replace(rows, attachments=[Attachment("WHAT", b"anything")]),
    "paths": with_path,
    "custom-segments": lambda rows: replace(rows, custom={"preview": b"anything"}),
}


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def with_a_changed_constant(path: Path) -> None:
    module = open_module(path)
    ordinal = next(at for at, row in enumerate(module.segments) if row.kind == SegmentKind.Constant)
    data = bytearray(path.read_bytes())
    data[module.container.spans[ordinal][0]] ^= 1
    path.unlink()
    path.write_bytes(data)


def without_segments(path: Path) -> None:
    file = read_module(path.read_bytes()).container
    path.write_bytes(b"".join(build(file.root, [None] * len(file.spans), file.attachments)))


#: rule -> what is done to a good file
FILES: dict[str, Callable[[Path], None]] = {
    "sound": truncated,
    "digests": with_a_changed_constant,
    "complete": without_segments,
}


def unsigned(path: Path, rows: Rows, home: Path) -> None:
    whole = path.with_name("whole.fb")
    assert pack.main(["strip", str(whole), "-o", str(path)]) == 0


def with_debug_information(path: Path, rows: Rows, home: Path) -> None:
    whole = path.with_name("whole.fb")
    sign(whole, home, path)


def with_an_open_parameter(path: Path, rows: Rows, home: Path) -> None:
    """Turns a constant into a parameter without a digest, whose segment is in no file."""
    data = path.with_name("stripped.fb").read_bytes()
    module = read_module(data)
    ordinal = next(at for at, row in enumerate(module.segments) if row.kind == SegmentKind.Constant)
    vector = layout().vector("segments")
    _, tables = structure(module.container.root)
    root = bytearray(module.container.root)
    place = tables.offsets[vector.slot] + ordinal * vector.format.size
    row = module.segments[ordinal]
    changed = row._replace(digest=bytes(32), kind=SegmentKind.Parameter, chunks_start=0, chunks_end=0)
    vector.format.pack_into(root, place, *changed)
    segments = [
        None if at == ordinal or not span[0] else module.segment(at) for at, span in enumerate(module.container.spans)
    ]
    stripped = path.with_name("open.fb")
    stripped.write_bytes(reseal_container(b"".join(build(bytes(root), segments))))
    sign(stripped, home, path)


#: rule -> how another file is made of the rows, beside `whole.fb` and `stripped.fb`
REMADE: dict[str, Callable[[Path, Rows, Path], None]] = {
    "signed": unsigned,
    "debug-segments": with_debug_information,
    "open-parameters": with_an_open_parameter,
}


def small_size(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(LINT_PROFILES["app-store"], size=UpperBound(1000, "a test"))
    monkeypatch.setitem(lint_profiles.LINT_PROFILES, "app-store", small)


def test_a_good_module_breaks_no_rule(rows: Rows, make: Make, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(rows)
    for flags in ([], [f"--key={home / 'publisher.pub.pem'}"], [f"--policy={home / 'publisher.toml'}"]):
        found = Linted(path, *flags)
        assert (found.status, found.broken) == (0, {})
        assert f"m.fb passes app-store: 0 errors, 0 warnings, {len(RULES)} of {len(RULES)} rules judged" in (
            capsys.readouterr().out
        )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_each_rule_is_found_broken_alone(
    rule: lint_rules.Rule, rows: Rows, make: Make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rule of the table; a rule without a module here fails."""
    path = make(ROWS[rule.id](rows) if rule.id in ROWS else rows)
    if rule.id in FILES:
        FILES[rule.id](path)
    elif rule.id in REMADE:
        REMADE[rule.id](path, rows, home)
    elif rule.id == "size":
        small_size(monkeypatch)
    else:
        assert rule.id in ROWS
    found = Linted(path, f"--key={home / 'publisher.pub.pem'}")
    assert list(found.broken) == [rule.id]
    assert found.broken[rule.id]["findings"]
    assert found.broken[rule.id]["severity"] == rule.severity
    assert found.status == (1 if rule.severity == ERROR else 0)
    assert found.report["passed"] == (rule.severity == WARNING)


FINDINGS = {
    "digests": r"constant segment \d+ is damaged: its digest differs",
    "complete": "no program has all of its segments in this file; the module has reference, spirv",
    "bytecode": "program spirv: ",
    "device-code": "program spirv, executable .*: ",
    "native-code": "program opencl holds opencl-c",
    "imports": r"app\.execute \(i32\) -> i32",
    "library-calls": r"program reference, executable .* calls blas\.gemm",
    "limits-declared": r"limits\.fuel is not declared",
    "limits-known": r"limits\.wonders is no limit; limits are limits\.fuel, ",
    "limits-within": r"limits\.memory is 3221225472, 2147483648 is the most \(half of the memory",
    "model-version": r"the attribute model\.version is '1\.0', a whole number from 0 to",
    "unknown-parts": "attachment 'WHAT' of 8 bytes",
    "custom-segments": r"segment \d+, 'preview', 8 bytes",
    "paths": "/home/ann/model.py in the module's strings",
}


@pytest.mark.parametrize("rule", FINDINGS)
def test_what_is_said(rule: str, rows: Rows, make: Make) -> None:
    path = make(ROWS[rule](rows) if rule in ROWS else rows)
    if rule in FILES:
        FILES[rule](path)
    found = Linted(path).broken[rule]["findings"]
    assert any(re.match(FINDINGS[rule], line) for line in found), found


def test_nothing_else_is_judged_of_a_file_that_does_not_open(rows: Rows, make: Make, tmp_path: Path) -> None:
    path = make(rows)
    truncated(path)
    found = Linted(path, f"--html={tmp_path / 'page.html'}")
    assert [row["verdict"] for row in found.report["rules"]] == ["broken"] + ["not judged"] * (len(RULES) - 1)
    assert not any(row["holds"] for row in found.report["cannot"])
    assert "the file does not open" in (tmp_path / "page.html").read_text()
    assert pack.main(["lint", str(tmp_path / "nowhere.fb")]) == 1


def test_whose_signature_counts(rows: Rows, make: Make, home: Path) -> None:
    path = make(rows)
    said = Linted(path).report["module"]["signature"]
    assert re.fullmatch(
        "signed by the key [0-9a-f]{16}; not verified, since neither a policy nor a key was given", said
    )
    for flag, words in (
        (f"--key={home / 'stranger.pub.pem'}", "not signed by the key "),
        (f"--policy={home / 'stranger.toml'}", "is not in the keys file"),
    ):
        found = Linted(path, flag)
        assert list(found.broken) == ["signed"] and found.status == 1
        assert words in found.broken["signed"]["findings"][0]


def test_a_malformed_key_or_policy_is_one_line(
    rows: Rows, make: Make, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, bad = make(rows), tmp_path / "bad"
    bad.write_text("nothing")
    for flag in (f"--key={bad}", f"--policy={bad}", f"--key={tmp_path / 'none'}", f"--policy={tmp_path / 'none'}"):
        capsys.readouterr()
        assert pack.main(["lint", str(path), flag]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(SystemExit):
        pack.main(["lint", str(path), f"--key={bad}", f"--policy={bad}"])
    assert "--policy and --key cannot be combined" in capsys.readouterr().err


def test_a_detached_signature_counts(rows: Rows, make: Make, home: Path, tmp_path: Path) -> None:
    path = make(rows)
    unsigned(path, rows, home)
    detached = tmp_path / "m.sig"
    assert pack.main(["sign", str(path), f"--key={home / 'publisher.pem'}", f"--detached={detached}"]) == 0
    flags = [f"--detached={detached}", f"--key={home / 'publisher.pub.pem'}"]
    assert Linted(path, *flags).broken == {}
    assert list(Linted(path).broken) == ["signed"]
    changed = make(with_attributes(model__version="8")(rows))
    unsigned(changed, rows, home)
    assert list(Linted(changed, *flags).broken) == ["signed"]


def test_papers_only_warn_outside_of_stores(make: Make, home: Path, tmp_path: Path) -> None:
    rows = with_path(Compilation(targets=("reference",)).rows(EXAMPLES / "simple_mul.mlir"))
    bare = make(rows)
    unsigned(bare, rows, home)
    found = Linted(bare, "--profile=sideload")
    assert found.status == 0
    assert {row["severity"] for row in found.broken.values()} == {WARNING}
    assert set(found.broken) == set(LINT_PROFILES["sideload"].warnings)
    assert Linted(bare).status == 1
    assert Linted(make(with_library(rows)), "--profile=sideload").status == 1


def test_programs_that_are_not_in_the_file_do_not_count(make: Make, rows: Rows, home: Path, tmp_path: Path) -> None:
    """Thinning repairs the module: it removes the programs that may not be shipped, and the signature stays valid."""
    path = make(with_native(rows))
    assert set(Linted(path).broken) == {"native-code"}
    thinned = tmp_path / "thin.fb"
    assert pack.main(["thin", str(path), "--target=spirv,reference", "-o", str(thinned)]) == 0
    found = Linted(thinned, f"--key={home / 'publisher.pub.pem'}")
    assert found.broken == {}
    assert {row["name"]: row["in_file"] for row in found.report["module"]["programs"]} == {
        "reference": True,
        "spirv": True,
        "opencl": False,
    }


class Checked(HTMLParser):
    """Raises unless every tag is closed and the page loads and runs nothing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe", "object", "a", "form")
        assert not {name for name, _ in attrs} - {"class", "lang", "charset", "name", "content", "scope"}
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_of_a_hostile_module_is_text(make: Make, rows: Rows, tmp_path: Path) -> None:
    evil = "</pre><script>alert(1)</script><img src=x>&"
    changed = with_attributes(model__name=evil, model__card=evil, model__licence=evil, limits__fuel=evil)(rows)
    exports = [replace(row, name=evil, doc=evil) for row in changed.exports]
    programs = [replace(row, name=f"{row.name}{evil}") for row in changed.programs]
    imports = [*changed.imports, writer.Import(evil, evil)]
    path = make(replace(changed, exports=exports, programs=programs, imports=imports))
    page = tmp_path / "page.html"
    assert Linted(path, f"--html={page}").status == 1
    checked = Checked(page.read_text(encoding="utf-8"))
    assert checked.text.count("alert(1)") >= 6


def test_the_page_says_what_the_file_is(make: Make, rows: Rows, home: Path, tmp_path: Path) -> None:
    path = make(rows)
    page = tmp_path / "page.html"
    flags = [f"--html={page}", f"--key={home / 'publisher.pub.pem'}"]
    Linted(path, *flags)
    first = page.read_bytes()
    text = Checked(first.decode()).text
    module = open_module(path)
    digest = module.container.digest.hex()
    assert all(row.digest.hex() in text for row in module.segments)
    assert sha256(path.read_bytes()).hexdigest() in text
    assert all(words in text for words in ("m.fb passes app-store", "mlp, version 7", digest, "Trained on nothing."))
    assert all(rule.id in text and rule.what in text for rule in RULES)
    assert "might" not in text.partition("Rules")[0].partition("What it cannot do")[2]
    Linted(path, *flags)
    assert page.read_bytes() == first
    assert str(tmp_path) not in first.decode()


def test_json_goes_to_standard_output(make: Make, rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(rows)
    capsys.readouterr()
    assert pack.main(["lint", str(path), "--json=-"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True


def test_a_path_of_a_build_machine_is_found_wherever_it_is() -> None:
    from orchestrion.tools.packing.linting.metadata_rules import _PATH

    for path in (
        "/home/ann/a.py",
        "file:///Users/b/c",
        r"C:\\Users\\d\\e.py",
        "D:/src/x.py",
        "/tmp/x",
        "/private/var/y",
    ):
        for text in (path, f'loc("{path}":3:4)', f"at {path}:12", f"\0{path}\0"):
            assert _PATH.search(text.encode()), text
    for text in ("jit(main)/tmp/add", "a/home/b", "https://home/x", "x = /y/", "n:/", "~/home/x", "B:add/c", "/usr"):
        assert not _PATH.search(text.encode()), text


def table(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def test_the_page_of_the_documentation_has_the_tables() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rules = table([[f"`{row.id}`", row.severity, row.what, row.why, row.mend] for row in RULES])
    assert rules in page, f"the table should be\n{rules}"
    store = LINT_PROFILES["app-store"]
    assert store.size is not None
    numbers = [["size of the file, bytes", f"{store.size.value:,}", store.size.source]]
    numbers += [[f"`limits.{name}`", f"{most.value:,}", most.source] for name, most in store.limits.items()]
    assert table(numbers) in page, f"the table should be\n{table(numbers)}"
    warnings = [row.id for row in RULES if row.id in LINT_PROFILES["sideload"].warnings]
    assert " and ".join((", ".join(f"`{name}`" for name in warnings[:-1]), f"`{warnings[-1]}`")) in page.replace(
        "\n", " "
    )


def test_profiles_speak_of_rules_and_limits_that_there_are() -> None:
    from orchestrion.schema.attributes import LIMITS

    assert len({row.id for row in RULES}) == len(RULES)
    for profile in LINT_PROFILES.values():
        assert profile.warnings <= {row.id for row in RULES}
        assert {*profile.limits, *profile.required} <= set(LIMITS)


def test_it_needs_no_extra(make: Make, rows: Rows) -> None:
    """An app store's machine has only NumPy and flatbuffers."""
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('vulkan', 'pyopencl', 'jaxlib', 'scipy', 'cryptography')));"
        "from orchestrion.tools import pack; sys.exit(pack.main(['lint', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(make(rows))], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 errors" in done.stdout
