"""Every scalar op of every type on every device means what the scalar table says: exact, zeros and infinities included.

Transcendentals have a bound instead of one right answer: their accuracy is tested elsewhere, here they have to run.
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from scalar_cases import UNREACHED, applications, differing, grid, is_exact
from stablehlo_text import DTYPES, main, op_name

from orchestrion.compiler.ir.attributes import attribute_of, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.ir.effects import erase_dead
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.dialect import Return
from orchestrion.compiler.kernel.elements.index import invocation_index
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.schema import scalars
from orchestrion.schema.dtypes import COMPUTED, SIGNED, UNSIGNED, DType
from orchestrion.schema.scalars import ScalarOp

#: outputs of one test kernel
PER_KERNEL = 12
#: lanes of the vectors of a test kernel
LANES = 4


def application_text(row: ScalarOp, name: str, operands: tuple[DType, ...], result: DType, count: int) -> str:
    attributes, op = "", row.name
    if op.startswith("compare_"):
        direction = op.rpartition("_")[2].upper()
        total = ", compare_type = #stablehlo<comparison_type TOTALORDER>" if "total" in op else ""
        attributes = f" <{{comparison_direction = #stablehlo<comparison_direction {direction}>{total}}}>"
        op = "compare"
    op = "bitcast_convert" if op == "bitcast" else op
    types = ", ".join(f"tensor<{count}x{dtype}>" for dtype in operands)
    values = ", ".join(f"%x{position}" for position in range(len(operands)))
    return f'{name} = "{op_name(op)}"({values}){attributes} : ({types}) -> tensor<{count}x{result}>'


def function_text(cases: list[tuple[ScalarOp, tuple[DType, ...], DType]], count: int) -> str:
    """`@main` of the operands that gives each op's result."""
    operands = cases[0][1]
    inputs = [f"tensor<{count}x{dtype}>" for dtype in operands]
    outputs = ", ".join(f"tensor<{count}x{result}>" for _, _, result in cases)
    arguments = ", ".join(f"%x{position}: {type}" for position, type in enumerate(inputs))
    lines = [application_text(row, f"%r{at}", types, result, count) for at, (row, types, result) in enumerate(cases)]
    body = "\n".join(lines)
    values = ", ".join(f"%r{at}" for at in range(len(cases)))
    signature = f"({', '.join(inputs)}) -> ({outputs})"
    return (
        f'"func.func"() <{{sym_name = "main", function_type = {signature}}}> ({{\n^bb0({arguments}):\n{body}\n'
        f'"func.return"({values}) : ({outputs}) -> ()\n}}) : () -> ()'
    )


def kernels(subject: DType) -> Iterator[list[tuple[ScalarOp, tuple[DType, ...], DType]]]:
    """The applications of a type in groups that one kernel computes."""
    ordered = sorted(applications(subject), key=lambda case: [dtype.code for dtype in case[1]])
    for _, cases in groupby(ordered, key=lambda case: case[1]):
        same = list(cases)
        yield from (same[at : at + PER_KERNEL] for at in range(0, len(same), PER_KERNEL))


@pytest.mark.sampled
@pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
@pytest.mark.parametrize("subject", COMPUTED, ids=str)
def test_scalar_ops_on_devices(lowered: Callable[..., Any], devices: Any, subject: DType, target: str) -> None:
    wrong = []
    for cases in kernels(subject):
        operands = grid(cases[0][1])
        entry = lowered(function_text(cases, len(operands[0])), target)
        for (row, _, result), got in zip(cases, devices.run(entry, *operands), strict=True):
            if is_exact(row, subject):
                want = scalars.evaluate(row, operands, result)
                bad = differing(got, want, flushes=True)
                shown = [(tuple(x[i] for x in operands), got[i], want[i]) for i in bad[:4]]
                wrong += [f"{row.name} -> {result}: {len(bad)} of {len(got)}, {shown}"] if len(bad) else []
    assert not wrong, "\n".join(wrong)


def vector_kernel(cases: list[tuple[ScalarOp, tuple[DType, ...], DType]], count: int) -> str:
    """A lowered executable in which each invocation applies the ops to vectors of `LANES` neighbours."""
    operands, results = cases[0][1], [result for _, _, result in cases]
    block = Block([ll_seq.BINDING] * (len(operands) + len(results)))
    b = KernelBuilder(block)
    number = invocation_index(b, 64)
    branch = b.begin_if(b.op("compare_lt", number, b.index(count // LANES)))
    first = b.op("multiply", number, b.index(LANES))
    places = [b.op("add", first, b.index(lane)) for lane in range(LANES)]
    vectors = [
        b.vector([b.load(binding, place, dtype.name) for place in places])
        for binding, dtype in zip(block.arguments, operands, strict=False)
    ]
    for (row, _, result), binding in zip(cases, block.arguments[len(operands) :], strict=True):
        for value, place in zip(b.lanes(b.op(row.name, *vectors, to=result.name)), places, strict=True):
            b.store(value, binding, place)
    b.end_if(branch)
    b.insert(Return())
    module = Module.empty()
    executable = Builder(module.block).build(ll_seq.Executable, sym_name="test", body=Region([Block()]))
    accesses = ["read"] * len(operands) + ["write"] * len(results)
    dtypes = [*operands, *results]
    entry = Builder(executable.body.block).build(
        ll_seq.Entry,
        sym_name="test_main",
        workload=dense_ints(count // LANES, 1, 1),
        workgroup_size=dense_ints(64, 1, 1),
        bindings=attribute_of(
            [{"access": a, "length": count * t.itemsize} for a, t in zip(accesses, dtypes, strict=True)]
        ),
        body=Region([block]),
    )
    erase_dead(entry)
    return str(module)


@pytest.mark.sampled
@pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
@pytest.mark.parametrize("subject", COMPUTED, ids=str)
def test_scalar_ops_on_vectors(kernel: Callable[..., Any], devices: Any, subject: DType, target: str) -> None:
    """Each scalar op has a vector form. It has the results of the scalar form."""
    wrong = []
    for cases in kernels(subject):
        given = grid(cases[0][1])
        operands = [np.resize(array, len(array) + -len(array) % LANES) for array in given]
        count = len(operands[0])
        entry = kernel(
            vector_kernel(cases, count), target, [((count,), result.numpy) for _, _, result in cases], count // LANES
        )
        for (row, _, result), got in zip(cases, devices.run(entry, *operands), strict=True):
            if is_exact(row, subject):
                bad = differing(got, scalars.evaluate(row, operands, result), flushes=True)
                wrong += [f"{row.name} -> {result}: {len(bad)} of {len(got)}"] if len(bad) else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
def test_comparisons_of_what_was_converted(computes: Callable[..., Any], target: str) -> None:
    """Optimizers compare before they convert, and some did not get that right."""
    integers = [dtype.name for dtype in COMPUTED if dtype.kind in (SIGNED, UNSIGNED)]
    for source in integers:
        limits = np.iinfo(DTYPES[source])
        array = np.array([limits.min, 0, 1, 5, limits.max], DTYPES[source])
        lines = list[str]()
        for to in integers:
            wide = f"tensor<5x{to}>"
            lines += [
                f'%c{to} = "stablehlo.constant"() <{{value = dense<1> : {wide}}}> : () -> {wide}',
                f'%y{to} = "stablehlo.convert"(%a0) : (tensor<5x{source}>) -> {wide}',
                f'%r{to} = "stablehlo.compare"(%y{to}, %c{to}) '
                f"<{{comparison_direction = #stablehlo<comparison_direction LT>}}> : ({wide}, {wide}) -> tensor<5xi1>",
            ]
        text = main([f"tensor<5x{source}>"], lines, [(f"%r{to}", "tensor<5xi1>") for to in integers])
        for to, found in zip(integers, computes(text, target, array), strict=True):
            np.testing.assert_array_equal(found, array.astype(DTYPES[to]) < 1, err_msg=f"{source} to {to}")


def test_all_rows_are_applied() -> None:
    applied = {row.name for subject in COMPUTED for row, _, _ in applications(subject)}
    assert applied == set(scalars.BY_NAME) - UNREACHED
