"""Quantized products and a convolution, i8 to i8 with i32 sums, beside the same in floats and beside ONNX Runtime.

Three questions: how long the arithmetic in integers takes on each device, compared with `quantized="float"` and with
ONNX Runtime's QLinearMatMul and QLinearConv; how often its results differ from those in floats; and whether they differ
from ONNX Runtime's.

Expected before measuring: integers ahead of floats, because operands are not scaled; the CPU device behind ONNX
Runtime, which has instructions for products of bytes; at most one step between any two, in one result of 10,000.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Timing, arguments, measure, need, save, table, versions

from orchestrion import vm
from orchestrion.compiler.driver import compile

Array = np.ndarray[Any, Any]
GIVEN, WEIGHTS, OUT = (0.02, -7), (0.004, 0), (0.25, 5)
DOT = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
CONVOLUTION = (
    "padding = dense<1> : tensor<2x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64, "
    "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f]>"
)
#: name -> op, its properties, shapes of operands and result
CASES = {
    "product 256x512x512": ("dot_general", DOT, (256, 512), (512, 512), (256, 512)),
    "product 256x2048x512": ("dot_general", DOT, (256, 2048), (2048, 512), (256, 512)),
    "convolution 3x3, 64 to 64 features, 56x56": (
        "convolution", CONVOLUTION, (1, 56, 56, 64), (64, 64, 3, 3), (1, 56, 56, 64),
    ),
}  # fmt: skip


def program(op: str, properties: str, weights: Array, *shapes: tuple[int, ...]) -> str:
    """A function of the left operand; the right one is a constant."""
    rows = zip(shapes, (GIVEN, WEIGHTS, OUT), strict=True)
    a, b, c = (f"tensor<{'x'.join(map(str, shape))}x!quant.uniform<i8:f32, {row[0]}:{row[1]}>>" for shape, row in rows)
    plain = f"tensor<{'x'.join(map(str, shapes[1]))}xi8>"
    return (
        f'"func.func"() <{{sym_name = "main", function_type = ({a}) -> {c}}}> ({{\n^bb0(%a: {a}):\n'
        f'  %b = "stablehlo.constant"() <{{value = dense<"0x{weights.tobytes().hex()}"> : {plain}}}> : () -> {b}\n'
        f'  %c = "stablehlo.{op}"(%a, %b) <{{{properties}}}> : ({a}, {b}) -> {c}\n'
        f'  "func.return"(%c) : ({c}) -> ()\n}}) : () -> ()\n'
    )


def onnx_session(op: str, weights: Array, *shapes: tuple[int, ...]) -> Callable[[Array], Array]:
    """The same op of ONNX Runtime. A convolution takes and gives features before places."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    names = [f"{name}{kind}" for name in ("a", "b", "c") for kind in ("_scale", "_zero")]
    values = [value for row in (GIVEN, WEIGHTS, OUT) for value in row]
    constants = [
        helper.make_tensor(name, TensorProto.FLOAT if "scale" in name else TensorProto.INT8, (), [value])
        for name, value in zip(names, values, strict=True)
    ]
    constants.append(numpy_helper.from_array(weights, "b"))
    inputs = ["a", *names[:2], "b", *names[2:4], *names[4:]]
    node = (
        helper.make_node("QLinearConv", inputs, ["c"], pads=[1, 1, 1, 1])
        if op == "convolution"
        else helper.make_node("QLinearMatMul", inputs, ["c"])
    )
    given, made = (featured(shapes[index]) for index in (0, 2))
    infos = [
        helper.make_tensor_value_info(name, TensorProto.INT8, shape) for name, shape in (("a", given), ("c", made))
    ]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"a": x})[0]


def featured(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with features before places."""
    return shape if len(shape) == 2 else (shape[0], shape[3], *shape[1:3])


def time_case(name: str, rounds: int) -> dict[str, Timing]:
    """Times one case and prints its table."""
    op, properties, *shapes = CASES[name]
    random = np.random.default_rng(0)
    x, weights = (random.integers(-127, 128, shape).astype(np.int8) for shape in shapes[:2])
    text = program(op, properties, weights, *shapes)
    programs = {}
    for way in ("integer", "float"):
        module = compile(text, quantized=way, targets=("cpu", "opencl"))
        programs |= {f"{device}, {way}": vm.load(module, device=device) for device in ("cpu", "opencl")}
    peer, moved = onnx_session(op, weights, *shapes), x if x.ndim == 2 else np.moveaxis(x, 3, 1).copy()
    calls: dict[str, Callable[[], Array]] = {key: partial(loaded.main, x) for key, loaded in programs.items()}
    results = {key: np.asarray(call()).astype(int) for key, call in calls.items()}
    calls["ONNX Runtime"] = partial(peer, moved)
    found = peer(moved).astype(int)
    results["ONNX Runtime"] = found if found.ndim == 2 else np.moveaxis(found, 1, 3)
    notes = []
    for key in ("cpu, float", "ONNX Runtime"):
        steps = np.abs(results["cpu, integer"] - results[key])
        notes.append(f"integer and {key}: {steps.max()} steps at most, {(steps > 0).mean():.1e} of results differ")
    timings = measure(calls, calls=5, rounds=rounds, pause=0.03)
    table(name, timings, "cpu, integer", notes)
    for loaded in programs.values():
        loaded.close()
    return timings


def main() -> None:
    options = arguments("Quantized products and convolutions")
    need("onnx", "onnxruntime")
    print(versions("onnxruntime"))
    for name in CASES:
        save(options.json and f"{options.json}.{name.split()[0]}", time_case(name, options.rounds))


if __name__ == "__main__":
    main()
