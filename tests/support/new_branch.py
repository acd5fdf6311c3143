"""Adds the instruction `br_unless` to the table, with the effect `branch` and its function, and runs functions with it.

A program for a process of its own: the table is changed before anything derives from it. Nothing else in `vm/` is
changed, so every file has to treat the new branch by its effect. Prints `ok`.
"""

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from orchestrion.schema import isa

ROW = isa._row(
    "control",
    0x000D,
    "br_unless",
    "a:i32 then:target else:target",
    "branch",
    "continue at then if a == 0, else at else",
    0,
)
#: the register %i3 is read before the constant is written: a branch that is taken for straight-line code is found
LOOP = """
  ^loop:
    %i1 = i32.add %i1, %i3
    %i3 = i32.const 5
    %i4 = i32.const 1
    %i0 = i32.sub %i0, %i4
    {branch}
  ^end:
"""
SOURCE = """
export @old
export @new
export @sum
export @choose
program @p profile "reference" {{
  global @total : i32
  func @setup () -> () {{
    %i0 = i32.const 4
    {new}
    global.store.i32 %i1, @total
    return ()
  }}
  func @old (i32) -> i32 {{ {old} return (%i1) }}
  func @new (i32) -> i32 {{ {new} return (%i1) }}
  func @sum () -> i32 {{ %i0 = global.load.i32 @total return (%i0) }}
  func @choose (i32) -> i32 {{
    %i1 = i32.const 1
    br_unless %i0, ^zero, ^end
  ^zero:
    %i1 = i32.const 2
  ^end:
    return (%i1)
  }}
  initializer program @setup
  entry @old
  entry @new
  entry @sum
  entry @choose
}}
"""


def add_row() -> None:
    """Add the row where its opcode stands in the order."""
    rows = sorted((*isa.INSTRUCTIONS, ROW), key=lambda row: row.opcode)
    isa.INSTRUCTIONS = tuple(rows)
    isa.BY_OPCODE[ROW.opcode] = isa.BY_NAME[ROW.name] = ROW


def add_function() -> None:
    """Add the function to the ends of blocks: before `vm/ops/__init__.py` runs, which compares them with the rows."""
    spec = find_spec("orchestrion.vm")
    assert spec is not None and spec.submodule_search_locations is not None
    (folder,) = spec.submodule_search_locations
    packages = {"orchestrion.vm": folder, "orchestrion.vm.ops": f"{folder}/ops"}
    for name, place in packages.items():  # empty packages in place of those whose files import everything
        package = ModuleType(name)
        package.__path__ = [place]
        sys.modules[name] = package
    control: Any = importlib.import_module("orchestrion.vm.ops.control")

    def br_unless(site: Any, a: int, then: int, other: int) -> Any:
        return control._br_if(site, a, other, then)

    control.ENDS[ROW.name] = br_unless
    for name in packages:
        del sys.modules[name]


def check() -> None:
    """Run the loop with the new branch, and compare it with the same loop with `br_if`."""
    from orchestrion import vm
    from orchestrion.schema.assembler import assemble
    from orchestrion.schema.decoder import read_module
    from orchestrion.schema.writer import write
    from orchestrion.vm.operands import targets
    from orchestrion.vm.verifier import verify

    old = LOOP.format(branch="br_if %i0, ^loop, ^end")
    new = LOOP.format(branch="br_unless %i0, ^end, ^loop")
    data = write(assemble(SOURCE.format(old=old, new=new)))
    function = verify(read_module(data), 0).functions[2]
    branch = next(decoded for decoded in function.decoded if decoded.row.name == ROW.name)
    starts = {decoded.pc for decoded in function.decoded}
    assert not function.fast_verified, "a branch is not straight-line code"
    assert len(targets(branch)) == 2 and set(targets(branch)) <= starts
    program = vm.load(data)
    assert program.sum() == 15
    for count in (1, 2, 7, *range(3, 40)):
        assert program.new(count) == program.old(count) == 5 * (count - 1)
        assert [program.choose(0), program.choose(count)] == [2, 1]
    codes = program.context.program.codes
    assert all(codes[place].runs > 30 and codes[place].translation is None for place in (2, 4))
    with program.create_context(fuel=1000) as context:
        try:
            context["new"](1 << 30)
        except vm.VmError as error:
            assert "fuel" in str(error)
        else:
            raise AssertionError("a loop without an end used no fuel")


if __name__ == "__main__":
    add_row()
    if "forget" not in sys.argv:
        add_function()
    check()
    print("ok")
