"""The fast verifier accepts only what the verifier accepts, and decodes it to the same instructions."""

import random
from pathlib import Path
from typing import Any

import pytest

from orchestrion.schema import container
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.signature import shape_of
from orchestrion.schema.writer import write
from orchestrion.vm import verifier
from orchestrion.vm.fast_verifier import prove
from orchestrion.vm.verifier import VerifiedFunction, verify

HERE = Path(__file__).parent
STRAIGHT = """
import @test.all (i32, i64, f32, f64, any, hal.view) -> (any, hal.view, f64, i32)
import @test.any (any*) -> any
import @test.view (hal.view) -> ()
program @p profile "reference" {
  global @n : i64
  global @x : f32 mutable
  global @view : hal.view mutable
  global @ref : any mutable
  func @f (hal.view, f64, any) -> (hal.view, i64) {
    %i0 = i32.const 7
    %l0 = i64.const -1
    %f0 = f32.const 0.5
    %i1 = i32.add %i0, %i0
    %l1 = i64.zero
    %f1 = global.load.f32 @x
    global.store.f32 %f0, @x
    %r1, %r0, %d0, %i0 = call_import @test.all(%i1, %l0, %f1, %d0, %r1, %r0)
    %r2 = call_import @test.any(%r1, %r0)
    global.store.ref %r2, @ref
    %r3 = global.load.ref @view
    %r4 = ref.null
    call_import @test.view(%r0)
    global.store.ref %r0, @view
    %l2 = i64.mul %l0, %l1
    return (%r0, %l2)
  }
  func @g () -> () { %f0 = f32.zero global.store.f32 %f0, @x return () }
  func @h (i32, f32, f64) -> (f64, i32) { return (%d0, %i0) }
}
"""
OTHERS = {
    "a move": "func @f (any) -> any { %r1 = ref.copy move %r0 return (%r1) }",
    "a moved argument": "func @f (any) -> () { %r0 = call_import @test.any(move %r0) return () }",
    "a branch": "func @f () -> () { br ^end ^end: return () }",
    "a call": "func @f () -> () { call @f() return () }",
    "text": 'func @f (i32) -> () { check %i0, "no" return () }',
    "an end in the middle": "func @f () -> () { return () return () }",
    "another end": 'func @f () -> () { fail "no" }',
}


def outcome(data: bytes) -> Any:
    """What is verified, or the error."""
    try:
        return [function._replace(fast_verified=False) for function in verify(read_module(data), 0).functions]
    except ModuleError as error:
        return str(error)


def both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    fast = outcome(data)
    with monkeypatch.context() as patch:
        patch.setattr(verifier, "prove", lambda *_: None)
        return fast, outcome(data)


def proven(source: str) -> list[VerifiedFunction]:
    return verify(read_module(write(assemble(source))), 0).functions


def test_straight_line_functions_are_proven() -> None:
    functions = proven(STRAIGHT)
    assert all(function.fast_verified for function in functions)
    assert len(functions[0].decoded) == 16


@pytest.mark.parametrize("what", OTHERS)
def test_other_functions_are_left_to_the_verifier(what: str) -> None:
    text = f'import @test.any (any*) -> any program @p profile "reference" {{ {OTHERS[what]} }}'
    assert not proven(text)[0].fast_verified


def corpus() -> list[bytes]:
    texts = [path.read_text() for path in sorted((HERE / "programs").glob("*.asm"))]
    return [write(assemble(text)) for text in (STRAIGHT, *texts)]


def test_both_verifiers_agree_on_sound_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in corpus():
        fast, slow = both(data, monkeypatch)
        assert fast == slow
        assert not isinstance(fast, str)


def test_both_verifiers_agree_on_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants change 16-bit halves of the code."""
    data = write(assemble(STRAIGHT))
    module = read_module(data)
    code = data.index(bytes(module.bytecode))
    size = len(module.bytecode)
    choose = random.Random(3)
    sound = 0
    for _ in range(3000):
        changed = bytearray(data)
        for _ in range(choose.choice((1, 1, 2, 3))):
            at = code + 2 * choose.randrange(size // 2)
            old = int.from_bytes(changed[at : at + 2], "little")
            new = choose.choice(
                (old ^ 1, old + 1, old - 1, old ^ 0x8000, choose.randrange(12), choose.randrange(1 << 16))
            )
            changed[at : at + 2] = (new & 0xFFFF).to_bytes(2, "little")
        fast, slow = both(container.reseal(bytes(changed)), monkeypatch)
        assert fast == slow
        sound += not isinstance(fast, str)
    assert 100 < sound < 2900, "some mutants must be sound, and some not"


def test_both_verifiers_agree_on_registers_and_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code with other register counts and signatures."""
    head, found = 'program @p profile "reference" {', []
    bodies = (
        "%i0 = i32.const 1 return (%i0)",
        "%l0 = i64.zero return (%l0)",
        "%r0 = ref.null return (%r0)",
        "return (%r0)",
        "return (%r0, %i0)",
        "return ()",
    )
    for body in bodies:
        for signature in (
            "() -> i32",
            "(i32) -> i32",
            "(any) -> any",
            "(hal.view) -> any",
            "(any) -> hal.view",
            "() -> ()",
        ):
            data = write(assemble(f"{head} func @f {signature} {{ {body} }} }}"))
            fast, slow = both(data, monkeypatch)
            assert fast == slow
            found.append(isinstance(fast, str))
    assert 0 < sum(found) < len(found)


def test_code_without_instructions_is_not_proven() -> None:
    class EmptyScope:
        globals: list[tuple[str, bool]] = []

        def call_shape(self, ordinal: int, arguments: int) -> Any:
            raise LookupError

    for code in (b"", b"\0", b"\6\0\0", b"\xff\xff"):
        assert prove(EmptyScope(), (0, 0, 0, 0, 0), [], shape_of(()), memoryview(code)) is None
