"""The rules of `tools.arguments` for every tool: spelling of flags, help, a one-line error for a bad command line."""

import shlex

import pytest
from command_lines import TOOLS, commands

from orchestrion.tools import arguments
from orchestrion.tools.arguments import Parser

NAMES = sorted(TOOLS)


def sample() -> Parser:
    made = Parser("vm-sample", "Shows.", [("vm-sample x --some-flag=1", "Does it.")])
    made.add_argument("file", metavar="FILE", nargs="?", help="the file")
    group = made.group("numbers", "Of all kinds.")
    group.add_argument("--some-flag", metavar="N", type=arguments.whole(1), help="a number (default: %(default)s)")
    group.add_argument("--report-file", metavar="FILE", nargs="?", const="-", help="where to")
    group.add_argument("--kind", choices=("a", "b"), help="which")
    made.add_argument("--check", action="store_true", help="checks only")
    return made


@pytest.mark.parametrize("name", NAMES)
def test_flags_are_spelled_with_dashes(name: str) -> None:
    spelled = [flag for action in TOOLS[name]._all_actions() for flag in action.option_strings]
    assert "--verbose" in spelled and not [flag for flag in spelled if "_" in flag]


def test_both_spellings_mean_the_same() -> None:
    for line in ("--some_flag=2 x_y.fb", "--some-flag 2 x_y.fb", "x_y.fb --some_flag 2"):
        options = sample().read(line.split())
        assert (options.some_flag, options.file) == (2, "x_y.fb")
    assert sample().read(["--report_file=a_b"]).report_file == "a_b", "values stay as they are"
    assert sample().read(["--", "--a_b"]).file == "--a_b", "and so does what stands behind --"


def test_flags_of_commands_have_both_spellings() -> None:
    line = "bundle m.fb -o b.zip --compress_code --model_card=a_b.md"
    options = TOOLS["vm-pack"].read(line.split())
    assert options.compress_code and options.model_card == "a_b.md"


def test_a_value_that_may_be_left_out_stands_behind_an_equals_sign() -> None:
    options = sample().read(["--report-file", "m.fb"])
    assert (options.report_file, options.file) == ("-", "m.fb")
    assert sample().read(["--report-file=r.txt"]).report_file == "r.txt"


def test_help_shows_usage_examples_and_groups() -> None:
    assert sample().help_text(80) == (
        "usage: vm-sample [FILE] [FLAG ...]\n\nShows.\n\nexamples:\n  vm-sample x --some-flag=1\n      Does it.\n\n"
        "arguments:\n  FILE                        the file\n\n"
        "numbers:\n  Of all kinds.\n"
        "  --some-flag=N               a number (default: None)\n"
        "  --report-file[=FILE]        where to\n"
        "  --kind=a|b                  which\n\n"
        "other flags:\n"
        "  -h, --help                  show this help message and exit\n"
        "  --check                     checks only\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_examples_that_the_tool_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = TOOLS[name]
    for one in (parser, *commands(parser)):
        assert one.examples, one.prog
        for line, what in one.examples:
            tool, *given = shlex.split(line)
            assert line.startswith(one.prog) and tool == name and what.endswith(".")
            if given[-1] == "--help":
                with pytest.raises(SystemExit) as ended:
                    parser.read(given)
                assert ended.value.code == 0 and capsys.readouterr().out.startswith(f"usage: {name}")
            else:
                parser.read(given)


@pytest.mark.parametrize("name", NAMES)
def test_help_fits_into_the_terminal(name: str) -> None:
    for columns in (70, 100):
        for parser in (TOOLS[name], *commands(TOOLS[name])):
            lines = parser.help_text(columns).splitlines()
            assert not [line for line in lines if len(line) > columns and not line.startswith("  vm-")]


# (tool, arguments, what the line says)
BAD = [
    ("vm-run", "m.fb --repeat=0", "--repeat: 0 is not at least 1"),
    ("vm-run", "m.fb --repeat=many", "--repeat: expected a whole number, got 'many'"),
    ("vm-run", "m.fb --fuel=-1", "--fuel: -1 is not at least 0"),
    ("vm-run", "m.fb --deadline=soon", "--deadline: expected seconds of 0 or more, got 'soon'"),
    ("vm-run", "m.fb --expected_rtol=nan", "--expected-rtol: expected a tolerance of 0 or more, got 'nan'"),
    ("vm-run", "m.fb --load-memory=1.5", "--load-memory: expected a whole number, got '1.5'"),
    ("vm-run", "m.fb --offset=-1", "--offset: -1 is not at least 0"),
    ("vm-run", "m.fb --device", "--device: expected one argument"),
    ("vm-run", "m.fb --check=yes", "--check: ignored explicit argument 'yes'"),
    ("vm-run", "m.fb --devise=vulkan", "no flag --devise; did you mean --device?"),
    ("vm-run", "m.fb --nonsense", "no flag --nonsense; vm-run --help shows the flags"),
    ("vm-run", "m.fb n.fb", "unexpected argument 'n.fb'; vm-run --help shows the arguments"),
    ("vm-run", "", "MODULE.fb is missing"),
    ("vm-bench", "m.fb --seconds=-1", "--seconds: expected seconds of 0 or more, got '-1'"),
    ("vm-bench", "m.fb --seconds=inf", "--seconds: expected seconds of 0 or more, got 'inf'"),
    ("vm-run", "m.fb --build_deadline=0", "--build-deadline: expected seconds above 0, got '0'"),
    ("vm-bench", "", "MODULE.fb is missing; vm-bench --help shows the arguments"),
    (
        "vm-compile",
        "x.mlir --compile-to=flow --schedules=f",
        "--schedules needs phase hl_seq: --compile-to=flow stops before it",
    ),
    ("vm-tune", "x.mlir", "--device is missing; vm-tune --help shows the arguments"),
    ("vm-tune", "x.mlir --device=vulkan --budget=0", "--budget: expected seconds above 0, got '0'"),
    ("vm-tune", "x.mlir --device=vulkan --trials=-1", "--trials: -1 is not at least 0"),
    ("vm-tune", "x.mlir --device=vulkan --entries=0", "--entries: 0 is not at least 1"),
    ("vm-tune", "x.mlir --device=vulkan --compile-from=ll_seq", "--compile-from: no 'll_seq': there are input, "),
    ("vm-tune", "x.mlir --device=vulkan --machine=toaster", "--machine: no machine toaster: there are cpu, gpu, mcu"),
    ("vm-tune", "x.mlir --device=vulkan --machine=gpu,cpu", "--machine: expected one machine, got 'gpu,cpu'"),
    ("vm-compile", "x.mlir --compile-to=nowhere", "--compile-to: no 'nowhere': there are input, stablehlo, flow, "),
    ("vm-compile", "x.mlir -o m.fb --encodings=odd", "--encodings: no 'odd': there are default, none, always, test"),
    ("vm-compile", "x.mlir -o m.fb --max_allocation=0", "--max-allocation: 0 is not at least 1"),
    ("vm-compile", "x.mlir -o m.fb --limit-fuel=much", "--limit-fuel: limits.fuel is 'much', "),
    ("vm-compile", "x.mlir -o m.fb --attribute=limits.x=1", "--attribute: limits.x is no limit; "),
    ("vm-opt", "x.mlir --pass=nope", "--pass: no pass is called nope; "),
    ("vm-opt", "x.mlir --target=nope", "--target: "),
    ("vm-pack", "keygen -o key.pem --type=rsa", "--type: invalid choice: 'rsa' "),
    ("vm-pack", "sign m.fb --kye=k.pem --key=k.pem", "no flag --kye; did you mean --key?"),
    ("vm-pack", "bundle m.fb -o b.zip --group=a:ram=6GB-", "--group needs --layout=play-ai-pack"),
    ("vm-pack", "seal m.fb", "COMMAND: invalid choice: 'seal' "),
]


@pytest.mark.parametrize(("tool", "line", "told"), BAD, ids=[f"{tool} {line}" for tool, line, _ in BAD])
def test_a_bad_command_line_is_one_line(tool: str, line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    from importlib import import_module

    with pytest.raises(SystemExit) as ended:
        import_module(f"orchestrion.tools.{tool.removeprefix('vm-')}").main(shlex.split(line))
    out, error = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert error.startswith(f"{tool}: {told}"), error
    assert error.count("\n") == 1 and "usage" not in error
