"""A warm call of simple_mul on OpenCL compared with plain pyopencl.

Two questions. With NumPy arguments and results: compared with the fastest pyopencl sequence found that moves the same
bytes (explicit transfers, and fine-grain shared memory where the device has it). With arguments on the device and
`out=`: compared with a plain enqueue and finish.

Expected before measuring: the driver enqueues once and finishes once, which takes 40 to 60 us on PoCL; our part of a
call is about 10 us of Python, so 1.2x to 1.4x.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import EXAMPLES, Timing, arguments, measure, ratio, save, table, versions

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([10, 20, 30, 40], np.float32)

SOURCE = """
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void simple_mul(__global const float *x, __global const float *y, __global float *z) {
  size_t i = get_global_id(0);
  if (i < 4) z[i] = x[i] * y[i];
}
"""


class Raw:
    """The same kernel called with pyopencl."""

    def __init__(self) -> None:
        import pyopencl as cl

        from orchestrion.hal.registry import load_driver

        name = load_driver("opencl").devices()[0].name
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        device = next((device for device in found if device.name.strip() == name.strip()), found[0])
        self.cl = cl
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.program = cl.Program(self.context, SOURCE).build()
        self.has_svm = bool(device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)

    def explicit(self) -> Callable[[], Any]:
        """Two writes and a kernel that do not wait, one read that does."""
        cl, flags = self.cl, self.cl.mem_flags
        x, y, z = (cl.Buffer(self.context, flags.READ_WRITE, 16) for _ in range(3))
        kernel = cl.Kernel(self.program, "simple_mul")
        kernel.set_args(x, y, z)
        queue, copy, enqueue = self.queue, cl.enqueue_copy, cl.enqueue_nd_range_kernel

        def call() -> Any:
            out = np.empty(4, np.float32)
            a = copy(queue, x, X, is_blocking=False)
            b = copy(queue, y, Y, is_blocking=False)
            c = enqueue(queue, kernel, (64,), (64,), wait_for=[a, b])
            copy(queue, out, z, is_blocking=True, wait_for=[c])
            return out

        return call

    def shared(self) -> Callable[[], Any]:
        """Host writes into fine-grain shared memory, one enqueue, one finish."""
        cl = self.cl
        flags = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        x, y, z = (cl.svm_empty(self.context, flags, 4, np.float32) for _ in range(3))
        kernel = cl.Kernel(self.program, "simple_mul")
        kernel.set_args(*(cl.SVM(array) for array in (x, y, z)))
        queue, enqueue = self.queue, cl.enqueue_nd_range_kernel

        def call() -> Any:
            x[...] = X
            y[...] = Y
            enqueue(queue, kernel, (64,), (64,))
            queue.finish()
            return z.copy()

        return call

    def enqueue_and_finish(self) -> Callable[[], Any]:
        cl = self.cl
        self.resident = [cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 16) for _ in range(3)]
        kernel = cl.Kernel(self.program, "simple_mul")
        kernel.set_args(*self.resident)
        queue, enqueue = self.queue, cl.enqueue_nd_range_kernel

        def call() -> None:
            enqueue(queue, kernel, (64,), (64,))
            queue.finish()

        return call


def main() -> None:
    options = arguments("warm call of simple_mul on OpenCL")
    from orchestrion import compiler, vm

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "simple_mul.fb"
        compiler.compile_to_file(EXAMPLES / "simple_mul.generic.mlir", path, targets=["opencl"])
        program = vm.load(path, device="opencl", allow_native_code=True)
    function, raw = program.simple_mul, Raw()
    x, y, out = program.put(X), program.put(Y), program.put(np.zeros(4, np.float32))

    host: dict[str, Callable[[], Any]] = {"orchestrion, NumPy in and out": lambda: function(X, Y)}
    host["raw pyopencl, explicit transfers"] = raw.explicit()
    if raw.has_svm:
        host["raw pyopencl, shared memory"] = raw.shared()
    for label, call in host.items():
        np.testing.assert_array_equal(call(), X * Y, err_msg=label)
    timings = measure(host, calls=300, rounds=options.rounds)
    best = min((timing for label, timing in timings.items() if label.startswith("raw")), key=lambda t: t.median)
    table("NumPy in and out", timings, best.name, [versions("pyopencl"), program.device.info.name])

    resident: dict[str, Callable[[], Any]] = {
        "orchestrion, device-resident, out=": lambda: function(x, y, out=out),
        "raw enqueue and finish": raw.enqueue_and_finish(),
    }
    more = measure(resident, calls=300, rounds=options.rounds)
    table("device-resident arguments, out=", more, "raw enqueue and finish")
    summary(timings, best, more)
    save(options.json, timings | more)


def summary(host: dict[str, Timing], best: Timing, resident: dict[str, Timing]) -> None:
    first = ratio(host, "orchestrion, NumPy in and out", best.name)
    second = ratio(resident, "orchestrion, device-resident, out=", "raw enqueue and finish")
    print(f"\nratios: {first:.2f} with copies, {second:.2f} device-resident (aim: below 2)")


if __name__ == "__main__":
    main()
