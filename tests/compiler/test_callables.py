"""Functions as sources of `compile`, and the trees that a module keeps of their arguments and results."""

import inspect
import json
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.frontend.exported import interface_in
from orchestrion.compiler.frontend.source import read_source
from orchestrion.compiler.pipeline import PHASES
from orchestrion.schema import trees
from orchestrion.schema.errors import ModuleError

X = np.arange(3, dtype=np.float32)
PARAMS = {"w": np.full(3, 2, np.float32), "b": np.ones(3, np.float32)}
REFERENCE = {"targets": ["reference"]}


class State(NamedTuple):
    count: object
    moments: object


def dense(params, x):
    return {"y": params["w"] * x + params["b"], "parts": (x, [params["b"]])}


def load(function, *args, kwargs=None):
    return vm.load(compiler.compile(function, *args, kwargs=kwargs, **REFERENCE))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, partial], ids=["function", "jit", "partial"])
def test_a_function_takes_and_gives_its_trees(wrap) -> None:
    with load(wrap(dense), PARAMS, X) as program:
        found = program.main(PARAMS, X)
    assert list(found) == ["parts", "y"] and type(found["parts"]) is tuple and type(found["parts"][1]) is list
    np.testing.assert_array_equal(found["y"], 2 * X + 1)


def test_arguments_go_by_name_and_leaves_are_named_by_path() -> None:
    with load(dense, PARAMS, X) as program:
        assert str(inspect.signature(program.main)) == "(params, x)"
        assert [value.name for value in program.exports[0].arguments] == ["params['b']", "params['w']", "x"]
        assert [value.name for value in program.exports[0].results][-1] == "result['y']"
        np.testing.assert_array_equal(program.main(x=X, params=PARAMS)["y"], 2 * X + 1)


def test_a_call_with_the_flat_arrays_gives_flat_results() -> None:
    with load(dense, PARAMS, X) as program:
        found = program.main(PARAMS["b"], PARAMS["w"], X)
    assert type(found) is tuple and len(found) == 3


STAGES = {
    "Traced": lambda jit, *args: jit.trace(*args),
    "Lowered": lambda jit, *args: jit.trace(*args).lower(),
    "Exported": lambda jit, *args: jax.export.export(jit)(*args),
    "serialized": lambda jit, *args: bytes(jax.export.export(jit)(*args).serialize()),
}


@pytest.mark.parametrize("stage", STAGES)
def test_what_jax_made_of_a_function_has_its_trees(stage: str) -> None:
    """Arguments that nothing uses are there; what JAX left out of the program may be anything."""

    def function(params, unused, x):
        return {**dense(params, x), "none": None}

    made = STAGES[stage](jax.jit(function), {**PARAMS, "more": X}, [X, None], X)
    with load(made) as program:
        found = program.main({**PARAMS, "more": X}, [X, None], x=X)
        np.testing.assert_array_equal(found["y"], 2 * X + 1)
        assert list(found) == ["none", "parts", "y"] and found["none"] is None and type(found["parts"]) is tuple
        shown = str(inspect.signature(program.main))
        assert shown == ("(params, unused, x)" if stage == "Traced" else "(params, arg1, x)")
        if stage != "Traced":
            assert len(program.main.export.arguments) == 3
            program.main(PARAMS, ["anything", None], X)


def test_serialized_trees_of_classes_are_left_out() -> None:
    jax.export.register_namedtuple_serialization(State, serialized_name="test_callables.State")
    made = jax.export.export(jax.jit(lambda state: state.count + state.moments))(State(X, X))
    for source, argument in ((made, State(X, X)), (bytes(made.serialize()), None)):
        with load(source) as program:
            given = (argument,) if argument is not None else (X, X)
            np.testing.assert_array_equal(program.main(*given), 2 * X)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(0, 255))
def test_damaged_serialized_exports_have_trees_or_none(place: int, byte: int) -> None:
    data = bytearray(_serialized())
    data[place % len(data)] = byte
    found = interface_in(bytes(data))
    assert found is None or trees.decode(trees.encode(found.trees), *found.counts)


@cache
def _serialized() -> bytes:
    def function(params, x):
        return dense(params, x)

    return bytes(jax.export.export(jax.jit(function))(PARAMS, X).serialize())


def test_trees_lose_the_arguments_that_files_hold() -> None:
    def function(params, x, *, scale):
        return {"y": params["w"] * x * scale + params["b"]}

    given = {"kwargs": {"scale": np.float32(2)}, "targets": ["reference"]}
    whole = compiler.compile(function, PARAMS, X, parameter_arguments=["params"], **given)
    values = {f"params[{name!r}]": value for name, value in PARAMS.items()}
    with vm.load(whole, parameters=values) as program:
        assert str(inspect.signature(program.main)) == "(x, *, scale)"
        np.testing.assert_array_equal(program.main(X, scale=3)["y"], 6 * X + 1)
    part = compiler.compile(function, PARAMS, X, parameter_arguments=["params['w']", "scale"], **given)
    with vm.load(part, parameters={"params['w']": PARAMS["w"], "scale": np.float32(3)}) as program:
        assert str(inspect.signature(program.main)) == "(params, x)"
        np.testing.assert_array_equal(program.main({"b": PARAMS["b"]}, X)["y"], 6 * X + 1)


WRONG_CALLS = {
    "target": (ValueError, "no target is called other", lambda: compiler.compile(dense, PARAMS, X, targets="other")),
    "encodings": (
        ValueError,
        "encodings is .other., one of default",
        lambda: compiler.compile(dense, PARAMS, X, encodings="other"),
    ),
    "source": (TypeError, "cannot compile an object of type int", lambda: compiler.compile(3)),
    "examples": (TypeError, "example arguments are given", lambda: compiler.compile("x.mlir", X)),
    "missing": (TypeError, "missing 1 required positional argument: 'x'", lambda: compiler.compile(dense, PARAMS)),
    "value": (ValueError, "cannot be traced", lambda: compiler.compile(lambda x: x * int("three"), X)),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_errors_of_callers_are_errors_of_python(case: str) -> None:
    kind, message, call = WRONG_CALLS[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, compiler.CompileError)


def test_unused_arguments_stay() -> None:
    with load(lambda x, unused: x + 1, X, np.float64(0)) as program:
        np.testing.assert_array_equal(program.main(X, np.float64(7)), X + 1)


def test_keyword_arguments_of_the_example() -> None:
    def scaled(x, *, by):
        return x * by

    with load(scaled, X, kwargs={"by": np.float32(2)}) as program:
        assert str(inspect.signature(program.main)) == "(x, *, by)"
        assert repr(program.main).startswith("<TreeFunction main(x: f32[3], *, by: ")
        np.testing.assert_array_equal(program.main(X, by=np.float32(3)), 3 * X)


def test_static_arguments_are_fixed_and_donated_ones_alias() -> None:
    step = jax.jit(lambda x, n, s: x * n + s, static_argnums=1, donate_argnums=0)
    with load(step, X, 4, np.float32(1)) as program:
        assert program.exports[0].aliases == (0,)
        np.testing.assert_array_equal(program.main(X, np.float32(1)), 4 * X + 1)


def test_symbolic_sizes() -> None:
    (batch,) = jax.export.symbolic_shape("batch")
    with load(lambda t: {"s": t["x"].sum(1)}, {"x": jax.ShapeDtypeStruct((batch, 3), np.float32)}) as program:
        for size in (1, 5):
            np.testing.assert_allclose(program.main({"x": np.ones((size, 3), np.float32)})["s"], np.full(size, 3))


def test_objects_are_taken_as_they_are_and_come_back_as_dicts() -> None:
    def step(state, x):
        return State(state.count + 1, {"m": state.moments["m"] + x}), None

    state = State(np.int32(1), {"m": X})
    with load(step, state, X) as program:
        found, nothing = program.main(state, X)
        assert nothing is None and found["count"] == 2
        again, _ = program.main(found, X)  # what came back goes in
    assert again["count"] == 3
    np.testing.assert_array_equal(again["moments"]["m"], 3 * X)


def test_an_array_stands_for_an_object_that_holds_one() -> None:
    """As those of nnx do in pure dicts."""

    class Box(NamedTuple):
        value: object

    with load(lambda state: state["w"].value + 1, {"w": Box(X)}) as program:
        for given in (Box(X), {"value": X}, X, program.put(X)):
            np.testing.assert_array_equal(program.main({"w": given}), X + 1)
        with pytest.raises(ValueError, match=r"expected f32\[3\], got f32\[2\]"):
            program.main({"w": X[:2]})
        with pytest.raises(TypeError, match=r"state\['w'\]: expected Box or a dict of its fields, got str"):
            program.main({"w": "no array"})


def test_leaves_that_are_no_arrays_are_fixed() -> None:
    def apply(model, x):
        return model["function"](x) * model["scale"], model

    model = {"function": jnp.sin, "scale": np.float32(2)}
    with load(apply, model, X) as program:
        found, given = program.main(model, X)
    np.testing.assert_allclose(found, 2 * np.sin(X), rtol=1e-6)
    assert given["scale"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"w": X}, X), r"params: the dict lacks 'b'"),
        (({**PARAMS, "c": X}, X), r"params: the dict has 'c' besides"),
        (({**PARAMS, "w": np.ones((2, 3), np.float32)}, X), r"params\['w'\]: expected f32\[3\], got f32\[2,3\]"),
        ((PARAMS,), r"'main': argument 'x' is missing"),
        ((PARAMS, X, X, X), r"takes 2 arguments by place, got 4"),
        ((PARAMS, "no array"), r"^x: expected f32\[3\], got str$"),
        ((PARAMS, {"x": X}), r"x: expected an array, got dict"),
    ],
)
def test_errors_name_the_path(arguments, message) -> None:
    with load(dense, PARAMS, X) as program, pytest.raises(vm.VmError, match=message):
        program.main(*arguments)


def test_flat_functions_hold_no_trees_and_take_keywords() -> None:
    with load(lambda x, y: (x + y, x - y), X, X) as program:
        assert program.exports[0].trees == ""
        np.testing.assert_array_equal(program.main(y=X, x=2 * X)[1], X)
        for named, message in (({"y": X}, "'x' is missing"), ({"x": X, "y": X, "z": X}, "'z' is unknown")):
            with pytest.raises(vm.VmError, match=message):
                program.main(**named)


@pytest.mark.parametrize("phase", [name for name in PHASES if name != "bytecode"])
def test_trees_go_through_the_text_of_each_phase(phase, tmp_path) -> None:
    from orchestrion.schema.writer import write

    whole = Compilation(targets=("reference",))
    text = tmp_path / "text.mlir"
    text.write_text(whole.text(read_source(dense, (PARAMS, X)), phase))
    later = Compilation(targets=("reference",), start=phase)
    assert write(later.rows(text)) == write(whole.rows(read_source(dense, (PARAMS, X))))


def test_arguments_of_any_number_are_numbered() -> None:
    def add(*terms, **named):
        return sum(terms) + named["last"]["x"]

    for function in (add, jax.jit(add)):
        for count in (1, 2):
            with load(function, *[X] * count, kwargs={"last": {"x": X}}) as program:
                names = ", ".join([f"arg{number}" for number in range(count)])
                assert str(inspect.signature(program.main)) == f"({names}, *, last)"
    with load(lambda *pairs: pairs[0]["x"], {"x": X}) as program:
        assert str(inspect.signature(program.main)) == "(arg0)"
    with load(jax.jit(lambda pair, x: pair[0] + x), (X, X), X) as program:
        assert str(inspect.signature(program.main)) == "(pair, x)"


def test_the_text_of_a_function_has_its_trees() -> None:
    def make(state, pair, flag):
        return {"one": (state.count,), "rest": [pair[1], None]}

    with load(make, State(X, {"m": X}), [X, X], "fixed") as program:
        assert repr(program.main) == (
            "<TreeFunction main(state: State(count=f32[3], moments={'m': f32[3]}), pair: [f32[3], f32[3]], flag: ...)"
            " -> {'one': (f32[3],), 'rest': [f32[3], None]}>"
        )
    with load(lambda many: many, {f"w{number}": X for number in range(500)}) as program:
        assert len(repr(program.main)) < 2100


def test_wrong_names_and_fields_are_told() -> None:
    with load(lambda pair: pair.moments, State(X, 2 * X)) as program:
        for given, why in (
            ({"count": X}, "pair: expected the fields of State (count, moments), the dict lacks 'moments'"),
            (
                {"count": X, "moments": X, "c": X},
                "pair: expected the fields of State (count, moments), the dict has 'c' besides",
            ),
        ):
            with pytest.raises(TypeError) as refused:
                program.main(given)
            assert str(refused.value) == why
        with pytest.raises(TypeError, match="'main': argument 'pair' is given twice"):
            program.main(State(X, X), pair=State(X, X))
        with pytest.raises(TypeError, match="'main': argument 'pear' is unknown"):
            program.main(State(X, X), pear=X)
        with pytest.raises(TypeError, match="takes 1 argument by place, got 2"):
            program.main(State(X, X), X)


def test_keys_of_jax_random_are_taken() -> None:
    def draw(state, shape):
        return jax.random.normal(state["key"], shape.shape), jax.random.split(state["key"])

    for made in (jax.random.key(3), jax.random.PRNGKey(3)):
        with load(draw, {"key": made}, X) as program:
            found, split = program.main({"key": made}, X)
        np.testing.assert_allclose(found, draw({"key": made}, X)[0], rtol=1e-5)
        assert split.shape == (2, 2)


def test_without_arrays_there_is_nothing_to_compile() -> None:
    with pytest.raises(ValueError, match="draw takes no arrays and gives none"):

        def draw(canvas):
            return canvas

        compiler.compile(draw, object())
    compiler.compile(jax.jit(lambda: None).lower(), targets="reference")


def test_what_cannot_be_traced() -> None:
    with pytest.raises(compiler.CompileError, match="fails cannot be traced: ZeroDivisionError") as found:

        def fails(x):
            return 1 / 0

        compiler.compile(fails, X)
    assert isinstance(found.value.__cause__, ZeroDivisionError)
    with pytest.raises(compiler.CompileError, match="cannot be traced: TypeError"):
        compiler.compile(dense, X)
    with pytest.raises(TypeError, match="a Compiled of JAX holds code for this machine: give the Lowered"):
        compiler.compile(jax.jit(dense).lower(PARAMS, X).compile())
    with pytest.raises(TypeError, match="the second argument is the path of the module, not of type dict"):
        compiler.compile_to_file(dense, PARAMS, X)  # type: ignore[arg-type]
    with pytest.raises(compiler.CompileError, match="example arguments are given with a source of type str"):
        compiler.compile("module {\n}", ["reference"])


def nodes() -> st.SearchStrategy[object]:
    """Trees of arrays, as callers have them."""
    names = st.text("abc", min_size=1, max_size=3)
    return st.recursive(
        st.none() | st.just(X),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(names, inner, max_size=3)
        ),
        max_leaves=8,
    )


@settings(max_examples=60, deadline=None)
@given(nodes())
def test_flattening_agrees_with_jax(tree) -> None:
    from orchestrion.compiler.frontend.callables import _marks_of_leaves, node_of
    from orchestrion.vm.trees import builder, flatten

    leaves, shape = jax.tree.flatten(tree)
    node = node_of(jax, jax.tree.unflatten(shape, _marks_of_leaves(leaves)))
    found: list[object] = []
    flatten(node, tree, "t", found)
    assert len(found) == len(leaves) and all(one is other for one, other in zip(found, leaves, strict=True))
    numbers = range(len(leaves))
    assert builder(node)(numbers) == jax.tree.unflatten(shape, numbers)
    whole = trees.Trees((("t", node),), 0, node)
    assert trees.decode(trees.encode(whole), len(leaves), len(leaves)) == whole


GOOD = {"parameters": [["p", {"dict": [["a", 0]]}]], "keywords": 0, "result": {"tuple": [0]}}


def damaged(**changes: object) -> str:
    return json.dumps({**GOOD, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("7", "an object of parameters"),
        (damaged(keywords=True), "keywords is True"),
        (damaged(keywords=2), "keywords is 2"),
        (damaged(parameters=[["p", 1]]), "the leaves are not the 1 arguments in order"),
        (damaged(parameters=[["p", 0], ["p", None]]), "two parameters have one name"),
        (damaged(parameters=[["p"]]), "rows of 2"),
        (damaged(parameters=[[0, 0]]), "name of a parameter is no text"),
        (damaged(result={"tuple": 0}), "no list"),
        (damaged(result={"tuple": [], "list": [0]}), "no node has list, tuple"),
        (damaged(result={"dict": [["a", 0], ["a", None]]}), "one key twice"),
        (damaged(result={"dict": [[None, 0]]}), "a key of a dict"),
        (damaged(result={"record": "R", "fields": [["f", "eval", 0]]}), "an accessor is none of"),
        (damaged(result=0.5), "a node is 0.5"),
        (json.dumps({**GOOD, "result": 0}).replace('"result": 0', '"result": NaN'), "NaN is no key"),
    ],
)
def test_malformed_trees_of_a_file(text, message) -> None:
    trees.decode(json.dumps(GOOD), 1, 1)
    with pytest.raises(ModuleError, match=message):
        trees.decode(text, 1, 1)


def test_trees_nested_too_deeply() -> None:
    node: object = 0
    for _ in range(trees.MAX_DEPTH + 1):
        node = {"list": [node]}
    with pytest.raises(ModuleError, match="nested more than 64 deep"):
        trees.decode(damaged(result=node), 1, 1)


def test_one_name_stands_for_a_list_and_numbers_for_their_text() -> None:
    """Also NumPy's; so they do everywhere."""
    blob = compiler.compile(
        lambda params, x: params["w"] * x + params["b"],
        PARAMS,
        X,
        targets="reference",
        machines="cpu",
        parameter_arguments="params",
        attributes={"model.version": np.int64(3), "limits.deadline": 1.5, "limits.fuel": 2**40},
    )
    values = {f"params['{name}']": value for name, value in PARAMS.items()}
    limits = {"fuel": np.uint8(200), "deadline": np.float32(9), "memory": np.int32(2**30)}
    with vm.load(blob, parameters=values, build_deadline=np.float32(60), **limits) as program:
        assert program.module.attribute("model.version") == "3"
        assert program.module.attribute("limits.deadline") == "1.5"
        np.testing.assert_array_equal(program.main(X), PARAMS["w"] * X + PARAMS["b"])
    for name in (*limits, "device_memory", "build_deadline"):
        with pytest.raises(TypeError, match=f"{name} is 'many', a number expected"):
            vm.load(blob, parameters=values, **{name: "many"})
    with pytest.raises(FileNotFoundError, match="lora.safetensors"):
        vm.load(blob, parameters=values, adapters="lora.safetensors")
    with pytest.raises(ValueError, match="declares native module 'clock'"):
        vm.load(blob, natives="clock")
