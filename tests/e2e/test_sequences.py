"""Functions of several blocks, written as ll_seq text: loops over swapped states, branches, batches, one read per turn.

What the sequencer makes of control flow stands here by hand, so that the lower half (bytecode, VM, HAL) is known to be
right on every device by itself. Counts of submissions and waits are part of that.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler import Compilation
from orchestrion.compiler.bytecode.serialize import module_rows
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.verifier import check_own
from orchestrion.compiler.options import Options
from orchestrion.compiler.pipeline import passes_named, run_passes
from orchestrion.compiler.rules.engine import check
from orchestrion.schema.writer import write

#: device -> target
TARGETS = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
PASSES = ("lower-executables", "convert-to-vm", "assign-registers")

#: `add_one`: y = x + 1; `below_ten`: p = x < 10; `third`: i = x remainder 3; `twofold`: y = x + x
EXECUTABLE = """
    "ll_seq.executable"() <{sym_name = "e"}> ({
      %entries
    }) : () -> ()
    "util.global"() <{sym_name = "e_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "state_a", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "state_b", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "chosen", type = !hal.buffer}> : () -> ()
    %globals
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @e}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @e_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %e = "util.global_load"() <{ref = @e_executable}> : () -> !hal.executable
      %a = "ll_seq.allocate"() <{size = 256 : i64}> : () -> !hal.buffer
      "util.global_store"(%a) <{ref = @state_a}> : (!hal.buffer) -> ()
      %b = "ll_seq.allocate"() <{size = 256 : i64}> : () -> !hal.buffer
      "util.global_store"(%b) <{ref = @state_b}> : (!hal.buffer) -> ()
      %c = "ll_seq.allocate"() <{size = 256 : i64}> : () -> !hal.buffer
      "util.global_store"(%c) <{ref = @chosen}> : (!hal.buffer) -> ()
      %recordings
      "util.return"() : () -> ()
    }) : () -> ()
"""


def entry(name: str, body: str, out: str, length: int) -> str:
    bindings = f'[{{access = "read", length = 4 : i64}}, {{access = "write", length = {length} : i64}}]'
    return f"""
      "ll_seq.entry"() <{{bindings = {bindings},
          sym_name = "{name}", workload = array<i64: 1, 1, 1>}}> ({{
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        {body}
        "ll_seq.store_output"(%9, %1) : ({out}, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }}) : () -> ()"""


def constant(value: int) -> str:
    return f'%3 = "stablehlo.constant"() <{{value = dense<{value}> : tensor<i32>}}> : () -> tensor<i32>'


def binary(name: str, value: int) -> str:
    return f'{constant(value)} %9 = "stablehlo.{name}"(%2, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>'


LESS = (
    f"{constant(10)} "
    '%9 = "stablehlo.compare"(%2, %3) <{comparison_direction = #stablehlo<comparison_direction LT>}> '
    ": (tensor<i32>, tensor<i32>) -> tensor<i1>"
)
ENTRIES = (
    entry("add_one", binary("add", 1), "tensor<i32>", 4)
    + entry("below_ten", LESS, "tensor<i1>", 1)
    + entry("third", binary("remainder", 3), "tensor<i32>", 4)
    + entry("twofold", binary("multiply", 2), "tensor<i32>", 4)
)


def dispatch(name: str, source: str, target: str) -> str:
    kinds = ", ".join("!ll_seq.slot" if value.startswith("%s") else "!hal.buffer" for value in (source, target))
    return (
        f'"ll_seq.dispatch"(%e, {source}, {target}) <{{entry = @e::@{name}, offsets = array<i64: 0, 0>}}> '
        f": (!hal.executable, {kinds}) -> ()\n"
    )


def recording(name: str, slots: int, body: str) -> str:
    """A global, and what makes it."""
    taken = ", ".join(f"%s{i}: !ll_seq.slot" for i in range(slots))
    return f"""
      %{name} = "ll_seq.record"() ({{
      ^bb0({taken}):
        {body}
        "ll_seq.end"() : () -> ()
      }}) : () -> !hal.recording
      "util.global_store"(%{name}) <{{ref = @{name}}}> : (!hal.recording) -> ()"""


BARRIER = '"ll_seq.barrier"() : () -> ()\n'
RECORDINGS = {
    "ask": (1, dispatch("below_ten", "%s0", "%c")),
    "turn": (2, dispatch("add_one", "%s0", "%s1") + BARRIER + dispatch("below_ten", "%s1", "%c")),
    "which": (1, dispatch("third", "%s0", "%c")),
    "plus": (2, dispatch("add_one", "%s0", "%s1")),
    "twice": (2, dispatch("twofold", "%s0", "%s1")),
    "result": (
        2,
        '"ll_seq.copy"(%s0, %s1) <{length = 4 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> '
        ": (!ll_seq.slot, !ll_seq.slot) -> ()",
    ),
}


def load(name: str, kind: str) -> str:
    return f'%{name} = "util.global_load"() <{{ref = @{name}}}> : () -> !hal.{kind}\n'


def run(recording: str, *slots: str, op: str = "execute") -> str:
    types = ", ".join(["!hal.recording", *["!hal.buffer"] * len(slots)])
    return f'"ll_seq.{op}"({", ".join((f"%{recording}", *slots))}) : ({types}) -> ()\n'


def read(name: str, kind: str) -> str:
    return f'%{name} = "ll_seq.read"(%chosen) <{{offset = 0 : i64, type = "{kind}"}}> : (!hal.buffer) -> i32\n'


PROLOGUE = (
    '%x = "ll_seq.check"(%in) <{type = tensor<i32>}> : (!hal.view) -> !hal.buffer\n'
    '%d = "ll_seq.destination"(%out) <{type = tensor<i32>}> : (!hal.view) -> !hal.view\n'
    '%y = "ll_seq.storage"(%d) : (!hal.view) -> !hal.buffer\n'
    + "".join(load(name, "buffer") for name in ("state_a", "state_b", "chosen"))
    + "".join(load(name, "recording") for name in RECORDINGS)
)
RETURN = run("result", "%r", "%y") + '"ll_seq.return"(%d) : (!hal.view) -> ()\n'
BUFFERS = "!hal.buffer, !hal.buffer"

#: while x < 10: x = x + 1
WHILE = f"""
    {run("ask", "%x")} {read("p", "i1")}
    "util.cond_branch"(%p, %x, %state_a, %state_b, %x)[^body, ^exit] <{{counts = array<i64: 3, 1>}}>
        : (i32, {BUFFERS}, !hal.buffer, !hal.buffer) -> ()
  ^body(%now: !hal.buffer, %next: !hal.buffer, %other: !hal.buffer):
    {run("turn", "%now", "%next")} {read("q", "i1")}
    "util.cond_branch"(%q, %next, %other, %next, %next)[^body, ^exit] <{{counts = array<i64: 3, 1>}}>
        : (i32, {BUFFERS}, !hal.buffer, !hal.buffer) -> ()
  ^exit(%r: !hal.buffer):
    {RETURN}"""

#: case x remainder 3 of 0: x + 1, 1: 4 * x, else: x
SWITCH = f"""
    {run("which", "%x")} {read("i", "i32")}
    "util.switch"(%i, %x)[^zero, ^one, ^exit] <{{counts = array<i64: 0, 0, 1>}}> : (i32, !hal.buffer) -> ()
  ^zero:
    {run("plus", "%x", "%state_b", op="enqueue")}
    "util.branch"(%state_b)[^exit] : (!hal.buffer) -> ()
  ^one:
    {run("twice", "%x", "%state_a", op="enqueue")} {run("twice", "%state_a", "%state_b", op="enqueue")}
    "util.branch"(%state_b)[^exit] : (!hal.buffer) -> ()
  ^exit(%r: !hal.buffer):
    {RETURN}"""


def counted(trips: int) -> str:
    """`trips` times: x = x + 1. The host counts, and nothing is read."""
    return f"""
    %zero = "util.constant"() <{{value = 0 : i32}}> : () -> i32
    %one = "util.constant"() <{{value = 1 : i32}}> : () -> i32
    %trips = "util.constant"() <{{value = {trips} : i32}}> : () -> i32
    "util.branch"(%x, %state_a, %state_b, %zero)[^head] : ({BUFFERS}, !hal.buffer, i32) -> ()
  ^head(%now: !hal.buffer, %next: !hal.buffer, %other: !hal.buffer, %turn_number: i32):
    %more = "util.compare_lt"(%turn_number, %trips) : (i32, i32) -> i32
    "util.cond_branch"(%more, %now)[^body, ^exit] <{{counts = array<i64: 0, 1>}}> : (i32, !hal.buffer) -> ()
  ^body:
    {run("plus", "%now", "%next", op="enqueue")}
    %following = "util.add"(%turn_number, %one) : (i32, i32) -> i32
    "util.branch"(%next, %other, %next, %following)[^head] : ({BUFFERS}, !hal.buffer, i32) -> ()
  ^exit(%r: !hal.buffer):
    {RETURN}"""


def module(target: str, body: str) -> str:
    globals = "".join(
        f'"util.global"() <{{sym_name = "{name}", type = !hal.recording}}> : () -> ()\n' for name in RECORDINGS
    )
    setup = EXECUTABLE.replace("%entries", ENTRIES).replace("%globals", globals)
    setup = setup.replace("%recordings", "".join(recording(name, *row) for name, row in RECORDINGS.items()))
    return f"""
"builtin.module"() ({{
  "hl_seq.program"() <{{sym_name = "{target}"}}> ({{
    {setup}
    "ll_seq.function"() <{{signature = (tensor<i32>) -> tensor<i32>, sym_name = "main"}}> ({{
    ^bb0(%in: !hal.view, %out: !hal.view):
      {PROLOGUE} {body}
    }}) : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""


def compiled(target: str, body: str) -> bytes:
    """The module; what the text of its last phase gives is the same."""
    ir = parse(module(target, body), "sequence.mlir")
    run_passes(ir, passes_named(PASSES), Options((target,)))
    check_own(ir, ", ".join(PASSES))
    check(ir, "bytecode")
    blob = write(module_rows(ir))
    text = print_module(ir)
    assert write(Compilation(start="bytecode").rows(text.encode())) == blob
    return blob


@pytest.fixture(params=TARGETS)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def loaded(device: str, body: str) -> Any:
    return vm.load(compiled(TARGETS[device], body), device=device, allow_native_code=device == "opencl")


def called(program: Any, x: int) -> tuple[int, dict[str, Any]]:
    """The result, blocking and submitted, and the counts of the call."""
    argument = np.array(x, np.int32)
    for _ in range(2):
        value = program.main(argument)
    row = program.statistics()["calls"][-1]
    assert int(program.main.submit(argument).result(30)) == int(value)
    again = program.statistics()["calls"][-1]
    assert (again["submissions"], again["dispatches"]) == (row["submissions"], row["dispatches"])
    return int(value), row


@pytest.mark.sampled
@pytest.mark.parametrize("x", [-3, 0, 8, 9, 10, 11])
def test_while(device: str, x: int) -> None:
    program = loaded(device, WHILE)
    value, row = called(program, x)
    turns = max(0, 10 - x)
    assert value == max(x, 10)
    assert row["submissions"] == row["waits"] == turns + 2
    assert row["dispatches"] == 1 + 2 * turns
    assert row["allocations"] == 0
    program.close()


@pytest.mark.sampled
@pytest.mark.parametrize(("x", "want"), [(6, 7), (7, 28), (8, 8), (-1, -1)])
def test_switch(device: str, x: int, want: int) -> None:
    """The arm's work goes with what follows: one submission for the index, one for the rest."""
    program = loaded(device, SWITCH)
    value, row = called(program, x)
    assert value == want
    assert (row["submissions"], row["waits"]) == (2, 2)
    assert row["device_to_host_bytes"] == 4 + 4
    program.close()


@pytest.mark.sampled
@pytest.mark.parametrize("trips", [0, 1, 2, 31])
def test_counted(device: str, trips: int) -> None:
    """All turns are one submission, over two states that change places."""
    program = loaded(device, counted(trips))
    value, row = called(program, 5)
    assert value == 5 + trips
    assert (row["submissions"], row["waits"], row["dispatches"]) == (1, 1, trips)
    program.close()


def registers_text() -> str:
    ir = parse(module("reference", WHILE), "sequence.mlir")
    run_passes(ir, passes_named(PASSES), Options(("reference",)))
    return print_module(ir, locations=False)


def refused(text: str) -> str:
    with pytest.raises(CompileError) as caught:
        Compilation(start="bytecode").rows(text.encode())
    return str(caught.value)


def test_registers_of_blocks_are_checked() -> None:
    """The text of the last phase may come from anybody, too."""
    text = registers_text()
    (names,) = [json.loads(names) for names in re.findall(r'\["r\d+", "r\d+", "r\d+"\]', text)]

    def renamed(new: list[str]) -> str:
        return refused(text.replace(json.dumps(names), json.dumps(new)))

    assert "block 3 takes 3 arguments, their registers are" in renamed(names[:2])
    assert 'register "i0" of an argument of block 3 of type !hal.buffer is not in the' in renamed(["i0", *names[1:]])
    swapped = renamed([names[1], names[0], names[2]])
    assert f"passes register {names[0]} to argument 0 of its target, whose register is {names[1]}" in swapped
    missing = refused(re.sub(r"blocks = .*?\]\], ", "", text))
    assert "blocks must have the registers of 6 blocks, has 0" in missing
    given = refused(re.sub(r'("vm.br_if"\(%\d+\))\[\^bb\d+, ', r"\1[^bb3, ", text))
    assert "branches to successor 0, which takes 3 arguments: only vm.br passes arguments" in given
