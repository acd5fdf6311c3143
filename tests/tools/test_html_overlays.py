"""The overlays of `vm-dump --html`: traces and comparisons written by `vm-run`, and files that are neither."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrion import compiler
from orchestrion.schema.decoder import open_module
from orchestrion.tools import dump, run
from orchestrion.tools.html import overlays
from orchestrion.tools.html.model import module_view

EXAMPLES = Path(__file__).parents[2] / "examples"
INPUT = f"--input=@{EXAMPLES / 'mlp_input.npy'}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module, a trace of three calls, and a comparison of the reference device with itself."""
    made = tmp_path_factory.mktemp("overlays")
    module = made / "mlp.fb"
    module.write_bytes(compiler.compile(EXAMPLES / "mlp.mlir", targets=["reference"]))
    flags = [str(module), "--device=reference", INPUT]
    assert run.main([*flags, "--repeat=3", f"--trace={made / 'trace.json'}"]) == 0
    assert run.main([*flags, "--compare=reference", f"--compare-report={made / 'comparison.json'}"]) == 0
    return made


def test_a_trace_gives_the_times_of_each_dispatch(folder: Path) -> None:
    module = open_module(folder / "mlp.fb")
    found = overlays.profile(str(folder / "trace.json"), module)
    (main,) = module_view(module, "mlp").programs[0].functions
    assert found["program"] == 0 and found["title"].startswith("reference")
    places = [":".join(map(str, node.place)) for node in main.nodes if node.kind == "dispatch"]
    assert sorted(found["places"]) == sorted(places)
    assert {row["launches"] for row in found["places"].values()} == {3}
    assert sum(row["share"] for row in found["places"].values()) == pytest.approx(1)


def test_a_comparison_gives_the_errors_of_each_entry(folder: Path) -> None:
    found = overlays.comparison(str(folder / "comparison.json"), open_module(folder / "mlp.fb"))
    assert found["title"] == "reference beside reference" and "agree" in found["text"]
    assert sorted(found["entries"]) == [f"main_dispatch_{n}" for n in range(4)]
    row = {"runs": 1, "absolute": 0.0, "relative": 0.0, "differs": False, "lines": []}
    assert all(entry == row for entry in found["entries"].values())


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_commands_of_a_recorded_loop_have_a_launch_per_iteration(device: str, tmp_path: Path) -> None:
    """While commands are timed or compared, the host follows the loop of the recording."""
    if device == "cpu":
        pytest.importorskip("llvmlite")
    path = tmp_path / "norm.fb"
    path.write_bytes(compiler.compile(EXAMPLES / "spectral_norm.mlir", targets=sorted({"reference", device})))
    matrix = "--input=4x4xf32=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"  # takes three iterations
    flags = [str(path), f"--device={device}", matrix]
    assert run.main([*flags, "--repeat=2", f"--trace={tmp_path / 't.json'}"]) == 0
    assert run.main([*flags, "--compare=reference", f"--compare-report={tmp_path / 'c.json'}"]) == 0
    module = open_module(path)
    found = overlays.profile(str(tmp_path / "t.json"), module)
    program = module_view(module, "norm").programs[found["program"]]
    main = next(row for row in program.functions if row.name == "spectral_norm")
    ((first, last),) = main.loops
    launches = {}
    for at, node in enumerate(main.nodes):
        if node.kind in ("dispatch", "copy", "fill") and node.block != 1:  # this matrix takes the other arm
            launches[":".join(map(str, node.place))] = 2 * (3 if first <= at <= last else 1)
    assert {place: row["launches"] for place, row in found["places"].items()} == launches
    entries = overlays.comparison(str(tmp_path / "c.json"), module)["entries"]
    runs = {f"spectral_norm_dispatch_{number}": 3 if number in (3, 4, 5) else 1 for number in range(7)}
    assert {name: row["runs"] for name, row in entries.items()} == runs | {"spectral_norm_dispatch_2": 4}


def test_the_page_has_both(folder: Path, tmp_path: Path) -> None:
    flags = [f"--profile={folder / 'trace.json'}", f"--compare={folder / 'comparison.json'}"]
    assert dump.main([str(folder / "mlp.fb"), f"--html={tmp_path / 'm.html'}", *flags]) == 0
    text = (tmp_path / "m.html").read_text("utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert set(data["profile"]) == {"title", "program", "places"} and len(data["compare"]["entries"]) == 4


def refused(folder: Path, tmp_path: Path, flag: str, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    (tmp_path / "f.json").write_text(text)
    page = tmp_path / "m.html"
    status = dump.main([str(folder / "mlp.fb"), f"--html={page}", f"--{flag}={tmp_path / 'f.json'}"])
    assert status == 1 and not page.exists()
    return capsys.readouterr().err


def changed(path: Path, **values: Any) -> str:
    return json.dumps(json.loads(path.read_text()) | values)


def test_files_of_another_module_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = changed(folder / "comparison.json", module="00" * 32)
    assert "is of the module 0000000000000000, this one is" in refused(folder, tmp_path, "compare", text, capsys)
    about = json.loads((folder / "trace.json").read_text())["otherData"] | {"module": "00" * 32}
    text = changed(folder / "trace.json", otherData=about)
    assert "is of the module 0000000000000000, this one is" in refused(folder, tmp_path, "profile", text, capsys)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"otherData": 1, "kind": 1}', "\x00", '{"otherData": {"module": 3}}']
)
@pytest.mark.parametrize("flag", ["profile", "compare"])
def test_files_of_another_form_are_refused(
    folder: Path, tmp_path: Path, flag: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "f.json is " in refused(folder, tmp_path, flag, text, capsys)


def test_numbers_that_json_has_not_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads((folder / "comparison.json").read_text())
    found["entries"]["main_dispatch_0"]["absolute"] = float("inf")
    assert "inf is not finite" in refused(folder, tmp_path, "compare", json.dumps(found), capsys)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--profile=x"], "--profile needs --html"),
        (["--compare=x"], "--compare needs --html"),
        (["--html=x", "--json"], "--json cannot be combined with --html"),
        (["--html=x", "--disassemble"], "--disassemble cannot be combined with --html"),
    ],
)
def test_flags_that_do_not_go_together(
    folder: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        dump.main([str(folder / "mlp.fb"), *flags])
    assert message in capsys.readouterr().err


def test_a_comparison_report_needs_a_comparison(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run.main([str(folder / "mlp.fb"), INPUT, "--compare-report=x"])
    assert "--compare-report needs --compare" in capsys.readouterr().err


def test_a_damaged_module_gives_the_usual_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (folder / "mlp.fb").read_bytes()
    module = open_module(folder / "mlp.fb")
    segments = (module.variants[0].payload, module.programs[0].source_map)
    for place in (100, *(module.container.spans[segment][0] for segment in segments)):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        (tmp_path / "d.fb").write_bytes(damaged)
        assert dump.main([str(tmp_path / "d.fb"), f"--html={tmp_path / 'd.html'}"]) == 1
        error = capsys.readouterr().err
        assert error.startswith("vm-dump: ") and "digest" in error
        assert not (tmp_path / "d.html").exists()
