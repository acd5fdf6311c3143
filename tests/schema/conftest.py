"""A module that uses every vector of the root, and a function that damages one of its values."""

import struct
from collections.abc import Callable

import numpy as np
import pytest

from orchestrion.schema import container, dtypes, layout, structure, writer
from orchestrion.schema.rows import Access, InitializerKind

F32 = dtypes.BY_NAME["f32"]

FORMATS = {"reference": "tensor-bytecode", "spirv": "spirv", "opencl": "opencl-c"}


def make_program(profile: str) -> writer.Program:
    def function(name: str, code: bytes, arguments: list[str], results: list[str]) -> writer.Function:
        places = [(0, f"{name}.py:1:2"), (8, f"{name}.py:3:4")]
        return writer.Function(name, code, arguments, results, (4, 3, 2, 1, 6), places)

    entry = writer.Entry(
        "main_dispatch_0",
        [writer.Binding(Access.Read, 16), writer.Binding(Access.Write, 8), writer.Binding(Access.ReadWrite, 0)],
        parameter_words=2,
    )
    other = writer.Entry("main_dispatch_0_tail", [writer.Binding(Access.Write, 4)])
    payload = f"code of {profile}".encode() * 20
    return writer.Program(
        name=f"for {profile}",
        profile=profile,
        functions=[
            function("main", bytes(range(40)), ["hal.view"] * 3, ["hal.view"]),
            function("add", bytes(range(100, 130)), ["i32", "i64"], ["i64", "f32"]),
            function("setup", profile.encode(), [], []),
            function("prepare", b"", [], []),
        ],
        entries=[0, 1, 0],
        globals=[
            writer.Global("executable", "hal.executable"),
            writer.Global("count", "i32", True, -7),
            writer.Global("long", "i64", False, 2**40),
            writer.Global("half", "f32", True, 0.5),
            writer.Global("third", "f64", True, 1 / 3),
        ],
        initializers=[
            writer.Initializer(2, InitializerKind.Program),
            writer.Initializer(3, InitializerKind.Context),
        ],
        executables=[
            writer.Executable(
                "main_dispatch_0",
                [entry, other],
                [
                    writer.Variant(FORMATS[profile], payload, [(64, 1, 1), (1, 1, 1)], frozenset({"int8"}), 1024),
                    writer.Variant(FORMATS[profile], payload + b"!", [(8, 8, 1), (4, 2, 1)]),
                ],
            )
        ],
        constants=[
            writer.Constant("weights", np.arange(20, dtype=np.float32).reshape(4, 5), F32, (4, 5), chunked=True),
            writer.Constant("bias", np.float32(3) * np.ones((), np.float32), F32, ()),
            writer.Constant("empty", b"", F32, (0, 7)),
        ],
        features=frozenset({"int64", "float64"}) if profile == "spirv" else frozenset(),
        attributes={"tuned.for": profile, "table": bytes(range(7))},
    )


def make_module(profiles: tuple[str, ...] = tuple(FORMATS)) -> writer.Module:
    def value(name: str, *dims: int, alias: int | None = None) -> writer.Value:
        return writer.Value(name, F32, dims, alias)

    return writer.Module(
        [make_program(profile) for profile in profiles],
        exports=[
            writer.Export(
                "main",
                [value("a", 4), value("b", 4)],
                [value("c", 4, alias=1)],
                "multiplies, größer als nichts",
                {"task": "größer", "labels": b"\xff\0"},
            ),
            writer.Export("add", [value("x", 2, 3)], [value("sum"), value("rest", 3, 0)]),
            writer.Export(
                "grow",
                [writer.Value("x", F32, (-1, 3), expressions=("batch",))],
                [writer.Value("y", F32, (-1, -1), expressions=("2 * batch", "batch"))],
            ),
        ],
        imports=[
            writer.Import("hal.execute", "(hal.recording, hal.buffer*) -> ()"),
            writer.Import("debug.print", "(any) -> ()", optional=True),
        ],
        attributes={"licence": "Apache-2.0", "card": "ein Modell", "icon": b"\x89PNG"},
        producer="tests",
        custom={"org.example.tokens": b"a b c", "org.example.empty": b""},
    )


@pytest.fixture(scope="session")
def source() -> writer.Module:
    return make_module()


@pytest.fixture(scope="session")
def data(source: writer.Module) -> bytes:
    """The bytes of `source`."""
    return writer.write(source)


Patch = Callable[[bytes, str, int, int, int], bytes]


@pytest.fixture(scope="session")
def patch() -> Patch:
    """patch(data, vector, row, position, value): the file with one number of a row replaced and its digests updated."""

    def damaged(data: bytes, name: str, row: int, position: int, value: int) -> bytes:
        vector = layout.layout().vector(name)
        _, tables = structure.structure(container.open_bytes(data).root)
        offset = tables.offsets[vector.slot] + row * vector.format.size
        values = list(vector.format.unpack_from(data, offset))
        values[position] = value
        changed = bytearray(data)
        struct.pack_into(vector.format.format, changed, offset, *values)
        return container.reseal(bytes(changed))

    return damaged
