"""Calls of Python in a program: one refusal with their places and the ways on, or none where nobody needs them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.compiler.errors import CompileError
from orchestrion.tools import compile as vm_compile

jax = pytest.importorskip("jax")
jnp = jax.numpy
X = np.arange(4, dtype=np.float32)
HERE = Path(__file__)


def said(function: Callable[..., Any], **options: Any) -> list[str]:
    """The lines of the refusal, of which there is one, with names of files only."""
    with pytest.raises(CompileError) as refused:
        compiler.compile(function, X, targets="reference", **options)
    (diagnostic,) = refused.value.diagnostics
    return str(diagnostic).replace(f"{HERE.parent}/", "").splitlines()


def line_of(text: str) -> int:
    """The line of this file that ends with a comment."""
    return next(n for n, line in enumerate(HERE.read_text().splitlines(), 1) if line.endswith(f"# {text}"))


def identity(x: Any) -> Any:
    return x


def printing(x: Any) -> Any:
    jax.debug.print("x = {x}", x=x)  # first print
    jax.debug.print("x = {x}", x=x, ordered=True)  # second print
    return x * 2


def computing(x: Any) -> Any:
    y = jax.pure_callback(identity, jax.ShapeDtypeStruct((4,), np.float32), x)  # computing
    return y + 1


def ignoring(x: Any) -> dict[str, Any]:
    """Prints in a loop, in a branch and in a function; a callback feeds another, and both are for nothing."""
    from jax.experimental import io_callback

    def step(carry: Any, _: Any) -> Any:
        jax.debug.print("{c}", c=carry, ordered=True)
        return carry + 1, carry

    y = io_callback(identity, jax.ShapeDtypeStruct((4,), np.float32), jnp.sin(x))
    jax.debug.callback(identity, y * 2)
    last, all_ = jax.lax.scan(step, x, None, length=3)
    jax.jit(lambda c: jax.debug.print("{c}", c=c, ordered=True))(last)
    last = jax.lax.cond(last[0] > 0, lambda c: (jax.debug.print("{c}", c=c, ordered=True), c)[1], lambda c: -c, last)
    return {"last": last, "all": all_}


def test_one_refusal_names_every_place_and_the_ways_on() -> None:
    head, first, second, *ways = said(printing)
    assert head == "the program calls back into Python, and a module has no Python:"
    assert first.startswith(f"  test_callbacks.py:{line_of('first print')}:")
    assert second.startswith(f"  test_callbacks.py:{line_of('second print')}:")
    assert first.endswith(" in printing: jax.debug.print") and second.endswith(" in printing: jax.debug.print")
    assert 'callbacks="drop" (--callbacks=drop) leaves out those with unused results' in ways
    assert not any("EQX_ON_ERROR" in way for way in ways)


def test_a_callback_whose_result_is_needed_is_refused_by_name() -> None:
    for options in ({}, {"callbacks": "drop"}):
        _, place, *_ = said(computing, **options)
        assert place.startswith(f"  test_callbacks.py:{line_of('computing')}:")
        assert place.endswith(" in computing: jax.pure_callback, whose result is used")


def test_of_several_the_needed_are_refused() -> None:
    lines = said(lambda x: computing(printing(x)), callbacks="drop")
    assert lines[0] == "the program needs results of callbacks into Python, and a module has no Python:"
    assert [line.rpartition(": ")[2] for line in lines[1:] if line.startswith("  ")] == [
        "jax.pure_callback, whose result is used"
    ]
    assert not any("--callbacks=drop" in line for line in lines)


def test_other_refusals_are_said_as_well() -> None:
    text = """func.func @main(%t: !stablehlo.token, %x: tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>) {
      %0 = stablehlo.custom_call @xla_python_cpu_callback(%t, %x) {has_side_effect = true}
        : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
      %1 = "some.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0, %1 : !stablehlo.token, tensor<4xf32>
    }"""
    with pytest.raises(CompileError) as refused:
        compiler.compile(text)
    message = str(refused.value)
    assert "some.op: is not supported" in message and "  <text>:2:12: xla_python_cpu_callback\n" in message
    assert "!stablehlo.token" not in message


@pytest.mark.parametrize("is_jitted", [False, True])
def test_callbacks_that_nobody_needs_are_left_out(is_jitted: bool) -> None:
    """The trees and names of arguments and results are those of the function, though tokens stood among them."""
    made = compiler.compile(jax.jit(ignoring) if is_jitted else ignoring, X, targets="reference", callbacks="drop")
    with vm.load(made, device="reference") as program:
        result = program.main(x=X)
    np.testing.assert_array_equal(result["last"], X + 3)
    np.testing.assert_array_equal(result["all"], [X, X + 1, X + 2])


def test_donated_arguments_are_counted_without_tokens() -> None:
    function = jax.jit(lambda x: (jax.debug.print("{x}", x=x, ordered=True), x * 2)[1], donate_argnums=0)
    with vm.load(compiler.compile(function, X, callbacks="drop", targets="reference"), device="reference") as program:
        given = program.put(X)
        np.testing.assert_array_equal(program.main.on_device(given, donate=0), X * 2)


def test_error_if_is_named_where_its_user_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    eqx = pytest.importorskip("equinox")

    def checked(x: Any) -> Any:
        return eqx.error_if(x, x.sum() < 0, "the sum is negative") * 2  # checked

    lines = said(checked)
    places = [line for line in lines if line.startswith("  ")]
    assert len(places) == 1 and places[0].startswith(f"  test_callbacks.py:{line_of('checked')}:")
    assert places[0].endswith(": eqx.error_if, whose result is used")
    assert any("EQX_ON_ERROR=nan" in line for line in lines)
    assert any("EQX_ON_ERROR=nan" in line for line in said(checked, callbacks="drop"))


def test_error_if_gives_nan_where_it_is_told_to() -> None:
    """What the environment says goes for calls that say nothing; `on_error` is the same for one call."""
    eqx = pytest.importorskip("equinox")

    def checked(x: Any) -> Any:
        return eqx.error_if(x, x.sum() < 0, "the sum is negative", on_error="nan") * 2

    with vm.load(compiler.compile(checked, X, targets="reference"), device="reference") as program:
        np.testing.assert_array_equal(program.main(X), X * 2)
        assert np.isnan(program.main(-X)).all()


def test_many_places_are_cut_short() -> None:
    def many(x: Any) -> Any:
        for number in range(30):
            exec(compile(f"{chr(10) * number}jax.debug.print('{{x}}', x=x)", "many.py", "exec"), {"jax": jax, "x": x})
        return x

    lines = said(many)
    assert sum(line.startswith("  many.py:") for line in lines) == 20 and "  and 10 others" in lines


def test_a_name_that_means_nothing() -> None:
    with pytest.raises(CompileError, match="callbacks is 'keep', one of refuse, drop expected"):
        compiler.compile(printing, X, callbacks="keep")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "print.mlir", tmp_path / "m.fb"
    source.write_text(jax.jit(printing).lower(X).as_text())
    arguments = [str(source), "-o", str(out), "--target=reference"]
    assert vm_compile.main(arguments) == 1
    assert capsys.readouterr().err.count("calls back into Python") == 1 and not out.exists()
    assert vm_compile.main([*arguments, "--callbacks=drop"]) == 0
    with vm.load(out, device="reference") as program:
        np.testing.assert_array_equal(program.main(X), X * 2)
