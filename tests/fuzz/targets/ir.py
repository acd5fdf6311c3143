"""MLIR text is parsed or ParseError; what is parsed is printed, and the print is parsed to the same print."""

import random
from functools import cache

from fuzzing import ROOT, check, tokens_mutated

from orchestrion.compiler.errors import ParseError
from orchestrion.compiler.ir.lexer import Tokens
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.verifier import verify

#: what cases rarely hold
_RARE = r"""
"a.b"() {a = 1 : i8, b = -0x7f : i64, c = 0x7ff8000000000001 : f64, d = 1.5e-3 : bf16} : () -> () loc("f":1:2 to :9)
"a.b"() {e, f = unit, g = true} : () -> () loc("f":1:2 to 3:4)
"a.b"() {a = array<i32: 1, -2>, b = array<f32>, c = array<i1: true>} : () -> () loc(unknown)
"a.b"() {d = [1, "x", @f::@g, #d.e<<"x">, !t.u<i32>]} : () -> () loc("n")
"a.b"() {a = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>, b = dense<"0x0102"> : tensor<2xui8>} : () -> ()
"a.b"() {c = dense<1.0> : tensor<4xf16>} : () -> ()
"a.b"() {a = dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>, b = dense<> : tensor<0xi1>} : () -> ()
"a.b"() {c = dense<true> : tensor<3xi1>} : () -> ()
"a.b"() {a = dense_resource<r> : tensor<2xi32>, b = {x = 1, "y z" = {}}} : () -> ()
"a.b"() : () -> () loc(callsite("n"("f":1:2) at fused<"m">["a":1:1, unknown]))
#loc1 = loc("f":1:1)
!t = tensor<?x4xf32, #dims<2 * b + floordiv(s{1..64} + 1, 2)>>
%0:2 = "a.c"() : () -> (!t, tuple<i32, tuple<>>) loc(#loc1)
"a.d"(%0#0) ({^bb0(%a: i32): "a.e"(%a)[^bb1, ^bb0] : (i32) -> () ^bb1: "a.f"() : () -> ()}, {}) : (!t) -> ()
{-# dialect_resources: {builtin: {r: "0x040000000100000002000000"}} #-}
"""


@cache
def _texts() -> list[str]:
    files = [*(ROOT / "tests/compiler/passes").glob("*.mlir"), *(ROOT / "tests/compiler/refusals").glob("*.mlir")]
    files += [ROOT / "examples/simple_mul.generic.mlir", ROOT / "examples/dot.hl_seq.mlir"]
    texts = [_RARE, *_RARE.strip().splitlines()]
    for path in sorted(files):
        texts += [part for case in path.read_text().split("// -----\n") for part in case.split("// =====")]
    return texts


@cache
def _pool() -> list[str]:
    return sorted({token for text in _texts() for token in Tokens(text, "t").tokens if token})


def seeds():
    return [text.encode() for text in _texts() if len(text) <= 4096]


def mutate(choose: random.Random, data: bytes) -> bytes:
    tokens = [token for token in Tokens(data.decode(errors="ignore"), "t").tokens if token]
    return " ".join(tokens_mutated(choose, tokens, _pool())).encode()


def one_input(data: bytes) -> None:
    try:
        module = parse(data.decode(errors="ignore"))
    except ParseError as error:
        check(error.line >= 1 and error.column >= 1, f"{error} is at no place")
        return
    verify(module)
    for locations in (True, False):
        text = print_module(module, locations)
        try:
            again = print_module(parse(text), locations)
        except ParseError as error:
            raise AssertionError(f"what is printed is not parsed: {error}\n{text}") from None
        check(again == text, f"what is printed is parsed to something else:\n{text}\n{again}")
