"""How each peer runs a row: a function per peer, which returns a call with NumPy arrays in and out.

All use as many threads as this process has cores. Weights are constants of our module and of the ONNX model; in JAX and
IREE they are arguments that stay on the device.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from rows import Program

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]
#: IREE's options: code for this processor
IREE_FLAGS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")


def lowered(program: Program) -> Any:
    """The row in StableHLO, by JAX, with the weights as constants."""
    import jax

    return jax.jit(lambda *inputs: program.jax(program.weights, *inputs)).lower(*program.inputs)


def compile_ours(program: Program, path: str) -> None:
    from orchestrion import compiler

    compiler.compile_to_file(lowered(program), path, targets=["cpu"], target_cpu=best_level())


def best_level() -> tuple[str, ...]:
    """The best instruction set of this processor."""
    from orchestrion.hal.registry import devices_of, load_driver

    (info,) = devices_of(load_driver("cpu"))
    return (info.version,)


def ours(program: Program, threads: int) -> Call | None:
    import os
    import tempfile

    from orchestrion import vm

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "row.fb")
        compile_ours(program, path)
        main = vm.load(path, device="cpu", threads=threads, allow_native_code=True).main
    inputs = program.inputs
    return lambda: main(*inputs)


def jax(program: Program, threads: int) -> Call | None:
    import jax

    function, weights, inputs = jax.jit(program.jax), jax.device_put(program.weights), program.inputs

    def call() -> Any:
        return [np.asarray(x) for x in jax.tree.leaves(function(weights, *inputs))]

    return call


def onnxruntime(program: Program, threads: int) -> Call | None:
    import onnxruntime

    model = program.onnx()
    if model is None:
        return None
    session = onnx_session(model, threads)
    feed = {f"x{number}": x for number, x in enumerate(program.onnx_inputs())}
    assert onnxruntime.get_device() == "CPU"
    return lambda: session.run(None, feed)


def onnx_session(model: bytes | str, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def openvino(program: Program, threads: int) -> Call | None:
    model = program.onnx()
    if model is None:
        return None
    compiled, inputs = openvino_model(model, threads), program.onnx_inputs()
    request = compiled.create_infer_request()

    def call() -> Any:
        return [*request.infer(inputs, share_inputs=True).values()]

    return call


def openvino_model(model: bytes | str, threads: int) -> Any:
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    return core.compile_model(core.read_model(model), "CPU", settings)


def iree(program: Program, threads: int) -> Call | None:
    import iree.compiler
    import iree.runtime as rt
    import jax

    text = jax.jit(program.jax, keep_unused=True).lower(program.weights, *program.inputs).as_text()
    blob = iree.compiler.compile_str(
        text, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=list(IREE_FLAGS)
    )
    main, device = iree_module(blob, threads)
    weights = [rt.asdevicearray(device, np.asarray(x)) for x in jax.tree.leaves(program.weights)]
    inputs = [np.asarray(x) for x in program.inputs]

    def call() -> Any:
        found = main(*weights, *inputs)
        return [x.to_host() for x in (found if isinstance(found, tuple | list) else [found])]

    return call


def iree_module(blob: bytes, threads: int) -> tuple[Any, Any]:
    """The function `main` of a module, and its device."""
    import iree.runtime as rt

    if threads > 1:
        rt.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = rt.Config("local-task" if threads > 1 else "local-sync")
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, blob))
    (module,) = [value for name, value in context.modules.items() if name != "hal"]
    return module["main"], config.device


def numpy(program: Program, threads: int) -> Call | None:
    if program.numpy is None:
        return None
    function, weights, inputs = program.numpy, program.weights, program.inputs
    return lambda: function(weights, *inputs)


#: name -> its distributions, and the function of it
PEERS: dict[str, tuple[tuple[str, ...], Callable[[Program, int], Call | None]]] = {
    "cpu": ((), ours),
    "JAX": (("jax",), jax),
    "ONNX Runtime": (("onnxruntime", "onnx"), onnxruntime),
    "OpenVINO": (("openvino", "onnx"), openvino),
    "IREE": (("iree.compiler", "iree.runtime"), iree),
    "NumPy": ((), numpy),
}
#: the peers whose results have the order of ONNX
OF_ONNX = ("ONNX Runtime", "OpenVINO")


def missing(name: str) -> list[str]:
    """The modules of a peer that this environment lacks."""

    def there(module: str) -> bool:
        try:
            return find_spec(module) is not None
        except ModuleNotFoundError:
            return False

    return [module for module in PEERS[name][0] if not there(module)]


def results(found: Any) -> Sequence[Array]:
    """The results of a call as a list of arrays."""
    flat = found if isinstance(found, tuple | list) else [found]
    return [np.asarray(x) for x in flat]
