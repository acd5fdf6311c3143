"""HAL code of modules that are written by hand: what is refused, control flow, integers, the errors of a program."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hal_code import created, generated, imported, same_bits, uploaded

from orchestrion import vm
from orchestrion.compiler.errors import CompileError
from orchestrion.hal.device import Device
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write as write_module


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with open_device("reference") as made:
        yield made


_HEAD = """
import @hal.view.check (hal.view, i32, i64*) -> hal.buffer
import @hal.view.destination (hal.view, i32, i64*) -> hal.view
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.view.dim (hal.view, i32) -> i64
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.fill (hal.recording, hal.buffer, i32, i64, i64, i64, i32) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @hal.fence.create () -> hal.fence
import @other.double (i32) -> i32
export @main (x: tensor<?xf32> "n") -> (y: tensor<4xi32>)
program @reference profile "reference" {
  func @main (hal.view, hal.view) -> hal.view {
    %i0 = i32.const 1056
    %l0 = i64.const -1
    %r2 = call_import @hal.view.check(%r0, %i0, %l0)
    %i1 = i32.const 0
    %l1 = call_import @hal.view.dim(%r0, %i1)
    %i2 = i32.wrap_i64 %l1
    %i0 = i32.const 544
    %l0 = i64.const 4
    %r0 = call_import @hal.view.destination(%r1, %i0, %l0)
    %r2 = call_import @hal.view.buffer(%r0)
"""
_FILL = """
    %i0 = i32.const 1
    %r3 = call_import @hal.recording.create(%i0)
    %i0 = i32.const 0
    %l0 = i64.const 0
    %l1 = i64.const 16
    %r4 = ref.null
    %l2 = i64.const {number}
    %i1 = i32.const 4
    call_import @hal.recording.fill(%r3, %r4, %i0, %l0, %l1, %l2, %i1)
    call_import @hal.recording.finish(%r3)
    call_import @hal.execute(%r3, %r2)
    {after}
"""
_USE = '%l4 = i64.const 3\n%i3 = i64.lt_s %l3, %l4\ncheck %i3, "x"\nreturn (%r0)'
_TAIL = """
  }
  func @never (i64) -> (i64) {
    fail "never"
  }
  entry @main
}
"""


def assembled(*parts: str) -> bytes:
    return write_module(assemble("".join([_HEAD, *parts, _TAIL])))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("%f0 = f32.const 1.0\n%f1 = f32.add %f0, %f0\n%i3 = i32.trunc_sat_f32_s %f1\ncheck %i3, \"x\"\nreturn (%r0)",
         "program reference, function main: has instruction f32.const, which HAL code cannot do"),
        ("%i3 = call_import @other.double(%i2)\ncheck %i3, \"x\"\nreturn (%r0)",
         "program reference, function main: calls other.double, a function of another module, which HAL code cannot"),
        ("%r5 = call_import @hal.fence.create()\nawait %r5\nreturn (%r0)",
         "program reference, function main: calls hal.fence.create, which HAL code cannot do"),
        ("br_if %i2, ^a, ^b\n^a:\nbr_if %i0, ^c, ^d\n^b:\nbr_if %i0, ^d, ^c\n^c:\nbr_if %i2, ^d, ^e\n"
         "^d:\nbr_if %i2, ^c, ^e\n^e:\nreturn (%r0)",
         "branches do not nest"),
        (_FILL.format(number=1, after="return (%r0)").replace("%i1 = i32.const 4", "%i1 = i32.const -1"),
         "function main: fills with a pattern of -1 bytes, expected one of (1, 2, 4, 8)"),
        ("%i3 = i32.const 1\n%l3 = call_import @hal.view.dim(%r0, %i3)\n" + _USE,
         "function main: reads size 1 of a view that has no such size"),
        ("%i3 = i32.const -1\n%l3 = call_import @hal.view.dim(%r0, %i3)\n" + _USE,
         "function main: reads size -1 of a view that has no such size"),
        ("%l3 = call.cached @never(%l1)\n" + _USE, "function main: calls never, which never returns"),
        ("".join(f"br_if %i2, ^a{n}, ^end\n^a{n}:\ncheck %i2, \"{n}\"\n" for n in range(120))
         + "br ^end\n^end:\nreturn (%r0)",
         "has branches that are nested too deep for Python"),
        ("".join(f"br ^h{n}\n^h{n}:\nbr_if %i2, ^b{n}, ^e{n}\n^b{n}:\n" for n in range(21))
         + "".join(f"br ^h{n}\n^e{n}:\n" for n in reversed(range(21))) + "return (%r0)",
         "has more than 20 loops inside of each other, which Python does not run"),
    ],
)  # fmt: skip
def test_what_it_cannot_say_is_refused_by_name(code: str, text: str) -> None:
    with pytest.raises(CompileError, match=re.escape(text)):
        generated(assembled(code), "model")


@pytest.mark.parametrize("name", ["device", "parameters", "path", "f32", "resource", "command_buffer", "name"])
def test_a_name_that_generated_code_uses_itself(name: str) -> None:
    """The class of the program gets another one: no name of the file is defined twice."""
    module = assembled(_FILL.format(number=7, after="return (%r0)"))
    made = ast.parse(generated(module, name)[f"{name}.py"])
    defined = [node.name for node in made.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    for node in made.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        defined += [target.id for target in targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.ImportFrom):
            defined += [alias.name for alias in node.names]
    assert len(defined) == len(set(defined)) and "Program" in defined


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        # a table of branches, the last for all other numbers
        ("br_table %i2, ^c, [^a, ^b]\n^a:{7}^b:{8}^c:{9}", {0: 7, 1: 8, 2: 9, 5: 9}),
        # 32 bits wrap, and division rounds towards 0
        ("%i3 = i32.const 2147483647\n%i3 = i32.add %i3, %i2\n%i4 = i32.const 0\n%i3 = i32.lt_s %i3, %i4\n"
         "br_if %i3, ^a, ^b\n^a:{7}^b:{8}", {0: 8, 1: 7, 3: 7}),
        ("%i3 = i32.const 3\n%i3 = i32.sub %i2, %i3\n%i4 = i32.const 2\n%i5 = i32.div_s %i3, %i4\n"
         "%i6 = i32.rem_s %i3, %i4\n%i5 = i32.eq %i5, %i6\nbr_if %i5, ^a, ^b\n^a:{7}^b:{8}",
         {0: 7, 1: 8, 2: 8, 3: 7, 4: 8}),
        # values that change places in a loop
        ("%i3 = i32.const 7\n%i4 = i32.const 9\n%i5 = i32.const 0\nbr ^h\n^h:\n%i6 = i32.lt_s %i5, %i2\n"
         "br_if %i6, ^l, ^e\n^l:\n%i6 = i32.copy %i3\n%i3 = i32.copy %i4\n%i4 = i32.copy %i6\n"
         "%i6 = i32.const 1\n%i5 = i32.add %i5, %i6\nbr ^h\n^e:\n%i6 = i32.const 7\n%i6 = i32.eq %i3, %i6\n"
         "br_if %i6, ^a, ^b\n^a:{7}^b:{9}", {0: 7, 1: 9, 2: 7, 3: 9}),
    ],
)  # fmt: skip
def test_control_flow_and_integers(code: str, wanted: dict[int, int], device: Device, tmp_path: Path) -> None:
    code = re.sub(r"\{(\d)\}", lambda found: _FILL.format(number=found[1], after="return (%r0)"), code)
    module = assembled(code)
    made = imported(module, tmp_path)
    with vm.load(module, device="reference") as loaded, created(made, device) as program:
        for size, number in wanted.items():
            x = np.zeros(size, np.float32)
            want = loaded.main(x)
            assert want.tolist() == [number] * 4
            same_bits(program.main(*uploaded(made, device, [x])), want)


def test_the_programs_own_errors(device: Device, tmp_path: Path) -> None:
    code = (
        '%i3 = i32.const 2\n%i3 = i32.lt_s %i3, %i2\ncheck %i3, "more than \\"2\\" are {needed}"\n'
        "%l3 = i64.extend_i32_s %i2\n%i3 = i32.const 4\n%i4 = i32.le_s %i2, %i3\n"
        'require %i4(%l3), "{0} of {1} are too many {"\nfail "no way"'
    )
    made = imported(assembled(code), tmp_path)
    with created(made, device) as program:
        for size, kind, text in (
            (1, made.ProgramFailed, 'more than "2" are {needed}'),
            (5, InvalidArgument, "5 of {1} are too many {"),
            (3, made.ProgramFailed, "no way"),
        ):
            with pytest.raises(kind, match=re.escape(text)):
                program.main(*uploaded(made, device, [np.zeros(size, np.float32)]))
