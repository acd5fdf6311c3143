"""Whatever form a program comes in, the same IR comes out; what is no program gives one clear error."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError, ParseError
from orchestrion.compiler.frontend.source import KINDS, read_source
from orchestrion.compiler.frontend.stablehlo import load_module
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseElements, DictAttr, StringAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.printer import print_module
from orchestrion.schema.hints import install

jax = pytest.importorskip("jax")
jnp = jax.numpy

Xla = Callable[..., list[np.ndarray[Any, Any]]]
WEIGHTS = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
MASK = np.arange(40) % 3 == 0


def model(x: Any, bias: Any) -> Any:
    return {"y": jnp.where(MASK[:, None], WEIGHTS, 0.5).T @ x + bias, "n": x.sum()}


@pytest.fixture(scope="module")
def lowered() -> Any:
    return jax.jit(model).lower(jnp.ones((40, 3)), jnp.ones((3,)))


@pytest.fixture(scope="module")
def exported() -> Any:
    return jax.export.export(jax.jit(model))(jnp.ones((40, 3)), jnp.ones((3,)))


def texts(lowered: Any) -> dict[str, Any]:
    """The same module in each form that is no file."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _stablehlo

    operation = lowered.compiler_ir("stablehlo").operation
    with operation.context:  # serializing changes the module, so a copy is serialized
        module = ir.Module.parse(operation.get_asm(enable_debug_info=True))
    bytecode = _Bytes()
    operation.write_bytecode(bytecode)
    return {
        "generic": operation.get_asm(print_generic_op_form=True, enable_debug_info=True),
        "pretty": operation.get_asm(enable_debug_info=True),
        "bytecode": bytes(bytecode),
        "artifact": _stablehlo.serialize_portable_artifact(module, "1.9.0"),
        "object": lowered.compiler_ir("stablehlo"),
    }


class _Bytes(bytearray):
    def write(self, data: bytes) -> int:
        self.extend(data)
        return len(data)


def simplified(source: Any) -> str:
    """After the phase `stablehlo`, which makes them alike: the pretty form leaves out defaults and some locations."""
    return print_module(Compilation().module(source, "stablehlo"), locations=False)


def test_every_form_gives_the_same_program(lowered: Any) -> None:
    forms = texts(lowered)
    assert set(forms) == set(KINDS)
    found = {}
    for kind, source in forms.items():
        assert read_source(source).kind == kind
        found[kind] = simplified(source)
        assert any(isinstance(op.get("value"), DenseElements) for op in load_module(source).walk())
    assert len(set(found.values())) == 1


def test_exported_functions_are_read(exported: Any) -> None:
    module = load_module(exported)
    assert module.find("main") is not None
    values = [op.properties["value"] for op in module.walk() if op.name == "stablehlo.constant"]
    large = [v.array() for v in values if isinstance(v, DenseElements) and v.nbytes == WEIGHTS.nbytes]
    assert len(large) == 1 and np.array_equal(large[0], WEIGHTS)


def test_exported_functions_that_jax_writes_as_composites_are_expanded(xla: Xla) -> None:
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)

    def function(x: Any) -> Any:
        return jax.nn.gelu(x, approximate=False), jnp.arctan(x), jax.lax.lgamma(x)

    text = simplified(jax.export.export(jax.jit(function))(x))
    assert "call" not in text and "composite" not in text
    for got, want in zip(xla(text, x), jax.jit(function)(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_functions_that_jax_writes_as_composites_are_ops() -> None:
    """As if they were not exported: their decompositions are less exact."""

    def function(x: Any) -> Any:
        inverse = jnp.arcsin(x), jnp.arccos(x), jnp.arcsinh(x), jnp.arccosh(x), jnp.arctanh(x)
        return *inverse, jnp.sinh(x), jnp.cosh(x), jax.lax.erf(x)

    x = jax.ShapeDtypeStruct((3, 4), jnp.float32)
    exported = jax.export.export(jax.jit(function))(x)
    assert exported.mlir_module().count("stablehlo.composite") == 8
    assert simplified(exported) == simplified(jax.jit(function).lower(x))


def test_exported_functions_with_shardings_are_read() -> None:
    from jax.sharding import NamedSharding, PartitionSpec

    spec = NamedSharding(jax.sharding.Mesh(np.array(jax.devices()[:1]), ("a",)), PartitionSpec("a"))
    constrained = jax.jit(lambda x: jax.lax.with_sharding_constraint(jnp.sin(x), spec), in_shardings=spec)
    shape = jax.ShapeDtypeStruct((6,), "float32")
    exported = jax.export.export(constrained)(shape)
    assert "sdy.mesh" in exported.mlir_module()
    assert simplified(exported) == simplified(constrained.lower(shape))
    assert "sdy" not in simplified(exported)


def test_bytecode_with_sharding_rules_is_read() -> None:
    """JAX puts `sdy.sharding_rule` at its linear algebra, also for one device."""
    lowered = jax.jit(jnp.linalg.inv).lower(jax.ShapeDtypeStruct((3, 3), "float32"))
    assert "sdy.sharding_rule" in lowered.as_text()
    bytecode = _Bytes()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(bytecode)
    assert simplified(bytes(bytecode)) == simplified(lowered)


def test_a_lowered_function_has_the_trees_besides(lowered: Any) -> None:
    module, with_trees = load_module(lowered.compiler_ir("stablehlo")), print_module(load_module(lowered))
    assert "orchestrion.trees" not in print_module(module)
    main = module.find("main")
    assert main is not None
    texts = re.findall(r', orchestrion.trees = "(?:[^"\\]|\\.)*"', with_trees)
    assert len(texts) == 1 and with_trees.replace(texts[0], "") == print_module(module)


def attributes(func: Operation, key: str) -> list[DictAttr]:
    given = func.properties[key]
    assert isinstance(given, ArrayAttr)
    return [item for item in given if isinstance(item, DictAttr)]


def test_arguments_and_results_get_the_names_of_the_source(lowered: Any) -> None:
    main = load_module(lowered).find("main")
    assert main is not None
    names = [item.get("orchestrion.name") for item in attributes(main, "arg_attrs")]
    assert names == [StringAttr("x"), StringAttr("bias")]
    names = [item.get("orchestrion.name") for item in attributes(main, "res_attrs")]
    assert names == [StringAttr("result['n']"), StringAttr("result['y']")]


def test_donation_is_kept() -> None:
    lowered = jax.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(4))
    main = load_module(lowered).find("main")
    assert main is not None
    (found,) = attributes(main, "arg_attrs")
    assert found.get("tf.aliasing_output") is not None or found.get("jax.buffer_donor") is not None
    module = Compilation().module(lowered, "stablehlo")
    main = module.find("main")
    assert main is not None and set(attributes(main, "arg_attrs")[0].mapping) <= {
        "tf.aliasing_output",
        "jax.buffer_donor",
        "orchestrion.name",
    }


def test_locations_are_those_of_the_python_source(lowered: Any) -> None:
    adds = [op for op in load_module(lowered).walk() if op.name == "stablehlo.dot_general"]
    assert len(adds) == 1 and "test_frontend.py" in str(adds[0].loc) and "jit(model)/dot_general" in str(adds[0].loc)


def test_a_file_is_known_by_its_content(tmp_path: Path, lowered: Any) -> None:
    forms = texts(lowered)
    wanted = simplified(forms["generic"])
    for kind in ("generic", "pretty", "bytecode", "artifact"):
        path = tmp_path / f"{kind}.anything"
        path.write_bytes(forms[kind].encode() if isinstance(forms[kind], str) else forms[kind])
        assert read_source(path).kind == kind
        assert simplified(str(path)) == wanted


PRETTY = "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n  return %arg0 : tensor<4xf32>\n}\n"


def test_the_folder_of_a_file_is_not_in_the_module(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(PRETTY)
    (tmp_path / "g.mlir").write_text('"builtin.module"() ({\n^bb0:\n}) : () -> ()')
    for name in ("a.mlir", "g.mlir"):
        text = print_module(load_module(tmp_path / name))
        assert name in text and str(tmp_path) not in text and '"-"' not in text


def test_constants_keep_every_bit_in_every_type() -> None:
    """Large ones come from jaxlib's memory, small ones as text."""
    for dtype in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
    ):
        for count in (3, 100):
            bits = np.random.default_rng(count).integers(0, 256, count * 8, dtype=np.uint8)
            values = (bits[:count] & 1).view(bool) if dtype == "bool" else bits.view(dtype)[:count]
            with jax.enable_x64(True):
                lowered = jax.jit(lambda values=values: values).lower()
            (found,) = [op.properties["value"] for op in load_module(lowered).walk() if op.name == "stablehlo.constant"]
            assert isinstance(found, DenseElements) and found.array().tobytes() == values.tobytes(), dtype


def test_what_jax_export_serializes_is_read(tmp_path: Path) -> None:
    """The program itself, also where its gradient lies beside it."""
    exported = jax.export.export(jax.jit(lambda x: jnp.sin(x).sum()))(jax.ShapeDtypeStruct((3,), jnp.float32))
    for order in (0, 1):
        file = tmp_path / f"order{order}.bin"
        file.write_bytes(exported.serialize(vjp_order=order))
        assert simplified(file) == simplified(exported.mlir_module_serialized)
    data = bytes(exported.serialize())
    for cut in range(0, data.find(b"ML\xefR") + len(exported.mlir_module_serialized) - 9, 7):
        with pytest.raises(CompileError):
            load_module(data[:cut] + b"\xff" * 9)


WRONG: list[tuple[Any, str]] = [
    ("no/such/file.mlir", "no/such/file.mlir: No such file or directory"),
    ("a\0b", "'a\\x00b': embedded null byte"),
    (b"", "<bytes>: contains no program"),
    ("// only a comment\n", "<text>: contains no program"),
    (b"\x7fELF\x02\x01\x01\x00\xff", "<bytes>: no StableHLO, this is native code"),
    (b"\x40\0\0\0\x10\0\0\0ORCH\0\0", "<bytes>: no StableHLO, this is a compiled module already: vm-run runs it"),
    (b"\x80\x01\x02\x03", "<bytes>: neither MLIR text nor bytecode; begins with 80 01 02 03"),
    ("Dear compiler,\n", "<text>: not MLIR: line 1 begins with 'Dear compiler,'"),
    (42, "cannot compile an object of type int, it must be a function, a path, text, bytes, a Traced, Lowered or"),
    (
        '"builtin.module"() ({\n}) : () -> ()',
        "<text>:1:1: builtin.module: needs one region of one block, has blocks [0]",
    ),
    ('"builtin.module"() : () -> ()\n', "<text>:1:1: builtin.module: needs one region of one block, has blocks []"),
    (b"ML\xefR\x06garbage", "<bytes>"),
    (b"ML\xefR\x0dStableHLO_v1.9.0\0garbage", "<bytes>: jaxlib cannot read the artifact: "),
]


@pytest.mark.parametrize(("source", "message"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_what_is_no_program_is_refused(source: Any, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiler.compile(source)
    assert message in str(caught.value)


def test_pretty_text_that_is_wrong_says_where() -> None:
    text = "func.func @main(%arg0: tensor<4xf32>) -> tensor<5xf32> {\n  return %arg0 : tensor<4xf32>\n}\n"
    with pytest.raises(CompileError) as caught:
        load_module(text)
    assert str(caught.value).startswith("<text>:2:3: ") and "doesn't match function result type" in str(caught.value)
    with pytest.raises(CompileError, match="<text>:1:12: "):
        load_module("func.func @\n")


def test_generic_text_that_is_wrong_says_where() -> None:
    with pytest.raises(ParseError, match=r"<text>:2:3: expected an operation in generic form, '}' or a block"):
        load_module('"builtin.module"() ({\n  func.func\n}) : () -> ()')


def test_what_jaxlib_does_not_know_is_refused_by_us() -> None:
    ops = ['"some.op"() : () -> ()', '"other.op"() {name = "x"} : () -> ()']
    body = "".join(f"    {op}\n" for op in ops)
    with pytest.raises(CompileError) as caught:
        compiler.compile(f"module {{\n  func.func @main() {{\n{body}    return\n  }}\n}}\n")
    said = [str(diagnostic) for diagnostic in caught.value.diagnostics]
    assert said[:2] == [
        "<text>:3:5: some.op: is not supported (dialect some)",
        '<text>:4:5: other.op: is not supported (dialect other; name = "x")',
    ]


def test_without_jaxlib_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from orchestrion.compiler.frontend import jaxlib_parent
    from orchestrion.schema.child_process import Child

    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib" / "__init__.py").write_text("raise ImportError('no jaxlib here')")
    monkeypatch.syspath_prepend(tmp_path)
    child = Child(jaxlib_parent._ANSWER)
    monkeypatch.setattr(jaxlib_parent, "_child", child)
    with pytest.raises(CompileError, match=f"no jaxlib here.*{re.escape(install('stablehlo'))}; the generic form"):
        load_module(PRETTY)
    child.end()


def test_nothing_heavy_is_imported_for_the_generic_form() -> None:
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from orchestrion.compiler.frontend.stablehlo import load_module\n"
        "load_module('\"builtin.module\"() ({\\n^bb0:\\n}) : () -> ()')\n"
        "print([name for name in ('jax', 'jaxlib', 'numpy', 'flatbuffers') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
