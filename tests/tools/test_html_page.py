"""The page of `vm-dump --html` in headless Chromium: its contents, its drawing, its keys, and its safety."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, missing

from orchestrion import compiler
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.disassembler import disassemble
from orchestrion.schema.writer import write
from orchestrion.tools import dump
from orchestrion.tools.html.model import FunctionView, ModuleView, module_view
from orchestrion.tools.html.page import page
from orchestrion.tools.html.values import OPERATIONS

EXAMPLES = Path(__file__).parents[2] / "examples"
LAYERS = 250
#: each of these would run if a name were taken for HTML, or ended the script element that holds the data
HOSTILE = (
    "</script><script>globalThis.hacked = 1</script>",
    "<img src=x onerror='globalThis.hacked = 2'>",
    "'\"`${globalThis.hacked = 3}<!--<script>",
)
#: the most elements of nodes while the graph is scrolled through in that many steps
SCROLLED = """((steps) => {
  const scroller = document.getElementById("scroller");
  let most = 0;
  for (let at = 0; at <= steps; at++) {
    scroller.scrollTop = (at / steps) * scroller.scrollHeight;
    orchestrion.drawGraph();
    most = Math.max(most, document.querySelectorAll(".node").length);
  }
  return most;
})(arguments[0])"""
#: sets an input or a select, as its user does
SET = """((query, value) => {
  const input = document.querySelector(query);
  input.value = value;
  input.dispatchEvent(new Event("change"));
})(arguments[0], arguments[1])"""

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


def network(layers: int) -> str:
    """A network of residual layers with two dispatches each."""
    row, square = "tensor<8x16xf32>", "tensor<16x16xf32>"
    dot = f"%w, contracting_dims = [1] x [0] : ({row}, {square}) -> {row}"
    lines = [f"%x0 = stablehlo.add %x, %x : {row}"]
    for n in range(layers):
        lines += (
            f"%h{n} = stablehlo.dot_general %x{n}, {dot}",
            f"%t{n} = stablehlo.tanh %h{n} : {row}",
            f"%y{n} = stablehlo.dot_general %t{n}, {dot}",
            f"%x{n + 1} = stablehlo.add %y{n}, %x{n} : {row}",
        )
    body = "\n  ".join([*lines, f"return %x{layers} : {row}"])
    return f"func.func @main(%x: {row}, %w: {square}) -> {row} {{\n  {body}\n}}"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> ModuleView:
    return module_view(read_module(compiler.compile(network(LAYERS), targets=["reference"])), "large.fb")


def written(folder: Path, view: ModuleView, laid_over: dict[str, Any] | None = None) -> Path:
    path = folder / "page.html"
    path.write_text(page(view, laid_over or {}), "utf-8")
    return path


def facts(browser: Browser) -> dict[str, int]:
    """The numbers that the page shows."""
    found = browser.run("({...document.documentElement.dataset})")
    return {key: int(value) for key, value in found.items() if value.isdigit()}


def elements(browser: Browser) -> int:
    return int(browser.run("document.querySelectorAll('.node').length"))


def repeated(view: FunctionView, times: int) -> FunctionView:
    """The function applied that many times in sequence."""
    size = len(view.nodes)
    edges = [[a + size * n, b + size * n, *rest] for n in range(times) for a, b, *rest in view.edges]
    edges += [[size * n - 1, size * n, 0, []] for n in range(1, times)]
    ranges = [
        replace(row, writer=row.writer + size * n, spans=[(a + size * n, b + size * n) for a, b in row.spans])
        for n in range(times)
        for row in view.ranges
    ]
    return replace(view, nodes=view.nodes * times, edges=edges, ranges=ranges)


def test_500_dispatches_open_without_a_request_or_a_complaint(
    browser: Browser, large: ModuleView, tmp_path: Path
) -> None:
    path = written(tmp_path, large)
    browser.open(path)
    assert browser.requests() == [path.as_uri()]
    found = facts(browser)
    assert found["nodes"] == 2 * LAYERS + 3, "a dispatch for the first add, arguments and results"
    assert found["edges"] >= found["nodes"] - 1
    assert browser.log() == []


def test_of_2000_dispatches_those_in_sight_are_there(browser: Browser, large: ModuleView, tmp_path: Path) -> None:
    (program,) = large.programs
    main = repeated(program.functions[0], 4)
    browser.open(written(tmp_path, replace(large, programs=[replace(program, functions=[main])])))
    found = facts(browser)
    assert found["nodes"] == len(main.nodes) > 2000
    assert found["steps"] <= 4 * (len(main.nodes) + len(main.edges)), "the layout is linear in nodes and edges"
    most = browser.run(SCROLLED, 20)
    assert 5 <= most <= 40
    browser.press("End")
    assert facts(browser)["chosen"] == len(main.nodes) - 1
    assert browser.run("document.getElementById('scroller').getAttribute('aria-activedescendant')") == (
        f"node-{len(main.nodes) - 1}"
    )
    assert browser.run(f"Boolean(document.getElementById('node-{len(main.nodes) - 1}'))")
    browser.press("2")
    assert facts(browser)["ranges"] <= 400, "ranges out of sight are not drawn"


def test_keys_choose_search_and_open_code(browser: Browser, large: ModuleView, tmp_path: Path) -> None:
    browser.open(written(tmp_path, large))
    browser.press("Down", "j", "j", "k")
    assert facts(browser)["chosen"] == 1
    browser.press("/", *"tanh")
    assert facts(browser)["found"] == LAYERS
    assert browser.run("document.getElementById('found').textContent") == f"{LAYERS} found"
    browser.press("Enter")
    first = facts(browser)["chosen"]
    browser.press("Escape", "/", *"tanh", "Enter", "Escape")
    assert facts(browser)["chosen"] > first, "Enter goes to the next match"
    assert facts(browser)["found"] == 0, "Escape leaves the search"
    browser.press("Enter")
    browser.wait("document.documentElement.dataset.code !== undefined")
    assert "dot_general" in browser.run("document.getElementById('text').textContent")
    browser.press("1", "Escape")
    assert browser.run("document.documentElement.dataset.chosen") == ""
    browser.press("?")
    assert browser.run("document.getElementById('help').open")


def test_details_name_ops_line_tensors_and_neighbours(browser: Browser, tmp_path: Path) -> None:
    module = read_module(compiler.compile(EXAMPLES / "mlp.mlir", targets=["reference"]))
    browser.open(written(tmp_path, module_view(module, "mlp.fb")))
    browser.press("Down", "Down")
    text = browser.run("document.getElementById('details').innerText")
    for part in ("dot_general, broadcast_in_dim, add, tanh", "examples/mlp.py:33:22", "512 × 1 × 1", "8x64xf32"):
        assert part in text
    assert "#0 arguments" in text and "#2 dot_general" in text
    label = browser.run("document.getElementById('node-1').getAttribute('aria-label')")
    assert label.startswith("1: dot_general, 8x64xf32") and "mlp.py:33:22" in label
    browser.press("2")
    usage = browser.run("document.getElementById('usage').textContent")
    assert usage == "2 values in 4,096 bytes; at most 4,096 bytes (100 %) needed at once, at #2"


@pytest.mark.parametrize(
    ("target", "reads"), [("reference", ("branch reads", "loop reads")), ("opencl", ("host reads",) * 2)]
)
def test_predicates_say_who_reads_them(browser: Browser, tmp_path: Path, target: str, reads: tuple[str, str]) -> None:
    module = read_module(compiler.compile(EXAMPLES / "spectral_norm.mlir", targets=[target]))
    view = module_view(module, "norm.fb")
    browser.open(written(tmp_path, view))
    (main,) = view.programs[0].functions
    for at, text in zip((at for at, node in enumerate(main.nodes) if node.kind == "read"), reads, strict=True):
        browser.press("Home", *["j"] * at)
        assert browser.run("document.querySelector('#details h2').textContent") == f"#{at} {text}"
        details = browser.run("document.getElementById('details').innerText")
        assert "what it writes is read by" not in details and "reads what these wrote" in details
        host = browser.run(f"document.getElementById('node-{at}').classList.contains('host')")
        assert host == (target == "opencl")
    (loop,) = browser.run("orchestrion.state.layout.loops.map((row) => row.slice(0, 2))")
    assert loop == list(main.loops[0])
    assert len(browser.run("orchestrion.state.layout.bands")) == 7
    assert browser.log() == []


def test_names_of_a_stranger_are_text(browser: Browser, tmp_path: Path) -> None:
    text = disassemble(read_module(compiler.compile(EXAMPLES / "simple_mul.mlir", targets=["reference"])))
    quoted = ['"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in HOSTILE]
    for name, hostile in (("simple_mul_dispatch_0", quoted[0]), ("simple_mul", quoted[1]), ("reference", quoted[2])):
        text = text.replace(f"@{name} ", f"@{hostile} ").replace(f"@{name}\n", f"@{hostile}\n")
    text = text.replace('producer "orchestrion"', f"producer {quoted[0]}\nattribute {quoted[1]} = {quoted[2]}")
    view = module_view(read_module(write(assemble(text))), HOSTILE[0])
    names = {
        view.programs[0].name,
        view.programs[0].executables[0].name,
        view.about["producer"],
        *view.about["attributes"],
    }
    assert names == set(HOSTILE)
    path = written(tmp_path, view)
    assert path.read_text("utf-8").count("</script>") == 2, "the data's and the script's"
    browser.open(path)
    browser.press("Down", "Down", "2", "3", "Down", "4")
    assert browser.run("globalThis.hacked === undefined")
    assert browser.run("document.scripts.length") == 2 and browser.run("document.images.length") == 0
    assert browser.run("document.querySelector('h1').textContent") == HOSTILE[0]
    assert HOSTILE[1] in browser.run("document.getElementById('module').textContent")
    assert browser.log() == []


def test_the_policy_refuses_other_scripts_and_requests(browser: Browser, large: ModuleView, tmp_path: Path) -> None:
    path = written(tmp_path, large)
    path.write_text(
        path.read_text("utf-8").replace(
            "</body>", "<script>globalThis.hacked = 1</script><img src='https://example.org/x'></body>"
        )
    )
    browser.open(path)
    assert browser.run("globalThis.hacked === undefined")
    assert browser.requests() == [path.as_uri()]
    assert len(browser.log()) == 2, "the browser tells of both refusals"


def test_sizes_of_a_call_are_computed_as_in_python(browser: Browser, tmp_path: Path) -> None:
    rows, square = "tensor<?x256xf32>", "tensor<256x256xf32>"
    dot = f"%w, contracting_dims = [1] x [0] : ({rows}, {square}) -> {rows}"
    body = f"%y = stablehlo.dot_general %x, {dot}\n  %z = stablehlo.dot_general %y, {dot}\n  return %z : {rows}"
    text = f"func.func @main(%x: {rows}, %w: {square}) -> {rows} {{\n  {body}\n}}"
    view = module_view(read_module(compiler.compile(text, targets=["spirv"])), "dynamic.fb")
    (program,) = view.programs
    browser.open(written(tmp_path, view))
    assert browser.run("orchestrion.state.values") == program.values
    (size,) = program.sizes
    for number in (1, 3, 1000):
        browser.run(SET, "#sizes input", number)
        assert browser.run("orchestrion.state.values") == values_for(program.expressions, {size: number})
    browser.press("Down", "Down")
    assert "1,024,000 = " in browser.run("document.getElementById('details').innerText")


def values_for(expressions: list[list[Any]], sizes: dict[str, int]) -> list[int]:
    found: list[int] = []
    for name, *operands in expressions:
        numbers = [found[one["e"]] if isinstance(one, dict) else one for one in operands]
        found.append(sizes[operands[0]] if name == "size" else OPERATIONS[name][0](*numbers))
    return found


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_in_dark_and_light(browser: Browser, large: ModuleView, tmp_path: Path, dark: bool) -> None:
    """WCAG 2.2 requires a contrast of 4.5 for text and of 3 for graphics."""
    browser.open(written(tmp_path, large), dark=dark)
    names = ("ink", "quiet", "accent", "bad", "paper", "card", "back", "band", "edge", "warm", "dot", "map", "move")
    read = "getComputedStyle(document.documentElement).getPropertyValue('--' + name)"
    values = browser.run(f"arguments[0].map((name) => {read})", names)
    colours = dict(zip(names, values, strict=True))
    assert (luminance(colours["paper"]) < 0.1) == dark
    for text, ground in [(a, b) for a in ("ink", "quiet") for b in ("paper", "card", "back", "band")]:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for text in ("accent", "bad"):
        assert contrast(colours[text], colours["paper"]) >= 4.5, text
    for drawn in ("edge", "warm", "dot", "map", "move"):
        assert contrast(colours[drawn], colours["back"]) >= 2.5, drawn


def luminance(colour: str) -> float:
    digits = colour.strip().lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_narrow_window_has_all_of_it_below_each_other(browser: Browser, large: ModuleView, tmp_path: Path) -> None:
    browser.open(written(tmp_path, large), width=500, height=900)
    for tab in "1234":
        browser.press(tab)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth"), tab
    browser.press("1")
    boxes = browser.run("['graph', 'details'].map((id) => document.getElementById(id).getBoundingClientRect().top)")
    assert boxes[0] < boxes[1]
    assert elements(browser) >= 2


def test_controls_are_labelled(browser: Browser, large: ModuleView, tmp_path: Path) -> None:
    browser.open(written(tmp_path, large))
    unlabelled = browser.run(
        "[...document.querySelectorAll('input, select')].filter((one) => !one.labels.length).map((one) => one.id)"
    )
    assert unlabelled == []
    named = "one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.textContent.trim()"
    query = "[role=tab], [role=tabpanel], [role=listbox], [role=option], [role=img], button, aside, dialog"
    assert (
        browser.run(f"[...document.querySelectorAll('{query}')].filter((one) => !({named})).map((one) => one.id)") == []
    )
    assert browser.run("document.getElementById('node-0').getAttribute('aria-setsize')") == str(facts(browser)["nodes"])


def test_times_and_errors_are_laid_over(browser: Browser, tmp_path: Path) -> None:
    module = read_module(compiler.compile(EXAMPLES / "mlp.mlir", targets=["reference"]))
    view = module_view(module, "mlp.fb")
    nodes = view.programs[0].functions[0].nodes
    places = [":".join(map(str, node.place)) for node in nodes if node.kind == "dispatch"]
    times = {
        place: {"launches": 3, "median_seconds": 1e-5, "total_seconds": 1e-5 * (at + 1), "share": 0.25}
        for at, place in enumerate(places)
    }
    errors = {"runs": 1, "absolute": 0.5, "relative": 0.25, "differs": True, "lines": ["output 3 differs in 4"]}
    laid_over = {
        "profile": {"title": "a device", "program": 0, "places": times},
        "compare": {"title": "a beside b", "program": 0, "text": "", "entries": {"main_dispatch_1": errors}},
    }
    browser.open(written(tmp_path, view, laid_over))
    assert browser.run("[...document.querySelectorAll('.node.bad')].map((one) => one.id)") == ["node-2"]
    browser.run(SET, "#colour", "time")
    browser.settle()
    shown = "[...document.querySelectorAll('.node .value')].map((one) => one.textContent)"
    assert browser.run(shown) == ["", "10.0 µs", "20.0 µs", "30.0 µs", "40.0 µs", ""]
    widths = browser.run("[...document.querySelectorAll('.node .heat')].map((one) => one.style.width)")
    assert widths == ["0%", "25%", "50%", "75%", "100%", "0%"]
    browser.press("Down", "Down", "Down")
    text = browser.run("document.getElementById('details').innerText")
    assert "profile: a device" in text and "output 3 differs in 4" in text


def test_the_command_writes_what_opens(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "m.fb").write_bytes(
        compiler.compile(EXAMPLES / "spectral_norm.mlir", targets=["reference", "spirv", "opencl"])
    )
    assert dump.main([str(tmp_path / "m.fb"), f"--html={tmp_path / 'm.html'}"]) == 0
    browser.open(tmp_path / "m.html")
    assert browser.run("[...document.getElementById('program').options].map((one) => one.textContent)") == [
        "reference",
        "spirv",
        "spirv_least",
        "opencl",
    ]
    for program in ("1", "2"):
        browser.run(SET, "#program", program)
        browser.press("Down", "Down", "Enter")
        browser.wait("document.querySelectorAll('#text pre').length > 0")
        browser.press("1")
    assert browser.log() == []
