"""Programs of strangers: what crashes jaxlib's parser, nests deeply or grows is an error, and the process goes on."""

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from everyday import of_the_day

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError, ParseError
from orchestrion.compiler.frontend import jaxlib_child, jaxlib_parent, jaxlib_reader
from orchestrion.compiler.frontend.stablehlo import load_module
from orchestrion.compiler.ir.aliases import check_aliases
from orchestrion.compiler.ir.attributes import ELIDED, INLINE_BYTES, DenseElements
from orchestrion.compiler.ir.nesting import LONG_STRING, MAX_NESTING, check_nesting
from orchestrion.compiler.ir.printer import print_module
from orchestrion.schema.child_process import ChildLate, ChildUnavailable, Message
from orchestrion.tools import compile as vm_compile

EXAMPLES = Path(__file__).parents[2] / "examples"
FUNC = "func.func @main(%a: tensor<f32>) -> tensor<f32> "
#: one that the parsers of jaxlib reach the end of their stack with
DEEP = 20_000


def with_attribute(text: str, before: str = "") -> str:
    return f"{before}module {{ {FUNC}attributes {{x = {text}}} {{ return %a : tensor<f32> }} }}\n"


def with_location(text: str, before: str = "") -> str:
    return f"{before}module {{ {FUNC}{{ return %a : tensor<f32> loc({text}) }} }}\n"


def chain(n: int, first: str, other: str) -> str:
    """`n` aliases, each of the one before."""
    return "".join(f"{other.format(i, i - 1)}\n" if i else f"{first}\n" for i in range(n))


def nested(start: str, middle: str, end: str, n: int = DEEP) -> str:
    return start * n + middle + end * n


#: brackets show how deep these are; most of them ended the process with SIGSEGV
NESTED = {
    "arrays": with_attribute(nested("[", "", "]")),
    "dictionaries": with_attribute(nested("{a=", "1", "}")),
    "call sites": with_location(nested("callsite(", "unknown", " at unknown)")),
    "names": with_location(nested('"a"(', "unknown", ")")),
    "fused locations": with_location(nested("fused[", "unknown", "]")),
    "tuples": with_attribute(nested("tuple<", "f32", ">")),
    "function types": with_attribute(nested("() -> (", "", ")")),
    "complex types": with_attribute(nested("complex<", "f32", ">")),
    "affine maps": with_attribute(f"affine_map<(d0)->({nested('(', 'd0', ')')})>"),
    "elements": with_attribute(f"dense<{nested('[', '1', ']')}> : tensor<1xf32>"),
    "modules": nested("module {", "", "}") + "\n",
    "regions": f"module {{ {FUNC}{{ {nested(chr(34) + 'x.y' + chr(34) + '() ({', '', '}) : () -> ()')} }} }}\n",
    "encodings": with_attribute(nested("tensor<f32, ", "1", ">")),
    "memory spaces": with_attribute(nested("memref<f32, ", "1", ">")),
    "dialect attributes": with_attribute(f"#foo.x<{nested('<', '', '>')}>"),
    "not closed": with_attribute("[" * DEEP),
    "behind a comment": "// (\r" + with_attribute("[" * DEEP),
    "behind a string": with_attribute('["\\"", ' * DEEP),
    "behind slashes in a dialect attribute": with_attribute("[#foo.x<//>, " * DEEP),
}

#: nothing shows how deep these are, but what happens to the process that reads them
CRASHING = {
    "negations": with_attribute(f"affine_map<(d0)->({'-' * 2 * DEEP}d0)>"),
    "aliases": with_attribute(f"#a{DEEP - 1}", chain(DEEP, "#a0 = 1", "#a{} = [#a{}]")),
    "aliases of types": with_attribute(f"!a{DEEP - 1}", chain(DEEP, "!a0 = i32", "!a{} = tuple<!a{}>")),
    "aliases of locations": with_location(
        f"#loc{DEEP - 1}", chain(DEEP, "#loc0 = loc(unknown)", '#loc{} = loc("x"(#loc{}))')
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_text_nested_too_deeply_is_refused_before_jaxlib_sees_it(name: str) -> None:
    with pytest.raises(ParseError, match="nested too deeply") as caught:
        load_module(NESTED[name].encode())
    assert caught.value.line >= 1 and len(str(caught.value)) < 200


@pytest.mark.parametrize("name", CRASHING)
def test_a_crash_of_jaxlib_is_an_error(name: str) -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(CompileError, match="jaxlib crashed reading it: the process that read it was ended by SIG"):
        load_module(CRASHING[name].encode())
    assert load_module(EXAMPLES / "simple_mul.mlir").find("simple_mul") is not None


def test_the_command_ends_with_status_1_and_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jaxlib")
    for name, text in (("tuples", NESTED["tuples"]), ("aliases", CRASHING["aliases"])):
        (tmp_path / name).write_text(text)
        assert vm_compile.main([str(tmp_path / name), "-o", str(tmp_path / "out.fb")]) == 1
        said = capfd.readouterr().err
        assert said.startswith(f"vm-compile: {name}:") and said.count("\n") == 1
    assert not (tmp_path / "out.fb").exists()


def generic(attribute: str, before: str = "") -> str:
    text = '"func.return"(%a) {x = ' + attribute + "} : (tensor<f32>) -> ()"
    head = (
        '"func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({ ^bb0(%a: tensor<f32>): '
    )
    return f"{before}{head}{text} }}) : () -> ()\n"


#: what our own parser reads: nested, doubling, long
GENERIC = {
    "arrays": (generic(nested("[", "", "]")), "nested too deeply"),
    "regions": (nested('"a.b"() ({', "", "}) : () -> ()"), "nested too deeply"),
    "modules": (nested('"builtin.module"() ({', "", "}) : () -> ()"), "nested too deeply"),
    "tuples": (generic(nested("tuple<", "f32", ">")), "nested too deeply"),
    "sizes": (generic(f"tensor<?xf32, #util.dims<{nested('(', 'b', ')')}>>"), "nested too deeply"),
    "aliases": (generic("#a60", chain(61, "#a0 = 1", "#a{0} = [#a{1}, #a{1}]")), "#a17 stands for more than"),
    "aliases in bodies": (generic("#a60", chain(61, "#a0 = 1", "#a{0} = #f.b<#a{1}, #a{1}>")), "stands for more than"),
    "aliases of types": (generic("!a60", chain(61, "!a0 = i32", "!a{0} = tuple<!a{1}, !a{1}>")), "stands for more"),
    "aliases of locations": (
        generic("#loc60", chain(61, "#loc0 = loc(unknown)", "#loc{0} = loc(fused[#loc{1}, #loc{1}])")).replace(
            "{x = #loc60} : (tensor<f32>) -> ()", ": (tensor<f32>) -> () loc(#loc60)"
        ),
        "stands for more than",
    ),
    "many uses of an alias": (generic(f"[{'#a, ' * 1000}#a]", f"#a = [{'1, ' * 100_000}1]\n"), "the aliases stand for"),
    "powers": (generic(f"tensor<?xf32, #util.dims<{'b*' * DEEP}b>>"), "4096 are the most"),
    "digits": (generic("1" * DEEP), "is not of type i64"),
    "digits of a float": (generic("1" * DEEP + ".0"), "is not of type f64"),
    "exponent": (generic("1e" + "9" * DEEP), "is not of type f64"),
    "digits of a size": (generic(f"tensor<{'9' * DEEP}xf32>"), "a dimension does not fit 64 bits"),
}


@pytest.mark.parametrize("name", GENERIC)
def test_generic_text_out_of_proportion_is_refused(name: str) -> None:
    text, message = GENERIC[name]
    start = time.process_time()
    with pytest.raises(CompileError, match=message) as caught:
        load_module(text.encode())
    assert len(str(caught.value)) < 400
    assert time.process_time() - start < 30


#: pretty text whose aliases double, and what is said of it
DOUBLING = {
    "attributes": with_attribute("#a60", chain(61, "#a0 = 1", "#a{0} = [#a{1}, #a{1}]")),
    "on one line": with_attribute("#a60", chain(61, "#a0 = 1", "#a{0} = [#a{1}, #a{1}]").replace("\n", " ")),
    "dictionaries": with_attribute("#a60", chain(61, "#a0 = 1", "#a{0} = {{x = #a{1}, y = #a{1}}}")),
    "types": with_attribute("!a60", chain(61, "!a0 = i32", "!a{0} = tuple<!a{1}, !a{1}>")),
    "function types": with_attribute("!a60", chain(61, "!a0 = i32", "!a{0} = (!a{1}) ->\n !a{1}")),
    "comments": with_attribute("#a60", chain(61, "#a0 = 1", "#a{0} //x\n = [#a{1}, // (\n #a{1}]")),
    "many uses": with_attribute(f"[{'#a, ' * 1000}#a]", f"#a = [{'1, ' * 100_000}1]\n"),
}


@pytest.mark.parametrize("name", DOUBLING)
def test_aliases_that_double_are_refused(name: str) -> None:
    with pytest.raises(ParseError, match="stands? for more than") as caught:
        check_aliases(DOUBLING[name], "x")
    assert caught.value.line >= 1 and len(str(caught.value)) < 200


def test_aliases_are_counted_before_jaxlib_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxlib_parent._child, "request", lambda *_, **__: pytest.fail("jaxlib was asked"))
    for name in ("attributes", "types", "many uses"):
        with pytest.raises(ParseError, match="stands? for more than"):
            load_module(DOUBLING[name].encode())


def test_aliases_that_do_not_double_are_read() -> None:
    pytest.importorskip("jaxlib")
    used = "".join(f"#b{i} = [#a, #a]\n" for i in range(1000))
    digits = "00000000" * (1 << 18)
    text = "".join(
        (
            f'#w = dense<"0x{digits}"> : tensor<{1 << 18}xf32>\n#a = 1 : i32\n!t = {TENSOR}\n{used}',
            "module { func.func @main(%a: !t) -> !t attributes {x = #b999} { return %a : !t loc(#loc1) }\n",
            f"func.func private @w() {{ return }} }}\n// {'#b1 ' * 1000}\n",
            '#loc1 = loc("x"(unknown))\n',
        )
    )
    assert load_module(text.encode()).find("main") is not None


@pytest.mark.parametrize("unit", ["#a=", "#a", "! //", "#a = [", "#a//x\n", "#a = #a\n", '"', "#a=(", "!-", "#a\n"])
def test_counting_aliases_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    try:
        check_aliases(unit * 100_000, "x")
    except ParseError as error:
        assert error.line >= 1
    assert time.process_time() - start < 10


def test_regions_as_deep_as_the_limit_allows_leave_no_recursion_error() -> None:
    pytest.importorskip("jaxlib")
    for depth in (MAX_NESTING // 4, MAX_NESTING // 2, MAX_NESTING - 4):
        text = "%r0 = stablehlo.add %a, %a : tensor<f32>"
        for i in range(1, depth):
            branches = (
                f"({{ {text}\n stablehlo.return %r{i - 1} : tensor<f32> }}, {{ stablehlo.return %a : tensor<f32> }})"
            )
            text = f'%r{i} = "stablehlo.if"(%p) {branches} : (tensor<i1>) -> tensor<f32>'
        body = f"%p = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>\n{text}"
        program = f"module {{ {FUNC}{{ {body}\n return %r{depth - 1} : tensor<f32> }} }}\n"
        try:
            Compilation(targets=("reference",)).rows(program.encode())
        except CompileError as error:
            assert "nested too deeply" in str(error)


COUNTED = [
    ("(" * MAX_NESTING, True),
    ("(" * (MAX_NESTING + 1), False),
    ("()" * MAX_NESTING, True),
    ("([" * (MAX_NESTING // 2) + "<", False),
    ('"' + "(" * MAX_NESTING * 2 + '"', True),
    ("//" + "(" * MAX_NESTING * 2, True),
    ("//\n" + "(" * MAX_NESTING * 2, False),
    ("//\r" + "(" * MAX_NESTING * 2, False),
    ("() -> " * MAX_NESTING * 2, True),
    ("(x >= 0) (x <= 0)" * MAX_NESTING, True),
    ("(]" * (MAX_NESTING + 1), False),
    ('"\\"' + "(" * MAX_NESTING * 2 + '"', True),
    ('"a" "b"' + "(" * MAX_NESTING * 2, False),
    ("#a.b<//>" + "(" * MAX_NESTING * 2, False),
    ('"0x' + "0" * LONG_STRING * 2 + '"' + "(" * MAX_NESTING, True),
    ('"0x' + "0" * LONG_STRING * 2 + '"' + "(" * MAX_NESTING + "<", False),
    ('"a"0x' + "0" * LONG_STRING * 2 + "(" * MAX_NESTING * 2 + '"', False),
]


@pytest.mark.parametrize(("text", "fits"), COUNTED, ids=range(len(COUNTED)))
def test_brackets_are_counted_where_they_are_brackets(text: str, fits: bool) -> None:
    if fits:
        check_nesting(text, "x")
        return
    with pytest.raises(ParseError, match=f"more than {MAX_NESTING} brackets are open"):
        check_nesting(text, "x")


@pytest.mark.parametrize("unit", ["[", '"', '"\\', '"0x', "//", "->", '("0x', "#a<//", "()", "<{", "(]", "'"])
def test_counting_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    for text in (unit * 150_000, unit * 150_000 + "\n" + "(" * MAX_NESTING * 2):
        try:
            check_nesting(text, "x")
        except ParseError as error:
            assert error.line >= 1
    assert time.process_time() - start < 10


# what is read in the child


@pytest.fixture(scope="module")
def forms() -> dict[str, bytes]:
    """Bytecode and an artifact of a program with large constants."""
    jax = pytest.importorskip("jax")
    import numpy as np

    weights = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    mask = np.arange(40) % 3 == 0
    turns = np.exp(1j * np.arange(30)).astype(np.complex64)

    def model(x: Any) -> Any:
        y = jax.numpy.where(mask[:, None], weights, 0.5).T @ x
        return jax.lax.fori_loop(0, 3, lambda i, v: v + i, y), jax.numpy.abs(turns[:, None] * x[0])

    lowered = jax.jit(model).lower(jax.numpy.ones((40, 3)))
    operation = lowered.compiler_ir("stablehlo").operation
    written = _Bytes()
    operation.write_bytecode(written)
    text = operation.get_asm(enable_debug_info=True)
    exported = jax.export.export(jax.jit(model))(jax.numpy.ones((40, 3)))
    return {
        "bytecode": bytes(written),
        "pretty": text.encode(),
        "artifact": exported.mlir_module_serialized,
        "object": lowered,
    }


class _Bytes(bytearray):
    def write(self, data: bytes) -> int:
        self.extend(data)
        return len(data)


def test_constants_come_back_from_the_child_as_from_this_process(forms: dict[str, Any]) -> None:
    values = {
        name: [op.properties["value"] for op in load_module(source).walk() if op.name == "stablehlo.constant"]
        for name, source in forms.items()
        if name != "artifact"
    }
    assert values["bytecode"] == values["pretty"] == values["object"]
    large = [value for value in values["object"] if isinstance(value, DenseElements) and len(value.data) > 30]
    assert {str(value.type.element) for value in large} == {"f32", "i1", "complex<f32>"}


def test_large_programs_travel_in_files(forms: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    want = print_module(load_module(forms["bytecode"]))
    monkeypatch.setattr(jaxlib_parent, "FILE_TRANSFER_BYTES", 0)
    assert print_module(load_module(forms["bytecode"])) == want
    with pytest.raises(CompileError, match="jaxlib crashed"):
        load_module(CRASHING["aliases"].encode())
    with pytest.raises(CompileError, match="custom op 'nonsense' is unknown"):
        load_module(b"module { nonsense }\n")


def test_what_the_child_says_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (EXAMPLES / "simple_mul.generic.mlir").read_bytes()
    answers = [
        Message({}),
        Message({"text": "x", "constants": []}),
        Message({"text": 1 << 40, "constants": [[False, 4], [False, 4]]}, program),
        Message({"text": len(program), "constants": 3}, program),
        Message({"text": len(program), "constants": [[1, 2, 3]]}, program),
        Message({"text": len(program), "constants": [0]}, program),
        Message({"text": len(program), "constants": [None, -1]}, program),
        Message({"text": 4, "constants": []}, b"\xff\xff\xff\xff"),
        Message({"findings": [1]}),
        Message({"text": math.inf, "constants": []}),
        Message({"findings": [["wrong", "x", "y"]]}),
    ]
    for answer in answers:
        monkeypatch.setattr(jaxlib_parent._child, "request", lambda *_, answer=answer, **__: answer)
        with pytest.raises(CompileError):
            load_module(b"module {}\n")


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (ChildLate("no answer within 30 seconds"), "takes too long to read it: no answer within 30 seconds"),
        (ChildUnavailable("no child process: EAGAIN"), "needs a process in which jaxlib reads it"),
    ],
)
def test_no_answer_is_an_error(raised: Exception, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def request(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(jaxlib_parent._child, "request", request)
    with pytest.raises(CompileError, match=message):
        load_module(b"module {}\n")


def test_a_constant_that_is_used_often_travels_once() -> None:
    pytest.importorskip("jaxlib")
    count, size = 300, 1 << 16
    kind = f"tensor<{size}xf32>"
    uses = "".join(
        f'%c{i} = "stablehlo.constant"() {{value = #w}} : () -> {kind}\n'
        f"%r{i} = stablehlo.add {f'%r{i - 1}' if i else '%a'}, %c{i} : {kind}\n"
        for i in range(count)
    )
    weights = f'#w = dense<"0x{"0000803F0000003F" * (size // 2)}"> : {kind}\n'
    text = weights + program(f"{uses}return %r{count - 1} : {kind}", kind=kind)
    made = jaxlib_child.answer(Message({"kind": "pretty"}, text.encode()))
    assert made.fields["constants"] == [(False, 4 * size), *[0] * (count - 1)]
    assert len(made.data) < 8 * size
    values = [op.properties["value"] for op in load_module(text.encode()).walk() if op.name == "stablehlo.constant"]
    assert len(values) == count and all(value == values[0] for value in values)


def test_splats_of_any_size_stay_one_element() -> None:
    pytest.importorskip("jaxlib")
    for element, value in (("f32", "1.0"), ("i1", "true"), ("complex<f32>", "(1.0, 2.0)"), ("i4", "1")):
        kind = f"tensor<{1 << 38}x{element}>"
        text = program(f"%c = stablehlo.constant dense<{value}> : {kind}\nreturn %c : {kind}", kind=kind)
        found = [
            op.properties["value"]
            for op in Compilation(targets=("reference",)).module(text.encode(), "stablehlo").walk()
            if op.name == "stablehlo.constant"
        ]
        assert found and all(isinstance(value, DenseElements) and value.is_splat for value in found)


def test_the_words_of_the_reader_are_those_of_the_parser() -> None:
    assert jaxlib_reader._ELIDED == ELIDED and jaxlib_reader.MAX_INLINE_ELEMENTS == INLINE_BYTES // 8


#: a crash takes the start of another process
MUTANTS = 40


@pytest.mark.parametrize("form", ["bytecode", "artifact"])
def test_damaged_bytes_are_read_or_refused(form: str, forms: dict[str, bytes], pytestconfig: pytest.Config) -> None:
    whole, source = forms[form], random.Random(11)
    refused, numbers = 0, of_the_day(pytestconfig, range(MUTANTS), 4)
    for _ in numbers:
        try:
            load_module(mutant(source, whole))
        except CompileError as error:
            assert error.diagnostics
            refused += 1
    assert len(numbers) // 3 < refused


def mutant(source: random.Random, whole: bytes) -> bytes:
    """Bytes cut, changed, put in or exchanged; the first ones, by which the form is told, stay."""
    data = bytearray(whole)
    for _ in range(source.choice((1, 1, 2, 4))):
        at = source.randrange(24, len(data))
        match source.randrange(5):
            case 0:
                del data[at:]
                data += bytes(25 - min(25, len(data)))
            case 1:
                data[at] ^= 1 << source.randrange(8)
            case 2:
                data[at] = source.choice((0, 1, 127, 128, 254, 255))
            case 3:
                data[at:at] = source.randbytes(source.choice((1, 2, 8)))
            case _:
                other = source.randrange(24, len(data))
                data[at : at + 8] = data[other : other + 8]
    return bytes(data)


# small programs that grow


TENSOR = "tensor<4xf32>"


def program(body: str, others: str = "", kind: str = TENSOR) -> str:
    return f"module {{ func.func public @main(%a: {kind}) -> {kind} {{\n{body} }}\n{others} }}\n"


def doubling(levels: int, call: str, visibility: str = "private") -> str:
    """`@f1` calls `@f0` twice, `@f2` calls `@f1` twice, ..."""
    kind = f"({TENSOR}) -> {TENSOR}"
    lines = [f"func.func {visibility} @f0(%a: {TENSOR}) -> {TENSOR} {{ return %a : {TENSOR} }}"]
    for level in range(1, levels):
        once, again = (call.format(value=value, callee=f"@f{level - 1}", kind=kind) for value in ("%a", "%0"))
        body = f"%0 = {once}\n%1 = {again}\nreturn %1 : {TENSOR}"
        lines.append(f"func.func {visibility} @f{level}(%a: {TENSOR}) -> {TENSOR} {{\n{body} }}")
    return "\n".join(lines)


CALL = "func.call {callee}({value}) : {kind}"
COMPOSITE = 'stablehlo.composite "x.y" {value} {{decomposition = {callee}}} : {kind}'
CALLS = f"%0 = func.call @f39(%a) : ({TENSOR}) -> {TENSOR}\nreturn %0 : {TENSOR}"
LINE = "tensor<1000000007xcomplex<f32>>"
FLAT = f"tensor<{'1x' * 100}4xf32>"

GROWING: dict[str, tuple[Callable[[], str], str]] = {
    "calls": (lambda: program(CALLS, doubling(40, CALL)), "makes the program larger than 250000 operations"),
    "public functions": (lambda: program(CALLS, doubling(40, CALL, "public")), "larger than 250000 operations"),
    "composites": (lambda: program(CALLS, doubling(40, COMPOSITE)), "larger than 250000 operations"),
    "a transform": (
        lambda: program(
            f"%0 = stablehlo.fft %a, type = FFT, length = [1000000007] : ({LINE}) -> {LINE}\nreturn %0 : {LINE}",
            "",
            LINE,
        ),
        "length 1000000007 has a large prime factor",
    ),
    "rank": (
        lambda: program(
            f"%0 = stablehlo.reshape %a : ({TENSOR}) -> {FLAT}\n"
            f"%1 = stablehlo.reshape %0 : ({FLAT}) -> {TENSOR}\nreturn %1 : {TENSOR}"
        ),
        "rank 101, tensors have 64 axes at the most",
    ),
}


@pytest.mark.parametrize("name", GROWING)
def test_programs_that_grow_out_of_proportion_are_refused(name: str) -> None:
    pytest.importorskip("jaxlib")
    make, message = GROWING[name]
    start = time.process_time()
    with pytest.raises(CompileError, match=message):
        Compilation(targets=("reference",)).rows(make().encode())
    assert time.process_time() - start < 30


def test_an_axis_of_an_empty_tensor_may_be_of_any_size() -> None:
    pytest.importorskip("jaxlib")
    text = program(
        "%c = stablehlo.iota dim = 0 : tensor<1000000000000x0xf32>\n"
        "%d = stablehlo.reshape %c : (tensor<1000000000000x0xf32>) -> tensor<0xf32>\n"
        f"%e = stablehlo.concatenate %a, %d, dim = 0 : ({TENSOR}, tensor<0xf32>) -> {TENSOR}\nreturn %e : {TENSOR}"
    )
    module = Compilation(targets=("reference",)).module(text.encode(), "stablehlo")
    assert "iota" not in print_module(module)
