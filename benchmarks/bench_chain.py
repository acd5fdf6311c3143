"""What a dispatch costs the host: chains of 20 and of 200 products of 8x8 matrices, each with the result of the
previous one.

Three questions:
- Host time outside driver calls, per call. The driver functions that a warm call uses are replaced by one that returns
  at once, so the time is that of all our Python and of entering the driver, without the driver's own work.
- The whole call compared with the bare replay: the same command buffer, submitted and waited for by hand.
- On Vulkan, the whole call compared with iree-benchmark-module, with the fastest of the flags that were tried.

Expected before measuring: 7 us of host time whatever the length of the chain, on Vulkan and on OpenCL with command
buffers, and 0.5 us more per dispatch with enqueue lists; on lavapipe 20 us or more per dispatch in the driver.
"""

import ctypes
import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_vulkan import raw as raw_vulkan
from harness import Timing, arguments, measure, need, ratio, save, table, unit, versions

BIN = Path(sys.executable).parent
DEPTHS = (20, 200)
#: X @ X equals X, so the products neither grow nor vanish
X = np.full((8, 8), 0.125, np.float32)
IREE_COMPILE = ([], ["--iree-opt-level=O3"])
IREE_RUN = ([], ["--vulkan_dispatch_abi=descriptor"])


def chain(depth: int) -> str:
    matrix = "tensor<8x8xf32>"
    dots = [
        f"    %{index + 1} = stablehlo.dot_general %{index}, %w, contracting_dims = [1] x [0] "
        f": ({matrix}, {matrix}) -> {matrix}\n".replace("%0,", "%x,")
        for index in range(depth)
    ]
    head = f"  func.func @chain(%x: {matrix}, %w: {matrix}) -> {matrix} {{\n"
    return f"module {{\n{head}{''.join(dots)}    return %{depth} : {matrix}\n  }}\n}}\n"


class Chain:
    """A loaded chain, and its call with all arrays on the device. With `lists`, OpenCL command buffers are not used."""

    def __init__(self, path: Path, device: str, depth: int, lists: bool = False) -> None:
        from orchestrion import vm
        from orchestrion.vm.recording import Recording

        if lists:
            from orchestrion.hal.opencl import device as opencl

            kept, opencl.why_no_command_buffers = opencl.why_no_command_buffers, lambda device: "left unused"
        self.program = vm.load(path, device=device, allow_native_code=True)
        if lists:
            opencl.why_no_command_buffers = kept
        x, w, out = self.program.put(X), self.program.put(X), self.program.put(np.zeros_like(X))
        function = self.program.chain
        self.call: Callable[[], Any] = lambda: function(x, w, out=out)
        self.call()
        np.testing.assert_array_equal(np.asarray(out), X)
        last = self.program.statistics()["calls"][-1]
        assert (last["submissions"], last["dispatches"]) == (1, depth), last
        self.backend = self.program.device.device_state.backend
        recordings = [value for value in self.program.context.globals if isinstance(value, Recording)]
        self.commands = recordings[0].commands.backend

    def raw_opencl(self) -> Callable[[], None]:
        """Enqueues what the call enqueues, and waits once, for the last event."""
        queue = self.backend.queue
        ticket, (*steps, last) = queue.create_ticket(), self.commands._steps

        def call() -> None:
            if any(step(0, None, None) for step in steps) or last(0, None, ticket.where):
                raise RuntimeError("an OpenCL call failed")
            if queue._wait_for(1, ticket.where) or queue._release(ticket.event):
                raise RuntimeError("an OpenCL call failed")

        return call

    def silence(self) -> None:
        """Make the driver's functions do nothing from now on."""
        nothing = ctypes.cast(ctypes.CDLL(None).pthread_condattr_destroy, ctypes.c_void_p).value  # 0, whatever it gets
        queue = self.backend.queue
        if self.program.device.info.driver == "vulkan":
            ffi = queue._api.ffi
            for name in ("_submit", "_wait", "_reset"):
                setattr(queue, name, ffi.cast(ffi.typeof(getattr(queue, name)), nothing))
            return
        for name in ("_wait_for", "_release"):
            setattr(queue, name, type(getattr(queue, name))(nothing))
        steps = [partial(type(step.func)(nothing), *step.args) for step in self.commands._steps]
        self.commands._steps = steps


class Iree:
    """A chain compiled and run by IREE, with the fastest of the flags, which the constructor finds."""

    def __init__(self, folder: Path, depth: int) -> None:
        source = folder / f"chain{depth}.mlir"
        found = []
        for compile_flags, run_flags in itertools.product(IREE_COMPILE, IREE_RUN):
            self.module = folder / f"chain{depth}{''.join(compile_flags)}.vmfb"
            target = ["--iree-input-type=stablehlo", "--iree-hal-target-device=vulkan", *compile_flags]
            subprocess.run([BIN / "iree-compile", *target, source, "-o", self.module], check=True)
            self.flags = run_flags
            found.append((min(self.seconds() for _ in range(3)), self.module, compile_flags, run_flags))
        _, self.module, compile_flags, self.flags = min(found)
        self.note = (
            f"{depth}: iree-compile {' '.join(target[:2] + compile_flags)}; run {' '.join(self.flags) or 'as is'}"
        )

    def seconds(self) -> float:
        inputs = ["--function=chain", *["--input=8x8xf32=0.125"] * 2]
        how = ["--device=vulkan", "--benchmark_min_time=0.2s", "--benchmark_format=json", *self.flags]
        command = [BIN / "iree-benchmark-module", f"--module={self.module}", *inputs, *how]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        (row,) = json.loads(re.sub(r"^[^{]*", "", done.stdout))["benchmarks"]
        return float(row["real_time"]) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[row["time_unit"]]


def host_time(chains: dict[str, dict[int, Chain]], rounds: int) -> dict[str, Timing]:
    """Time of calls without the driver. Afterwards the chains cannot be used."""
    for by_depth in chains.values():
        for item in by_depth.values():
            item.silence()
    calls = {f"{name}, {depth}": item.call for name, by in chains.items() for depth, item in by.items()}
    timings = measure(calls, calls=200, rounds=rounds)
    table("host time outside driver calls", timings, next(iter(calls)))
    for name in chains:
        few, many = (timings[f"{name}, {depth}"] for depth in DEPTHS)
        least, most = min(few.rounds), min(many.rounds)  # nothing here varies but what else the machine does
        each = (most - least) / (DEPTHS[1] - DEPTHS[0])
        print(f"  {name}: {most / least:.2f}x for 200, the fastest rounds; {unit(max(each, 0))} per dispatch")
    return timings


def whole_calls(chains: dict[int, Chain], folder: Path, rounds: int) -> dict[str, Timing]:
    """Time on Vulkan of our call, the bare replay and IREE, one after the other in each round."""
    iree = {depth: Iree(folder, depth) for depth in DEPTHS}
    seen: dict[str, list[float]] = {}
    for depth, _ in itertools.product(DEPTHS, range(rounds)):
        calls = {
            f"orchestrion, {depth}": chains[depth].call,
            f"bare replay, {depth}": raw_vulkan(chains[depth].program),
        }
        for name, timing in measure(calls, calls=10, rounds=1).items():
            seen.setdefault(name, []).append(timing.median)
        seen.setdefault(f"IREE, {depth}", []).append(iree[depth].seconds())
    timings = {name: Timing(name, tuple(values)) for name, values in seen.items()}
    notes = [versions("iree-base-compiler", "iree-base-runtime"), *(item.note for item in iree.values())]
    for depth in DEPTHS:
        rows = {name: timing for name, timing in timings.items() if name.endswith(f", {depth}")}
        table(f"whole call on Vulkan, {depth} dispatches", rows, f"bare replay, {depth}", notes)
        ours, theirs = f"orchestrion, {depth}", f"IREE, {depth}"
        fastest = min(rows[theirs].rounds) / min(rows[ours].rounds)
        print(f"  ahead of IREE {ratio(rows, theirs, ours):.2f}x, the fastest rounds {fastest:.2f}x")
    return timings


def opencl_calls(chains: dict[str, dict[int, Chain]], rounds: int) -> dict[str, Timing]:
    timings: dict[str, Timing] = {}
    for depth in DEPTHS:
        calls = {}
        for name, by_depth in chains.items():
            calls[f"{name}, {depth}"] = by_depth[depth].call
            calls[f"bare replay of it, {name}, {depth}"] = by_depth[depth].raw_opencl()
        found = measure(calls, calls=20, rounds=rounds)
        table(f"whole call on OpenCL, {depth} dispatches", found, next(iter(calls)))
        for name in chains:
            print(f"  {name}: {ratio(found, f'{name}, {depth}', f'bare replay of it, {name}, {depth}'):.2f}x of bare")
        timings |= found
    return timings


def main() -> None:
    options = arguments("chains of 8x8 products")
    need("iree-base-compiler", "iree-base-runtime")
    from orchestrion import compiler

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for depth in DEPTHS:
            source = folder / f"chain{depth}.mlir"
            source.write_text(chain(depth))
            compiler.compile_to_file(source, source.with_suffix(".fb"), targets=["spirv", "opencl"])
        paths = {depth: folder / f"chain{depth}.fb" for depth in DEPTHS}
        chains = {
            "Vulkan": {depth: Chain(path, "vulkan", depth) for depth, path in paths.items()},
            "OpenCL as it comes": {depth: Chain(path, "opencl", depth) for depth, path in paths.items()},
            "OpenCL enqueue list": {depth: Chain(path, "opencl", depth, lists=True) for depth, path in paths.items()},
        }
        for label in ("Vulkan", "OpenCL as it comes"):
            info = chains[label][20].program.device.info
            print(f"{label}: {info.name}; {'; '.join(info.notes)}")
        timings = whole_calls(chains["Vulkan"], folder, max(options.rounds // 3, 3))
        opencl = {label: by_depth for label, by_depth in chains.items() if label.startswith("OpenCL")}
        timings |= opencl_calls(opencl, options.rounds)
        timings |= host_time(chains, options.rounds)
    save(options.json, timings)


if __name__ == "__main__":
    main()
