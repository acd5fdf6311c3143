"""Native modules: declarations, resolution of imports, what reaches the Python function."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.writer import write
from orchestrion.vm.call import Call
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
    module = read_module(
        write(
            assemble(
                f'{imports} program @p profile "reference" {{ func @f () -> () {{ {body} }} func @any (any) -> any {{ return (%r0) }} }}'
            )
        )
    )
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
        "words.first has signature (words.other, i32) -> i32, the module wants (i64) -> i32 (native modules: words)"
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
    "%l0 = i64.const 0 %r0 = list.i32.new %l0 %r1 = call @any(%r0) %i0 = call_import @words.first(%r1, %i0) return ()": (
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
    from orchestrion.vm.context import Context

    program = linked(IMPORTS, body)
    if not BODIES[body]:
        Context(program).invoke(program.codes[0])
        return
    with pytest.raises(Trap) as caught:
        Context(program).invoke(program.codes[0])
    assert caught.value.message == BODIES[body]


def test_errors_of_ours_are_not_hidden(assembled: Callable[[str], Any]) -> None:
    """A mistake in a native module's Python comes out as it is, and the context stays usable."""
    program = assembled(
        """import @test.count (any, (i32, any)*) -> i32
        program @p profile "reference" { func @f (any) -> i32 { %i0 = call_import @test.count(%r0) return (%i0) } }"""
    )
    program.native.count.__func__  # the bound method itself is what bytecode calls
    original = program.linked.codes[0]
    assert program.context.invoke(original, ("a ref",)) == (0,)


def test_two_classes_for_one_type_are_refused() -> None:
    with pytest.raises(TypeError, match="type words.other is Other already"):

        class Clash(NativeModule):
            name = "clash"
            types = {"words.other": int}


def test_hal_serves_its_whole_table() -> None:
    data = write(assemble('program @p profile "reference" { func @f () -> () { return () } }'))
    module = read_module(data)
    hal = HalModule(module, module.programs[0])
    for row in HAL_IMPORTS.values():
        function = hal.find(row.name)
        assert function is not None, row.name
        assert str(function.signature) == row.signature
    assert len(HalModule._declared) == len(HAL_IMPORTS)
