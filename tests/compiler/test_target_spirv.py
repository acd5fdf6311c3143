"""SPIR-V words: a row per primitive, only what the shared table allows, clean under spirv-val and our own checker."""

import subprocess
from itertools import product
from math import prod
from pathlib import Path
from shutil import which
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stablehlo_text import apply, main, reduction, tensor

from orchestrion.compiler import Compilation
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.kernel.dialect import (
    DIALECT,
    ByteOffset,
    Call,
    Everywhere,
    HasPairProducts,
    LoadBytes,
    LoadLanes,
    LoadSharedLanes,
    LoadVector,
    MultiplyAddBytes,
    MultiplyAddPairs,
    PrefersPanels,
    Prefetch,
    Scale,
    StoreSharedLanes,
    Transpose,
)
from orchestrion.compiler.scalars.primitives import PRIMITIVES
from orchestrion.compiler.sequencer.ll_seq import Entry as LoweredEntry
from orchestrion.compiler.sequencer.ll_seq import Executable
from orchestrion.compiler.targets.spirv.assembler import Assembler
from orchestrion.compiler.targets.spirv.render import _OPS
from orchestrion.compiler.targets.spirv.scalars import CONVERSIONS, INSTRUCTIONS, instruction
from orchestrion.compiler.targets.spirv.target import TARGET
from orchestrion.hal.backend import Entry
from orchestrion.hal.vulkan.spirv_check import verify
from orchestrion.schema.dtypes import BY_NAME, COMPUTED, DType
from orchestrion.schema.spirv import CAPABILITY_BY_NAME, DECORATIONS, EXT_BY_NAME, MAGIC, OP_BY_NAME


def test_each_primitive_has_a_row_for_each_kind_and_no_other() -> None:
    wanted = {(row.name, kind) for row in PRIMITIVES for kind in row.kinds if row.name not in CONVERSIONS}
    assert set(INSTRUCTIONS) == wanted
    assert CONVERSIONS == {row.name for row in PRIMITIVES if row.result == "U"}


def test_each_instruction_is_in_the_shared_table() -> None:
    names = set(INSTRUCTIONS.values())
    for row, source, target in product(PRIMITIVES, COMPUTED, COMPUTED):
        if row.result == "U" and row.accepts([source], target):
            names.add(instruction(row.name, source, target) or "OpNot")
    assert names <= set(OP_BY_NAME) | set(EXT_BY_NAME)


def test_each_op_is_rendered() -> None:
    of_opencl = {op.name for op in (LoadLanes, Call)}
    of_cpu = {op.name for op in (LoadSharedLanes, StoreSharedLanes, Prefetch, PrefersPanels, Scale, Everywhere)}
    of_cpu |= {
        op.name for op in (LoadBytes, ByteOffset, MultiplyAddBytes, HasPairProducts, MultiplyAddPairs, Transpose)
    }
    assert set(_OPS) == set(DIALECT.ops) - of_opencl - of_cpu


def checked(lowered: Any) -> Any:
    """The summary of the runtime's checker."""
    entry = lowered.module.block.first.body.block.first
    accesses = [item.mapping["access"].value for item in entry.bindings]
    lengths = [item.mapping["length"].value for item in entry.bindings]
    point = Entry(lowered.name, tuple(zip(accesses, lengths, strict=True)), 0, lowered.workgroup_size)
    return verify(memoryview(lowered.payload.data), (point,))


@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
@pytest.mark.parametrize("shape", [[3, 5], [2, 600]], ids=str)
def test_the_runtime_agrees_on_features_and_shared_memory(lowered: Any, dtype: DType, shape: list[int]) -> None:
    start = {"f": "0.0", "i1": "false"}.get(dtype.name if dtype.name == "i1" else dtype.name[0], "0")
    made = lowered(reduction(shape, [1], "add", dtype.name, start), "spirv")
    summary = checked(made)
    assert summary.features == made.payload.features
    assert max(summary.shared_bytes.values()) == made.payload.shared_memory_bytes
    assert bool(made.payload.shared_memory_bytes) == (prod(shape) > 100)


def test_types_and_constants_are_declared_once(lowered: Any) -> None:
    t = tensor([4], "i32")
    u = tensor([4], "ui32")
    lines = [
        f'%c = "stablehlo.constant"() <{{value = dense<7> : {t}}}> : () -> {t}',
        f'%d = "stablehlo.constant"() <{{value = dense<7> : {u}}}> : () -> {u}',
        f'%x = "stablehlo.add"(%a0, %c) : ({t}, {t}) -> {t}',
        f'%y = "stablehlo.convert"(%x) : ({t}) -> {u}',
        f'%r = "stablehlo.add"(%y, %d) : ({u}, {u}) -> {u}',
    ]
    payload = lowered(main([t], lines, [("%r", u)]), "spirv").payload
    words = np.frombuffer(payload.data, "<u4").tolist()
    assert words[0] == MAGIC
    declared = [tuple(words[at + 1 : at + 4]) for at, count, code in instructions(words) if code == 21]
    assert len(declared) == 1, "one type for i32 and ui32"
    sevens = [at for at, count, code in instructions(words) if code == 43 and words[at + 3] == 7]
    assert len(sevens) == 1


def instructions(words: list[int]) -> list[tuple[int, int, int]]:
    """(place, words, opcode) of each instruction."""
    found, at = [], 5
    while at < len(words):
        found.append((at, words[at] >> 16, words[at] & 0xFFFF))
        at += words[at] >> 16
    return found


def test_float_operations_are_not_contracted(lowered: Any) -> None:
    t, b = tensor([4], "f32"), tensor([4], "i1")
    compare = "<{comparison_direction = #stablehlo<comparison_direction LT>}>"
    lines = [
        f'%p = "stablehlo.multiply"(%a0, %a0) : ({t}, {t}) -> {t}',
        f'%q = "stablehlo.sqrt"(%p) : ({t}) -> {t}',
        f'%r = "stablehlo.compare"(%q, %a0) {compare} : ({t}, {t}) -> {b}',
    ]
    words = np.frombuffer(lowered(main([t], lines, [("%r", b)]), "spirv").payload.data, "<u4").tolist()
    decorated = [words[at + 1] for at, _, code in instructions(words) if code == 71 and words[at + 2] == 42]
    assert len(decorated) == 3


@pytest.mark.parametrize("count", [1 << 31, (1 << 31) - 1])
def test_two_to_the_31_elements_are_counted_in_64_bits(lowered: Any, count: int) -> None:
    t = tensor([count], "i8")
    made = lowered(main([t], [f'%r = "stablehlo.negate"(%a0) : ({t}) -> {t}'], [("%r", t)]), "spirv")
    assert ("int64" in made.payload.features) == (count >= 1 << 31)
    assert "int64" in checked(made).features or count < 1 << 31
    source = lowered(main([t], [f'%r = "stablehlo.negate"(%a0) : ({t}) -> {t}'], [("%r", t)]), "opencl").payload.data
    assert (b"ulong" in source) == (count >= 1 << 31)


def test_the_assembler_declares_the_capabilities_that_types_need() -> None:
    for dtype in COMPUTED:
        assembler = Assembler()
        if dtype.name != "i1":
            assembler.in_buffers(dtype)
        assembler.scalar(dtype)
        wide = {8: "int8", 16: "int16", 64: "float64" if dtype.name == "f64" else "int64"}
        assert assembler.features == {wide[dtype.bits]} if dtype.bits in wide else not assembler.features
    assert BY_NAME["f64"] and CAPABILITY_BY_NAME["Float64"].feature == "float64"


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i16", "ui64"])
def test_loads_of_vectors_are_valid(dtype: str, tmp_path: Path) -> None:
    """A packed dot takes four elements of its operands at a time."""
    shape = tensor([16, 16], dtype)
    numbers = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    dot = "%r = " + apply("dot_general", "%a0, %a1", f"dot_dimension_numbers = {numbers}", [shape, shape], shape)
    job = Compilation(targets=("spirv",), encodings="always")
    module = job.module(main([shape, shape], [dot], [("%r", shape)]), "executables")
    vectors = 0
    for executable in [op for op in module.walk() if isinstance(op, Executable)]:
        vectors = max(vectors, sum(isinstance(op, LoadVector) for op in executable.walk()))
        (entry,) = executable.body.block.ops
        assert isinstance(entry, LoweredEntry) and entry.workgroup_size is not None
        payload = TARGET.serialize(executable)
        bindings = [item.mapping for item in entry.bindings]
        accesses = tuple((item["access"].value, item["length"].value) for item in bindings)
        x, y, z = entry.workgroup_size.ints
        point = Entry(entry.symbol or "", accesses, 0, (x, y, z))
        assert verify(memoryview(payload.data), (point,)).features == payload.features
        if tool := which("spirv-val"):
            (tmp_path / "dot.spv").write_bytes(payload.data)
            subprocess.run([tool, "--target-env", "vulkan1.1", str(tmp_path / "dot.spv")], check=True)
    assert vectors == 4  # of 8 rows and 8 columns


def test_memory_with_values_of_several_types_is_volatile() -> None:
    """In kernels that run loops: compilers of drivers may exchange accesses of different types to one place."""
    from jax import lax

    def mixed(x: Any, n: Any) -> Any:
        def body(state: tuple[Any, Any]) -> tuple[Any, Any]:
            v, i = state
            v = lax.cond(v[0] > i, lambda: jnp.cumsum(v) * 0.5, lambda: jnp.sin(v))
            return v + lax.switch(i % 3, [lambda: v.max(), lambda: v[1], lambda: v.min()]), i + 1

        return lax.while_loop(lambda state: state[1] < n, body, (x, jnp.int32(0)))

    given = jax.jit(mixed).lower(np.zeros(4, np.float32), np.int32(3))
    text = Compilation(targets=("spirv",)).text(given, "executables")
    entries = [op for op in parse(text, "text").walk() if isinstance(op, LoweredEntry)]
    found = [(entry, volatile_bindings(entry)) for entry in entries]
    assert any(volatile for _, volatile in found)
    for entry, volatile in found:
        retyped = set(entry.retyped.ints) if entry.retyped is not None else set()
        assert volatile == {place for number, (place, _) in enumerate(entry.places()) if number in retyped}


def volatile_bindings(entry: LoweredEntry) -> set[int]:
    """The bindings of the device with a volatile variable in the code of an entry."""
    executable = Executable.build(sym_name="code", body=Region([Block()]), loc=entry.loc)
    executable.body.block.append(entry.clone({}))
    words = np.frombuffer(TARGET.serialize(executable).data, np.uint32)[5:]
    volatile, bindings = set[int](), dict[int, int]()
    while len(words):
        count, code = divmod(int(words[0]), 1 << 16)
        if code == OP_BY_NAME["OpDecorate"].code:
            variable, decoration = int(words[1]), int(words[2])
            if decoration == DECORATIONS["Volatile"][0]:
                volatile.add(variable)
            if decoration == DECORATIONS["Binding"][0]:
                bindings[variable] = int(words[3])
        words = words[count:]
    return {bindings[variable] for variable in volatile}
