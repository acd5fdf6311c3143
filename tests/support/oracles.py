"""Who else runs StableHLO text: XLA for CPU, as JAX calls it, and StableHLO's own interpreter. Needs jaxlib.

Both take `(text, *arrays)` and give the results of `@main`. XLA flushes subnormals; the interpreter keeps them, and may
abort the process. Faults of either that random programs met: `random_judge.py`.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from random_types import COMPLEX, NAMES, NUMPY, REAL, SMALL, literal

# arithmetic in narrow floats is rounded as the program says
_EXACT = "--xla_allow_excess_precision=false"
if _EXACT not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_EXACT}".strip()

Array = np.ndarray[Any, Any]


def xla(text: str, *arrays: Array) -> list[Array]:
    """What `jax.jit` computes on CPU, for the ops too that JAX's Python layer refuses."""
    import jax
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir

    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        program = device.client.compile_and_load(module, _jax.DeviceList((device,)), _jax.CompileOptions())
    return [np.asarray(result) for result in program.execute([jax.device_put(array, device) for array in arrays])]


#: ops at which the interpreter aborts the process
NOT_INTERPRETED = ("stablehlo.batch_norm_inference", "stablehlo.batch_norm_training", "stablehlo.real_dynamic_slice",
                   "stablehlo.cholesky", "stablehlo.fft", "stablehlo.triangular_solve",
                   "stablehlo.rng_bit_generator", "chlo")  # fmt: skip


def interpreter(text: str, *arrays: Array) -> list[Array]:
    """What StableHLO's interpreter computes, which is the specification as a program."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir.dialects import stablehlo

    missing = [name for name in NOT_INTERPRETED if re.search(rf'"{name}[."]', text)]
    if missing:
        raise NotImplementedError(f"the interpreter has no {', '.join(missing)}")
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        types = _results(module)
        if any(t in _PASSED for t in types) or any(NAMES[x.dtype] in COMPLEX for x in arrays):
            module = ir.Module.parse(_converting(text, module))
        passmanager.PassManager.parse("builtin.module(inline{default-pipeline=},symbol-dce)").run(module.operation)
        parts = [[x.real, x.imag] if x.dtype.kind == "c" else [x] for x in arrays]
        arguments = [ir.Attribute.parse(literal(x.copy())) for pair in parts for x in pair]
        found = iter([np.array(x) for x in stablehlo.eval_module(module, arguments)])
    return [_taken(t, found) for t in types]


#: element type of which Python gets no arrays from the interpreter -> the type in which it is passed
_PASSED = {t: "f32" for t in REAL if t not in ("f16", "f32", "f64")} | {t: "i8" for t in SMALL}
_PASSED |= {t: t[8:-1] for t in COMPLEX}


def _main(module: Any) -> Any:
    return next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")


def _results(module: Any) -> list[str]:
    return [str(t.element_type) for t in _main(module).type.results]


def _converting(text: str, module: Any) -> str:
    """The program with a `@main` around its own, which takes and gives what comes in and out."""
    kind = _main(module).type
    taken: list[tuple[str, str]] = []
    lines, values = [], []
    for i, t in enumerate(kind.inputs):
        element, made = str(t.element_type), str(t).replace(str(t.element_type), _PASSED.get(str(t.element_type), ""))
        if element in COMPLEX:
            taken += [(f"%a{i}r", made), (f"%a{i}i", made)]
            lines.append(f"%a{i} = stablehlo.complex %a{i}r, %a{i}i : {t}")
        else:
            taken.append((f"%a{i}", str(t)))
    ins, outs = (", ".join(map(str, types)) for types in (kind.inputs, kind.results))
    given = ", ".join(f"%a{i}" for i in range(len(kind.inputs)))
    lines.append(f"%r:{len(kind.results)} = call @inner({given}) : ({ins}) -> ({outs})")
    for i, t in enumerate(kind.results):
        element, made = str(t.element_type), str(t).replace(str(t.element_type), _PASSED.get(str(t.element_type), ""))
        if element not in _PASSED:
            values.append((f"%r#{i}", str(t)))
            continue
        for op in ("real", "imag") if element in COMPLEX else ("convert",):
            lines.append(f"%{op}{i} = stablehlo.{op} %r#{i} : ({t}) -> {made}")
            values.append((f"%{op}{i}", made))
    kinds = ", ".join(t for _, t in values)
    names = ", ".join(f"{name}: {t}" for name, t in taken)
    body = "\n".join([*lines, f"return {', '.join(name for name, _ in values)} : {kinds}"])
    inner = text.replace('sym_name = "main"', 'sym_name = "inner", sym_visibility = "private"')
    return f"{inner}\nfunc.func @main({names}) -> ({kinds}) {{\n{body}\n}}\n"


def _taken(t: str, found: Iterator[Array]) -> Array:
    """A result of this type, out of what it was passed as."""
    first = next(found)
    if t in COMPLEX:
        both = np.empty(first.shape, NUMPY[t])
        both.real, both.imag = first, next(found)
        return both
    return first.astype(NUMPY[t]) if t in _PASSED else first
