"""Weights outside the module: the same bits as with constants, on every device; others without another module."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from orchestrion import compiler, vm  # noqa: E402
from orchestrion.compiler.errors import CompileError  # noqa: E402
from orchestrion.compiler.pipeline import FIRST_PHASE, PHASES  # noqa: E402
from orchestrion.schema.container import open_bytes  # noqa: E402
from orchestrion.schema.decoder import decode  # noqa: E402
from orchestrion.schema.dtypes import of_numpy  # noqa: E402
from orchestrion.schema.errors import ModuleError  # noqa: E402
from orchestrion.schema.parameters import parameters_of  # noqa: E402
from orchestrion.schema.safetensors import Values, open_file, write_file  # noqa: E402
from orchestrion.schema.writer import write  # noqa: E402
from orchestrion.vm.errors import ParameterError  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from real_programs import PROGRAMS  # noqa: E402

Array = np.ndarray[Any, Any]
LoadOn = Callable[..., Any]
DEVICES = ("reference", "opencl", "vulkan")
REAL = [row for row in PROGRAMS if row.name in ("convnet", "convnet_gradient", "resnet18", "encoder", "unet_block")]


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def floats(*shape: int, dtype: str = "float32") -> Array:
    return np.asarray(rng().normal(size=shape), dtype)


def saved(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> Path:
    rows = {name: Values(of_numpy(array.dtype), array.shape, array) for name, array in arrays.items()}
    write_file(path, rows, metadata)
    return path


def loaded_arrays(path: Path) -> dict[str, Array]:
    file = open_file(path)
    return {
        name: np.frombuffer(file.bytes_of(name), row.dtype.numpy).reshape(row.dims)
        for name, row in file.tensors.items()
    }


def layers(p: Mapping[str, Any], x: Any) -> Any:
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["w"].T


def network() -> tuple[dict[str, Array], Array]:
    return {"w": floats(48, 48), "b": floats(48)[::-1].copy()}, floats(4, 48)


def constant_network() -> Any:
    p, x = network()
    return jax.jit(lambda x: layers(p, x)).lower(x)


def argument_network(**options: Any) -> Any:
    return jax.jit(layers, **options).lower(*network())


def as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(jax.tree.leaves(results))


def same_bits(got: Any, want: Any) -> bool:
    pairs = zip(as_tuple(got), as_tuple(want), strict=True)
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("program", REAL, ids=lambda program: program.name)
def test_real_programs_give_the_same_bits(
    program: Any, device: str, load_on: LoadOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every weight of 64 bytes and more is a parameter: folding, packing and layouts happen at load instead."""
    if device == "opencl" and program.many_kernels and os.environ.get("ORCHESTRION_REAL_PROGRAMS") != "all":
        pytest.skip("building these kernels takes an OpenCL driver half a minute")
    monkeypatch.setattr("orchestrion.compiler.stablehlo.functions.mark_parameters.MIN_PARAMETER_BYTES", 64)
    function, (weights, *rest) = program.made()
    with jax.enable_x64(False):
        lowered = jax.jit(lambda *rest: function(weights, *rest)).lower(*rest)
        constant = compiler.compile(lowered, targets=[device])
        outside = compiler.compile(lowered, targets=[device], parameters=tmp_path / "w.safetensors")
    held = sum(row.nbytes for row in jax.tree.leaves(weights))
    assert len(outside) < len(constant) - held // 2
    arguments = jax.tree.leaves(rest)
    want = load_on(constant, device).main(*arguments)
    assert same_bits(load_on(outside, device, parameters=tmp_path / "w.safetensors").main(*arguments), want)


@pytest.mark.parametrize("device", DEVICES)
def test_arguments_become_parameters(device: str, load_on: LoadOn, tmp_path: Path) -> None:
    p, x = network()
    plain = load_on(compiler.compile(argument_network(), targets=[device]), device)
    names = [value.name for value in plain.exports[0].arguments]
    assert names == ["p['b']", "p['w']", "x"]
    blob = compiler.compile(argument_network(), targets=[device], parameter_arguments=["p"])
    file = saved(tmp_path / "p.safetensors", {"p['w']": p["w"], "p['b']": p["b"]})
    program = load_on(blob, device, parameters=file)
    assert [value.name for value in program.exports[0].arguments] == ["x"]
    # BLAS adds in another order where a weight was transposed at load
    same = partial(np.allclose, rtol=1e-5, atol=1e-5) if device == "reference" else same_bits
    assert same(program.main(x), plain.main(p["b"], p["w"], x))
    other = {"p['w']": p["w"] * 2, "p['b']": p["b"] + 1}
    assert same(load_on(blob, device, parameters=other).main(x), plain.main(other["p['b']"], other["p['w']"], x))


@pytest.mark.sampled
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "int8", "uint16", "bool", "complex64"])
def test_types_that_devices_only_store(dtype: str, device: str, load_on: LoadOn, tmp_path: Path) -> None:
    weights = np.asarray(rng().integers(0, 3, (64, 64)), jnp.dtype(dtype))
    x = np.asarray(rng().integers(0, 3, (64, 64)), weights.dtype)

    def function(w: Any, x: Any) -> Any:
        return jnp.where(x == w, x, jnp.transpose(w))

    with jax.enable_x64(False):
        lowered = jax.jit(function).lower(weights, x)
        plain = compiler.compile(lowered, targets=[device])
        marked = compiler.compile(lowered, targets=[device], parameter_arguments=["w"])
        closed = jax.jit(lambda x: function(weights, x)).lower(x)
        constant = compiler.compile(closed, targets=[device], parameters=tmp_path / "c.safetensors")
    want = load_on(plain, device).main(weights, x)
    assert same_bits(load_on(marked, device, parameters={"w": weights}).main(x), want)
    assert [row.dtype for row in open_file(tmp_path / "c.safetensors").tensors.values()] == [of_numpy(weights.dtype)]
    assert same_bits(load_on(constant, device, parameters=tmp_path / "c.safetensors").main(x), want)


def test_types_that_safetensors_lacks_stay_constants(tmp_path: Path) -> None:
    weights = np.asarray(rng().integers(-8, 8, (128, 64)), jnp.int4)
    lowered = jax.jit(lambda x: x + jnp.asarray(weights).astype(jnp.int8)).lower(np.zeros((128, 64), np.int8))
    blob = compiler.compile(lowered, targets=["reference"], parameters=tmp_path / "p.safetensors")
    assert not open_file(tmp_path / "p.safetensors").tensors
    assert np.array_equal(vm.load(blob).main(np.zeros((128, 64), np.int8)), weights.astype(np.int8))
    arguments = jax.jit(lambda w, x: x + w.astype(jnp.int8)).lower(weights, np.zeros((128, 64), np.int8))
    with pytest.raises(CompileError, match="w, of type tensor<128x64xi4> cannot be a parameter: safetensors has no"):
        compiler.compile(arguments, targets=["reference"], parameter_arguments=["w"])


def test_equal_constants_stay_apart(tmp_path: Path) -> None:
    """A module merges equal constants; parameters of equal values may get different ones later."""
    first, second = floats(40, 40), floats(40, 40)
    lowered = jax.jit(lambda x: (x @ first) @ second).lower(floats(2, 40))
    blob = compiler.compile(lowered, targets=["reference"], parameters=tmp_path / "p.safetensors")
    arrays = loaded_arrays(tmp_path / "p.safetensors")
    assert len(arrays) == 2 and all(np.array_equal(array, first) for array in arrays.values())
    names = sorted(arrays, key=lambda name: name.endswith(".1"))
    arrays[names[1]] = np.zeros_like(first)
    assert not vm.load(blob, parameters=arrays).main(floats(2, 40)).any()


def test_a_loop_uses_a_parameter(tmp_path: Path) -> None:
    weights, x = floats(40, 40) / 8, floats(2, 40)

    def function(w: Any, x: Any) -> Any:
        stepped, _ = jax.lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=5)
        return jax.lax.while_loop(lambda c: jnp.sum(c * c) > 1e-3, lambda c: (c @ w) * 0.5, stepped)

    plain = vm.load(compiler.compile(jax.jit(function).lower(weights, x), targets=["reference"]))
    closed = jax.jit(lambda x: function(weights, x)).lower(x)
    blob = compiler.compile(closed, targets=["reference"], parameters=tmp_path / "p.safetensors")
    assert same_bits(vm.load(blob, parameters=tmp_path / "p.safetensors").main(x), plain.main(weights, x))


def test_sizes_that_come_with_a_call(tmp_path: Path) -> None:
    """The parameter stands in front of an argument of dynamic size, whose number changes."""
    (batch,) = jax.export.symbolic_shape("b")
    p, x = network()
    shapes = {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in p.items()}
    exported = jax.export.export(jax.jit(layers))(shapes, jax.ShapeDtypeStruct((batch, 48), np.float32))
    plain = vm.load(compiler.compile(exported, targets=["reference"]))
    program = vm.load(
        compiler.compile(exported, targets=["reference"], parameter_arguments=["arg0"]),
        parameters={"arg0['b']": p["b"], "arg0['w']": p["w"]},
    )
    for rows in (1, 3):
        want = plain.main(p["b"], p["w"], x[:rows])
        assert np.allclose(program.main(x[:rows]), want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_every_phase_continues_to_the_same_files(tmp_path: Path) -> None:
    def compiled(source: Any, start: str) -> tuple[bytes, bytes]:
        job = compiler.Compilation(targets=("reference", "spirv"), start=start, parameters=tmp_path / "p.safetensors")
        return write(job.write_parameters(job.rows(source))), (tmp_path / "p.safetensors").read_bytes()

    whole = compiled(constant_network(), FIRST_PHASE)
    assert len(parameters_of(decode(open_bytes(whole[0])))) == 2
    for phase in list(PHASES)[1:]:
        job = compiler.Compilation(targets=("reference", "spirv"), parameters=tmp_path / "x", parameter_arguments=())
        text = job.text(constant_network(), phase)
        assert compiled(text, phase) == whole, phase


def test_values_need_a_file() -> None:
    text = compiler.Compilation(targets=("reference",), parameters=Path("x")).text(constant_network(), "flow")
    job = compiler.Compilation(targets=("reference",), start="flow")
    with pytest.raises(CompileError, match=r"parameters .*dot_general.* have values, and no file"):
        job.write_parameters(job.rows(text))


def test_parameters_are_found_beside_the_module(tmp_path: Path) -> None:
    """By the name they were written under, by their digest in `parameters/`, which comes first; nowhere else."""
    _, x = network()
    place = tmp_path / "net.fb"
    compiler.compile_to_file(constant_network(), place, targets=["reference"], parameters=tmp_path / "net.safetensors")
    want = vm.load(place).main(x)
    module = decode(open_bytes(place.read_bytes()))
    digest = module.attribute("parameters.digest")
    (tmp_path / "parameters").mkdir()
    (tmp_path / "net.safetensors").rename(tmp_path / "parameters" / f"{digest}.safetensors")
    assert same_bits(vm.load(place).main(x), want)
    zeros = {row.name: np.zeros(row.dims, row.dtype.numpy) for row in parameters_of(module)}
    saved(tmp_path / "net.safetensors", zeros)
    assert same_bits(vm.load(place).main(x), want)
    assert not vm.load(place, parameters=tmp_path / "net.safetensors").main(x).any()
    shutil.rmtree(tmp_path / "parameters")
    assert not vm.load(place).main(x).any()
    (tmp_path / "net.safetensors").unlink()
    with pytest.raises(ParameterError, match=rf"none are given.*parameters/{digest}.safetensors or net.safetensors"):
        vm.load(place)
    with pytest.raises(ParameterError, match="none are given"):
        vm.load(place.read_bytes())


@pytest.mark.parametrize(
    "name", ["../net.safetensors", "/etc/x.safetensors", "a\\b.safetensors", "c:x.safetensors", "x"]
)
def test_a_module_names_no_file_elsewhere(name: str, tmp_path: Path) -> None:
    from dataclasses import replace

    job = compiler.Compilation(targets=("reference",), parameters=tmp_path / "net.safetensors")
    rows = job.write_parameters(job.rows(constant_network()))
    attributes = {"parameters.file": name, "parameters.digest": "../" * 20 + "abcd"}
    (tmp_path / "inner").mkdir()
    place = tmp_path / "inner" / "net.fb"
    place.write_bytes(write(replace(rows, attributes=attributes)))
    with pytest.raises(
        ParameterError, match="none are given: parameters=FILE or --parameters=FILE names a safetensors"
    ):
        vm.load(place)


def test_modules_share_a_file_and_a_folder_is_all_its_files(tmp_path: Path) -> None:
    p, x = network()
    blob = compiler.compile(argument_network(), targets=["reference"], parameter_arguments=["p"])
    half = compiler.compile(
        jax.jit(lambda p, x: x @ p["w"]).lower(p, x), targets=["reference"], parameter_arguments=["p"]
    )
    shared = saved(tmp_path / "all.safetensors", {"p['w']": p["w"], "p['b']": p["b"]})
    want = vm.load(blob, parameters=shared).main(x)
    with pytest.raises(ParameterError, match=r"all.safetensors holds \"p\['b'\]\", which the module does not want"):
        vm.load(half, parameters=shared)
    got = vm.load(half, parameters=shared, extra_parameters=True).main(x)
    assert np.allclose(got, x @ p["w"], rtol=1e-5, atol=1e-5)
    (tmp_path / "parts").mkdir()
    parts = [saved(tmp_path / "parts" / f"{name}.safetensors", {f"p['{name}']": p[name]}) for name in ("w", "b")]
    assert same_bits(vm.load(blob, parameters=tmp_path / "parts").main(x), want)
    assert same_bits(vm.load(blob, parameters=parts).main(x), want)
    with pytest.raises(ParameterError, match=r"is in .*w.safetensors and in .*all.safetensors"):
        vm.load(blob, parameters=[*parts, shared])


def test_one_error_names_all_that_does_not_fit(tmp_path: Path) -> None:
    p, _ = network()
    blob = compiler.compile(argument_network(), targets=["reference"], parameter_arguments=["p"])
    file = saved(tmp_path / "p.safetensors", {"p['w']": p["w"].astype(np.float64)[1:], "c": p["b"]})
    with pytest.raises(ParameterError) as caught:
        vm.load(blob, parameters=file)
    text = str(caught.value)
    assert "missing \"p['b']\" (48xf32)" in text
    assert f"\"p['w']\" is 47x48xf64 in {file}, wanted 48x48xf32" in text
    assert f"{file} holds 'c', which the module does not want" in text
    assert "\n" not in text


def test_parameters_for_a_module_without_any(tmp_path: Path) -> None:
    blob = compiler.compile(jax.jit(lambda x: x + 1).lower(floats(3)), targets=["reference"])
    with pytest.raises(ParameterError, match="holds 'w', which the module does not want"):
        vm.load(blob, parameters={"w": floats(3)})


def test_a_file_that_is_not_sound(tmp_path: Path) -> None:
    blob = compiler.compile(argument_network(), targets=["reference"], parameter_arguments=["p"])
    place = tmp_path / "p.safetensors"
    place.write_bytes(b"12345")
    with pytest.raises(ModuleError, match=r"p.safetensors: no safetensors file: 5 bytes"):
        vm.load(blob, parameters=place)
    with pytest.raises(OSError, match="nowhere"):
        vm.load(blob, parameters=tmp_path / "nowhere.safetensors")


def test_elements_at_odd_addresses(tmp_path: Path) -> None:
    """The format does not align anything: other writers' headers may have any length."""
    p, x = network()
    blob = compiler.compile(argument_network(), parameter_arguments=["p"])
    file = saved(tmp_path / "p.safetensors", {"p['w']": p["w"], "p['b']": p["b"]})
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size].rstrip()
    for length in range(len(header), len(header) + 8):
        file.write_bytes(length.to_bytes(8, "little") + header.ljust(length) + data[8 + size :])
        for device in ("reference", "vulkan"):
            want = vm.load(blob, device, parameters={"p['w']": p["w"], "p['b']": p["b"]}).main(x)
            assert same_bits(vm.load(blob, device, parameters=file).main(x), want)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["q"], "no argument is called q; there are p\\['b'\\], p\\['w'\\], x"),
        (["p['w']", "nothing", "p.w"], "no argument is called nothing, p.w"),
    ],
)
def test_arguments_that_are_not_there(names: list[str], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiler.compile(argument_network(), targets=["reference"], parameter_arguments=names)


def test_arguments_that_cannot_be_parameters() -> None:
    with pytest.raises(CompileError, match=r"argument 2, x, of type tensor<4x48xf32> is donated: nothing may write"):
        compiler.compile(argument_network(donate_argnums=1), targets=["reference"], parameter_arguments=["x"])
    (batch,) = jax.export.symbolic_shape("b")
    shape = jax.ShapeDtypeStruct((batch,), np.float32)
    exported = jax.export.export(jax.jit(lambda x: x + 1))(shape)
    with pytest.raises(CompileError, match="only tensors of known size with elements can"):
        compiler.compile(exported, targets=["reference"], parameter_arguments=["arg0"])


def test_derived_constants_are_kept_by_the_values_of_parameters(
    tmp_path: Path, load_on: LoadOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is packed at load is kept; other weights find nothing, the first ones again what was packed of them."""
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path / "cache"))
    p, x = {"w": floats(256, 256), "b": floats(256)}, floats(64, 256)
    lowered = jax.jit(layers).lower(p, x)
    blob = compiler.compile(lowered, targets=["opencl"], encodings="always", parameter_arguments=["p"])
    first = {f"p['{name}']": array for name, array in p.items()}
    second = {name: array * 2 for name, array in first.items()}
    spent, results = [], []
    for values in (first, first, second, first):
        with closing(load_on(blob, "opencl", parameters=values)) as program:
            results.append(program.main(x))
            spent.append(program.statistics()["load"]["dispatches"])
    assert same_bits(results[0], results[1]) and same_bits(results[0], results[3])
    assert not same_bits(results[0], results[2])
    assert np.allclose(results[2], layers({name: 2 * array for name, array in p.items()}, x), rtol=1e-3, atol=1e-2)
    assert spent[0] and spent[2] and spent[1] == spent[3] == 0


def test_a_module_without_parameters_imports_nothing_for_them() -> None:
    code = """
import sys
from orchestrion import vm
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write
text = 'export @f program @p profile "reference" { func @f () -> i32 { %i0 = i32.const 7 return (%i0) } entry @f }'
assert vm.load(write(assemble(text))).f() == 7
names = ("vm.parameters", "vm.adapters", "vm.parameter_trust", "schema.safetensors")
assert not [name for name in names if f"orchestrion.{name}" in sys.modules]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
