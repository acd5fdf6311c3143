"""Helpers of the compiler's tests: StableHLO text as an entry, lowered, and run on a device without the HAL."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest

from orchestrion.compiler.ir.attributes import attribute_of, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.func import Func
from orchestrion.compiler.targets.target import Payload, target


@dataclass(frozen=True)
class Lowered:
    """One entry: its code, the workgroups to run, the shape and NumPy type of each result."""

    module: Module
    payload: Payload
    name: str
    groups: int
    workgroup_size: int
    results: list[tuple[tuple[int, ...], np.dtype[Any]]]


def entry_module(text: str) -> Module:
    """A module with an executable of one entry that computes the text's `@main`, which holds StableHLO only."""
    source = parse(text, "test.mlir")
    func = next(op for op in source.walk() if isinstance(op, Func))
    old, values = func.entry, [*func.entry.arguments, *func.entry.last.operands]
    block = Block([ll_seq.BINDING] * len(values))
    builder = Builder(block)
    mapping = {
        argument: builder.build(ll_seq.LoadInput, binding=binding, value=argument.type).value
        for argument, binding in zip(old.arguments, block.arguments, strict=False)
    }
    for op in old:
        if op is not old.last:
            builder.insert(op.clone(mapping))
    for value, binding in zip(old.last.operands, block.arguments[len(old.arguments) :], strict=True):
        builder.build(ll_seq.StoreOutput, value=mapping[value], binding=binding)
    builder.build(ll_seq.End)
    accesses = ["read"] * len(old.arguments) + ["write"] * len(old.last.operands)
    bindings = [
        {"access": access, "length": tensor_of(value).num_elements * dtype_of(value).itemsize}
        for access, value in zip(accesses, values, strict=True)
    ]
    most = max(tensor_of(value).num_elements for value in old.last.operands)
    module = Module.empty()
    executable = Builder(module.block).build(ll_seq.Executable, sym_name="test", body=Region([Block()]))
    Builder(executable.body.block).build(
        ll_seq.Entry,
        sym_name="test_main",
        workload=dense_ints(most, 1, 1),
        bindings=attribute_of(bindings),
        body=Region([block]),
    )
    return module


def lower(text: str, name: str) -> Lowered:
    """Lower for a target and serialize: from the IR, and from its text read back, which must give the same bytes."""
    func = next(op for op in parse(text, "test.mlir").walk() if isinstance(op, Func))
    results = [(tensor_of(value).shape, dtype_of(value).numpy) for value in func.entry.last.operands]
    module = entry_module(text)
    entry = next(op for op in module.walk() if isinstance(op, ll_seq.Entry))
    target(name).lower(entry)
    payload = target(name).serialize(module.block.first)
    again = parse(str(module), "again.mlir")
    assert str(again) == str(module)
    assert target(name).serialize(again.block.first).data == payload.data
    size = prod(entry.workgroup_size.ints)
    return Lowered(module, payload, "test_main", -(-prod(entry.workload.ints) // size), size, results)


@pytest.fixture(scope="session")
def lowered() -> Callable[[str, str], Lowered]:
    """`lowered(text, target)`: `@main` of StableHLO text as one lowered and serialized entry."""
    return lower


@pytest.fixture(scope="session")
def on_opencl() -> Callable[..., list[np.ndarray]]:
    """`on_opencl(lowered, *arrays, most_groups=(x, y, z))`: run an entry on the first OpenCL device.

    The grid is folded as the HAL does it: at most `most_groups` per dimension.
    """
    cl = pytest.importorskip("pyopencl")
    try:
        context = cl.Context(
            dev_type=cl.device_type.ALL, properties=[(cl.context_properties.PLATFORM, cl.get_platforms()[0])]
        )
    except cl.Error as error:
        pytest.skip(f"no OpenCL device: {error}")
    queue = cl.CommandQueue(context)
    options = ["-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt"]

    def run(entry: Lowered, *arrays: np.ndarray, most_groups: Sequence[int] = (1 << 31, 1, 1)) -> list[np.ndarray]:
        program = cl.Program(context, entry.payload.data.decode()).build(options, cache_dir=False)
        flags = cl.mem_flags
        inputs = [
            cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=as_bytes(array)) for array in arrays
        ]
        outs = [np.full(shape, 0x55, np.uint8) for shape in [prod(s) * d.itemsize for s, d in entry.results]]
        buffers = [cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=out) for out in outs]
        kernel = cl.Kernel(program, entry.name)
        kernel.set_args(*inputs, *buffers)
        x = min(entry.groups, most_groups[0])
        y = min(-(-entry.groups // x), most_groups[1])
        z = -(-entry.groups // (x * y))
        cl.enqueue_nd_range_kernel(queue, kernel, (x * entry.workgroup_size, y, z), (entry.workgroup_size, 1, 1))
        for out, buffer in zip(outs, buffers, strict=True):
            cl.enqueue_copy(queue, out, buffer)
        queue.finish()
        return [out.view(dtype).reshape(shape) for out, (shape, dtype) in zip(outs, entry.results, strict=True)]

    return run


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of an array as a device holds them."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
