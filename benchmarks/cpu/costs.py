"""What a network costs before its first call, and in memory: compilation, load, size of the module.

Each candidate is a table row of two functions, which run in processes of their own. `prepare(program, path, clock)`
makes a file and returns the seconds that it took, by a clock: `time.perf_counter`, or `processor_seconds` on a busy
machine. `load(path, threads)` returns a function of the network's inputs.
"""

import os
import resource
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import peers
from rows import Program

Clock = Callable[[], float]
#: our module with a second program
TWO_TARGETS = "cpu and reference"
#: networks of the table
NETWORKS = (
    "SqueezeNet 1.1",
    "ResNet-18",
    "ResNet-50",
    "MiniLM, 6 layers of 384, 1 x 128",
    "BERT-base, 12 layers of 768, 1 x 128",
)


def processor_seconds() -> float:
    """Seconds of processors that this process and its children have used, also those of children that still run."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    live = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == os.getpid():
            live += int(fields[11]) + int(fields[12])
    return time.process_time() + ended.ru_utime + ended.ru_stime + live / os.sysconf("SC_CLK_TCK")


def _prepare_ours(program: Program, path: Path, clock: Clock, targets: Sequence[str] = ("cpu",)) -> float:
    from orchestrion import compiler

    level, text = peers.best_level(), peers.lowered(program)
    start = clock()
    compiler.compile_to_file(text, path, targets=targets, target_cpu=level)
    return clock() - start


def _prepare_two(program: Program, path: Path, clock: Clock) -> float:
    """A module whose reference program reads weights in row-major order, so that they are packed at load."""
    return _prepare_ours(program, path, clock, ("cpu", "reference"))


def _load_ours(path: Path, threads: int) -> Callable[..., Any]:
    from orchestrion import vm

    return vm.load(path, device="cpu", threads=threads, allow_native_code=True).main


def _prepare_iree(program: Program, path: Path, clock: Clock) -> float:
    import iree.compiler

    text = peers.lowered(program).as_text()
    start = clock()
    iree.compiler.compile_str(
        text,
        target_backends=["llvm-cpu"],
        input_type="stablehlo",
        extra_args=list(peers.IREE_FLAGS),
        output_file=str(path),
    )
    return clock() - start


def _load_iree(path: Path, threads: int) -> Callable[..., Any]:
    main, _ = peers.iree_module(path.read_bytes(), threads)
    return lambda *inputs: main(*inputs).to_host()


def _prepare_onnx(program: Program, path: Path, clock: Clock) -> float:
    model = program.onnx()
    assert model is not None
    path.write_bytes(model)
    return 0.0


def _load_onnxruntime(path: Path, threads: int) -> Callable[..., Any]:
    session = peers.onnx_session(str(path), threads)
    return lambda *inputs: session.run(None, {f"x{number}": x for number, x in enumerate(inputs)})


def _load_openvino(path: Path, threads: int) -> Callable[..., Any]:
    compiled = peers.openvino_model(str(path), threads)
    return lambda *inputs: compiled(list(inputs))


#: candidate -> (prepare, load)
COSTS: dict[str, tuple[Callable[[Program, Path, Clock], float], Callable[[Path, int], Callable[..., Any]]]] = {
    "cpu": (_prepare_ours, _load_ours),
    TWO_TARGETS: (_prepare_two, _load_ours),
    "IREE": (_prepare_iree, _load_iree),
    "ONNX Runtime": (_prepare_onnx, _load_onnxruntime),
    "OpenVINO": (_prepare_onnx, _load_openvino),
}


def prepare(peer: str, program: Program, path: Path, clock: Clock) -> dict[str, float]:
    """In a process: seconds of the compilation, bytes of its file."""
    inputs = program.inputs if peer in ("cpu", TWO_TARGETS, "IREE") else program.onnx_inputs()
    np.savez(path.with_suffix(".npz"), *inputs)
    return {"compile": COSTS[peer][0](program, path, clock), "size": float(path.stat().st_size)}


def compile_only(peer: str, program: Program, path: Path) -> dict[str, float]:
    """In a process: processor and elapsed seconds of a compilation, and bytes of its file, of the program's weights and
    of our images of native code.
    """
    import jax

    elapsed = time.perf_counter()
    taken = COSTS[peer][0](program, path, processor_seconds)
    found = {"processor": taken, "elapsed": time.perf_counter() - elapsed, "size": float(path.stat().st_size)}
    found["weights"] = float(sum(x.nbytes for x in jax.tree.leaves(program.weights)))
    if peer == "cpu":
        from orchestrion.schema.decoder import read_module
        from orchestrion.schema.rows import SegmentKind

        segments = read_module(path.read_bytes()).segments
        found["images"] = float(sum(row.size for row in segments if row.kind == SegmentKind.Executable))
    return found


def load(peer: str, path: Path, clock: Clock, cache: Path) -> dict[str, float]:
    """In a process: seconds of the load and of the first call, and how much memory of the process they added, in bytes.

    `cache`: the folder of our caches on disk, made on demand.
    The package is imported before, so its memory does not count; pages of the file do.
    """
    os.environ["ORCHESTRION_CACHE"] = str(cache)
    _import(peer)
    inputs = [*np.load(path.with_suffix(".npz")).values()]
    before = _resident()
    start = clock()
    call = COSTS[peer][1](path, len(os.sched_getaffinity(0)))
    loaded = clock()
    call(*inputs)
    called = clock()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"load": loaded - start, "first": called - loaded, "memory": float(max(peak - before, 0))}


def _import(peer: str) -> None:
    ours = ("orchestrion.hal.cpu.device", "orchestrion.vm")
    for module in ours if peer in ("cpu", TWO_TARGETS) else peers.PEERS[peer][0]:
        import_module(module)


def _resident() -> int:
    """Bytes of memory that this process uses now."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()
