"""Native modules: declarations, resolution of imports, what reaches the Python function."""

from typing import Any

import pytest

from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.writer import write
from orchestrion.vm.call import Call
from orchestrion.vm.context import Context
from orchestrion.vm.errors import Trap, UnresolvedImport
from orchestrion.vm.hal_module import HalModule
from orchestrion.vm.linker import link
from orchestrion.vm.native import NativeModule, native
from orchestrion.vm.verifier import verify


class Other:
    pass


class Words(NativeModule):
    name = "words"
    types = {"words.other": Other}

    @native("other", "() -> words.other")
    def other(self, call: Call) -> Other:
        return Other()

    @native("first", "(words.other, i32) -> i32")
    def first(self, call: Call, one: Other, number: int) -> int:
        assert type(one) is Other
        return number

    @native("last", "(i32, words.other) -> ()", nullable=(1,))
    def last(self, call: Call, number: int, one: Other | None) -> None:
        assert one is None or type(one) is Other

    @native("pair", "(words.other, words.other) -> (i32, i32)")
    def pair(self, call: Call, one: Other, two: Other) -> tuple[int, int]:
        return 1, 2


def linked(imports: str, body: str = "return ()") -> Any:
    functions = f"func @f () -> () {{ {body} }} func @any (any) -> any {{ return (%r0) }}"
    module = read_module(write(assemble(f'{imports} program @p profile "reference" {{ {functions} }}')))
    return link(module, 0, verify(module, 0), (Words(),))


def test_unresolved_imports_are_listed_all_at_once() -> None:
    imports = """
    import @words.missing (i32, i64*) -> buffer
    import @nowhere.at_all () -> ()
    import @words.first (i64) -> i32
    import @words.unused (i64) -> i32
    import @words.maybe () -> () optional"""
    body = """%r0 = call_import @words.missing(%i0) call_import @nowhere.at_all() %i0 = call_import @words.first(%l0)
              call_import @words.maybe() return ()"""
    with pytest.raises(UnresolvedImport) as caught:
        linked(imports, body)
    assert str(caught.value) == (
        "unresolved imports: words.missing (i32, i64*) -> buffer is not there; nowhere.at_all () -> () is not there; "
        "words.first has signature (words.other, i32) -> i32, the module wants (i64) -> i32 (native modules: words; "
        "functions of other modules: modules=, --module=NAME=FILE)"
    )


IMPORTS = """
import @words.other () -> words.other
import @words.first (words.other, i32) -> i32
import @words.last (i32, words.other) -> ()
import @words.pair (words.other, words.other) -> (i32, i32)
"""
BODIES = {
    "%r0 = call_import @words.other() %i0 = call_import @words.first(%r0, %i0) return ()": "",
    "call_import @words.last(%i0, %r0) return ()": "",
    "%r0 = call_import @words.other() %i0, %i1 = call_import @words.pair(%r0, %r0) return ()": "",
    "%i0 = call_import @words.first(%r0, %i0) return ()": "argument 0 of words.first: expected words.other, got null",
    "%r0 = list.i32.new %l0 %r1 = call @any(%r0) %i0 = call_import @words.first(%r1, %i0) return ()": (
        "argument 0 of words.first: expected words.other, got list<i32>"
    ),
    "%r0 = buffer.alloc %l0 %r1 = call @any(%r0) call_import @words.last(%i0, %r1) return ()": (
        "argument 1 of words.last: expected words.other, got buffer"
    ),
    "%r0 = call_import @words.other() %i0, %i1 = call_import @words.pair(%r0, %r1) return ()": (
        "argument 1 of words.pair: expected words.other, got null"
    ),
}


@pytest.mark.parametrize("body", BODIES)
def test_argument_types(body: str) -> None:
    program = linked(IMPORTS, body)
    if not BODIES[body]:
        Context(program).invoke(program.codes[0])
        return
    with pytest.raises(Trap) as caught:
        Context(program).invoke(program.codes[0])
    assert caught.value.message == BODIES[body]


class Broken(NativeModule):
    name = "broken"

    @native("fails", "() -> ()")
    def fails(self, call: Call) -> None:
        raise KeyError("a mistake in a native module")

    @native("works", "() -> ()")
    def works(self, call: Call) -> None:
        return


def test_mistakes_in_native_modules_are_not_hidden() -> None:
    """They come out as they are, and the context stays usable."""
    imports = "import @broken.fails () -> () import @broken.works () -> ()"
    functions = """func @f () -> () { call_import @broken.fails() return () }
                   func @g () -> () { call_import @broken.works() return () }"""
    module = read_module(write(assemble(f'{imports} program @p profile "reference" {{ {functions} }}')))
    program = link(module, 0, verify(module, 0), (Broken(),))
    context = Context(program)
    with pytest.raises(KeyError, match="a mistake in a native module"):
        context.invoke(program.codes[0])
    assert context.invoke(program.codes[1]) == ()


def test_two_classes_for_one_type_are_refused() -> None:
    with pytest.raises(TypeError, match="type words.other is Other already"):

        class Clash(NativeModule):
            name = "clash"
            types = {"words.other": int}


def test_hal_serves_its_whole_table() -> None:
    hal = HalModule()
    for row in HAL_IMPORTS.values():
        function = hal.find(row.name)
        assert function is not None, row.name
        assert str(function.signature) == row.signature
    assert len(HalModule._declared) == len(HAL_IMPORTS)
