"""A warm call of simple_mul on the default device, with NumPy arguments and results, compared with IREE, ONNX Runtime
and JAX.

Expected before measuring: 6 us, from 7 VM instructions, three copies of 16 bytes and one NumPy multiply. The peers were
seen at 19 us (IREE with `to_host`), 10 us (ONNX Runtime) and 14 us (JAX).
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import EXAMPLES, arguments, measure, need, save, table, versions

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([10, 20, 30, 40], np.float32)


def orchestrion_call(folder: Path) -> Callable[[], Any]:
    from orchestrion import compiler, vm

    path = folder / "ours.fb"
    compiler.compile_to_file(EXAMPLES / "simple_mul.generic.mlir", path, targets=["reference"])
    function = vm.load(path).simple_mul
    return lambda: function(X, Y)


def iree_call(folder: Path) -> Callable[[], Any]:
    import iree.compiler
    import iree.runtime as rt

    blob = iree.compiler.compile_file(
        str(EXAMPLES / "simple_mul.generic.mlir"),
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
    )
    config = rt.Config("local-sync")
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, blob))
    function = context.modules.module.simple_mul
    return lambda: function(X, Y).to_host()


def onnxruntime_call(folder: Path) -> Callable[[], Any]:
    import onnxruntime
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "y"], ["z"])], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": X, "y": Y})[0]


def jax_call(folder: Path) -> Callable[[], Any]:
    import jax

    jitted = jax.jit(lambda x, y: x * y)
    return lambda: np.asarray(jitted(X, Y))


def main() -> None:
    options = arguments("warm call of simple_mul, NumPy in and out")
    need("jax", "onnx", "onnxruntime", "iree-base-compiler", "iree-base-runtime")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        candidates = {
            "orchestrion reference": orchestrion_call(folder),
            "IREE f(x, y).to_host(), local-sync": iree_call(folder),
            "ONNX Runtime session.run": onnxruntime_call(folder),
            "JAX np.asarray(jit(x, y))": jax_call(folder),
        }
        for name, call in candidates.items():
            np.testing.assert_array_equal(np.asarray(call()), X * Y, err_msg=name)
        timings = measure(candidates, calls=2000, rounds=options.rounds)
    peers = versions("iree-base-runtime", "onnxruntime", "jax")
    flags = "IREE: llvm-cpu, --iree-llvmcpu-target-cpu=host, O3; ONNX Runtime: one thread"
    table("simple_mul, 4 x f32", timings, "orchestrion reference", [peers, flags])
    save(options.json, timings)


if __name__ == "__main__":
    main()
