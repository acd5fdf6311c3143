"""Modules of every format version load, and their functions give what outside oracles gave. README.md has the rule."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from math import gcd
from pathlib import Path

import numpy as np
import pytest
from golden_calls import Call, array, call, compare, value

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.hal.registry import list_devices
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import PAGE, Attachment, Section
from orchestrion.schema.decoder import open_module
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.parameters import parameters_of
from orchestrion.schema.profiles import FEATURES, PROFILES
from orchestrion.schema.rows import GlobalFlags
from orchestrion.schema.safetensors import open_file
from orchestrion.schema.segments import verify_chunk
from orchestrion.schema.versions import MAJOR, MINOR
from orchestrion.schema.writer import Constant, Executable, write

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
#: the targets that the modules of a set are for
TARGETS = ("reference", "spirv", "opencl")
ALL = tuple(PROFILES[name].driver for name in TARGETS)
#: module -> the drivers that have a program in it
MODULES: dict[str, tuple[str, ...]] = {
    "simple_mul": ALL,
    "mlp": ALL,
    "control": ALL,
    "shared_memory": ALL,
    "symbolic": ALL,
    "library": ("reference",),
    "everything": ALL,
    "parameters": ALL,
}

#: the version whose set may still be written anew; None when there is none
UNRELEASED: tuple[int, int] | None = (1, 0)
#: file -> SHA-256, of released versions
RELEASED: dict[str, str] = {}


def simple_mul() -> tuple[bytes, list[Call]]:
    x, y = np.array([1, 2, -3, 0.1], np.float32), np.array([10, 0.5, 7, np.inf], np.float32)
    module = compiler.compile(EXAMPLES / "simple_mul.generic.mlir", targets=TARGETS)
    return module, [call("simple_mul", [array(x), array(y)], array(x * y))]


def mlp() -> tuple[bytes, list[Call]]:
    x, y = np.load(EXAMPLES / "mlp_input.npy"), np.load(EXAMPLES / "mlp_output.npy")
    return compiler.compile(EXAMPLES / "mlp.mlir", targets=TARGETS), [call("main", [array(x)], array(y))]


def control() -> tuple[bytes, list[Call]]:
    text = (HERE / "control.asm").read_text()
    program = text[text.index("program @") :]
    for name in TARGETS:
        if name != "reference":
            text += program.replace('@reference profile "reference"', f'@{name} profile "{name}"')
    calls = [
        call("primes_below", [1000], sum(all(n % d for d in range(2, n)) for n in range(2, 1000))),
        call("fibonacci", [16], 987),
        call("greatest_common_divisor", [252, 105], gcd(252, 105)),
        *(call("days_in_month", [month], days) for month, days in ((0, 31), (1, 28), (3, 30), (11, 31))),
        call("mean_square", [101], float(np.mean(np.arange(101.0) ** 2)), None),
        call("checksum", [], checksum(bytes([1, 2, 3, 4, 5, 6, 7, 255]))),
        call("count", [], 43),
        call("count", [], 45),
    ]
    return write(assemble(text)), calls


def checksum(data: bytes) -> int:
    found = 0
    for byte in data:
        found = (found << 7 | found >> 57) % 2**64 ^ byte
    return found - 2**64 if found >> 63 else found


PRODUCTS = """
func.func @main(%x: tensor<3x20x24xf32>, %y: tensor<3x27x24xf32>) -> tensor<3x20x27xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2]
    : (tensor<3x20x24xf32>, tensor<3x27x24xf32>) -> tensor<3x20x27xf32>
  return %0 : tensor<3x20x27xf32>
}"""


def shared_memory() -> tuple[bytes, list[Call]]:
    """Made for graphics processors, whose kernels stage products in shared memory, and allowed on any device."""
    rows = Compilation(targets=TARGETS, machines=("gpu",)).rows(PRODUCTS)
    rows = replace(rows, programs=[replace(row, features=row.features - {"gpu"}) for row in rows.programs])
    used = [v.shared_memory_bytes for row in rows.programs for e in row.executables for v in e.variants]
    assert sum(size > 0 for size in used) >= 2
    x = np.arange(1440, dtype=np.float32).reshape(3, 20, 24) % 7 - 3
    y = np.arange(1944, dtype=np.float32).reshape(3, 27, 24) % 11 - 5
    product = np.einsum("bqd,bkd->bqk", x, y)
    return write(rows), [call("main", [array(x), array(y)], array(product))]


SYMBOLIC = """
func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %double = stablehlo.add %x, %x : tensor<?x3xf32>
  %rows = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
  return %double, %rows : tensor<?x3xf32>, tensor<?xf32>
}"""


def symbolic() -> tuple[bytes, list[Call]]:
    calls = []
    for batch in (1, 4, 37):
        x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3) / 8
        calls.append(call("main", [array(x)], array(x + x), array(x.sum(1))))
    return compiler.compile(SYMBOLIC, targets=TARGETS), calls


LIBRARY = """
func.func @main(%a: tensor<4x3xf32>, %b: tensor<3x5xf32>) -> tensor<4x5xf32> {
  %0 = stablehlo.custom_call @blas.gemm(%a, %b) {api_version = 4 : i32, backend_config = {alpha = 2.0 : f64}}
    : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}"""


def library() -> tuple[bytes, list[Call]]:
    a, b = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(15, dtype=np.float32).reshape(3, 5) - 7
    module = compiler.compile(LIBRARY, targets=["reference"])
    return module, [call("main", [array(a), array(b)], array(2 * (a @ b)))]


def everything() -> tuple[bytes, list[Call]]:
    """What the compiler does not write by itself: every place that the format has beside the program."""
    rows = Compilation(targets=TARGETS).rows(EXAMPLES / "simple_mul.generic.mlir")
    pages = Constant("pages", bytes(range(256)) * 256, DTYPES["ui8"], (65536,), chunked=True)
    programs = [
        replace(row, executables=tuple(map(_two_variants, row.executables)), constants=(*row.constants, pages),
                attributes={"tuned.for": row.name, "table": bytes(range(16))})
        for row in rows.programs
    ]  # fmt: skip
    (export,) = rows.exports
    rows = replace(
        rows,
        programs=programs,
        exports=[replace(export, attributes={"task": "multiplication", "labels": b"\0\1"})],
        attributes={"model.name": "everything", "model.version": "7", "licence": "Apache-2.0", "icon": b"\x89PNG\r\n"},
        custom={"org.example.tokens": "größer als".encode(), "org.example.empty": b""},
        attachments=[Attachment("NOTE", b"of another tool"), Attachment("MORE", b"", 2)],
        sections=[Section("appended", b"behind everything"), Section("last", b"")],
    )
    x, y = np.array([1, 2, -3, 0.1], np.float32), np.array([10, 0.5, 7, np.inf], np.float32)
    return write(rows), [call("simple_mul", [array(x), array(y)], array(x * y))]


PARAMETERS = """
func.func @main(%x: tensor<3x32xf32>) -> tensor<3x32xf32> {
  %w = stablehlo.constant dense<"0xDATA"> : tensor<32x32xf32> loc("layer/w")
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
    : (tensor<3x32xf32>, tensor<32x32xf32>) -> tensor<3x32xf32> loc("layer/w")
  return %0 : tensor<3x32xf32>
}"""


def parameters() -> tuple[bytes, list[Call]]:
    """Weights in the file beside the module, which also other readers of safetensors read."""
    w = np.arange(1024, dtype=np.float32).reshape(32, 32) % 13 - 6
    x = np.arange(96, dtype=np.float32).reshape(3, 32) % 5 - 2
    file = HERE / f"v{MAJOR}.{MINOR}-parameters.safetensors"
    module = compiler.compile(PARAMETERS.replace("DATA", w.tobytes().hex()), parameters=file, targets=TARGETS)
    return module, [call("main", [array(x)], array(x @ w.T))]


def _two_variants(row: Executable) -> Executable:
    """A variant for devices with every feature and 2 GiB of shared memory before the one that is for all."""
    (variant,) = row.variants
    first = replace(variant, features=frozenset(FEATURES), shared_memory_bytes=1 << 31)
    return replace(row, variants=(first, variant))


GENERATE: dict[str, Callable[[], tuple[bytes, list[Call]]]] = {
    "simple_mul": simple_mul,
    "mlp": mlp,
    "control": control,
    "shared_memory": shared_memory,
    "symbolic": symbolic,
    "library": library,
    "everything": everything,
    "parameters": parameters,
}


@pytest.fixture(scope="module", autouse=True)
def _bless() -> None:
    if os.environ.get("BLESS") and UNRELEASED is not None:
        assert (MAJOR, MINOR) == UNRELEASED, "the format has moved on: is its last version released?"
        for name in MODULES:
            module, calls = GENERATE[name]()
            (HERE / f"v{MAJOR}.{MINOR}-{name}.fb").write_bytes(module)
            lines = ",\n".join(json.dumps(row) for row in calls)
            (HERE / f"v{MAJOR}.{MINOR}-{name}.json").write_text(f"[\n{lines}\n]\n")


@pytest.fixture(scope="module")
def devices() -> dict[str, str]:
    """Why a driver has no device here, empty where it has one."""
    return {status.name: "" if status.devices else status.reason for status in list_devices()}


@pytest.mark.parametrize(("name", "device"), [(name, device) for name in MODULES for device in MODULES[name]])
@pytest.mark.parametrize("minor", range(MINOR + 1))
def test_it_runs(minor: int, name: str, device: str, devices: dict[str, str]) -> None:
    if devices[device]:
        pytest.skip(f"{device}: {devices[device]}")
    if name == "library":
        pytest.importorskip("scipy", reason="library functions are SciPy's")
    path = HERE / f"v{MAJOR}.{minor}-{name}.fb"
    header = open_module(path).header
    assert (header.major, header.minor) == (MAJOR, minor)
    program = vm.load(path, device=device, allow_native_code=True)
    for row in json.loads(path.with_suffix(".json").read_text()):
        results = program[row["function"]](*map(value, row["arguments"]))
        compare(results if isinstance(results, tuple) else (results,), [value(x) for x in row["results"]])
    program.close()


def test_everything_is_there() -> None:
    """What each golden module is for, found in it by readers that know nothing of how it was made."""
    module = open_module(HERE / "v1.0-everything.fb")
    assert (module.model_name, module.model_version) == ("everything", 7)
    assert (module.attribute("licence"), module.attribute("icon")) == ("Apache-2.0", b"\x89PNG\r\n")
    assert (module.export_attribute(0, "task"), module.export_attribute(0, "labels")) == ("multiplication", b"\0\1")
    names = [module.strings[row.name] for row in module.programs]
    assert [module.program_attribute(at, "tuned.for") for at in range(len(names))] == names
    assert (module.custom("org.example.tokens"), module.custom("org.example.empty")) == ("größer als".encode(), b"")
    file = module.container
    assert [(row.tag, bytes(row.verified())) for row in file.attachments] == [
        ("NOTE", b"of another tool"),
        ("MORE", b""),
    ]
    assert [(row.name, bytes(row.data)) for row in file.sections] == [("appended", b"behind everything"), ("last", b"")]
    long = next(at for at, row in enumerate(module.segments) if row.chunks_end)
    assert file.spans[long][0] % PAGE == 0
    verify_chunk(module.segments[long], module.chunks, 0, module.segment(long))
    assert all(row.variants_end - row.variants_start == 2 for row in module.executables)


def test_features_are_used() -> None:
    control, symbolic = (open_module(HERE / f"v1.0-{name}.fb") for name in ("control", "symbolic"))
    assert any(row.flags & GlobalFlags.Mutable for row in control.globals)
    assert symbolic.expressions and min(symbolic.dims) < 0
    assert any(row.shared_memory_bytes for row in open_module(HERE / "v1.0-shared_memory.fb").variants)
    assert b"blas.gemm" in (HERE / "v1.0-library.fb").read_bytes()
    (row,) = parameters_of(open_module(HERE / "v1.0-parameters.fb"))
    assert (row.name, str(row)) == ("layer/w", "32x32xf32") and any(row.digest)
    weights = open_file(HERE / "v1.0-parameters.safetensors").bytes_of("layer/w")
    assert sha256(weights).digest() == row.digest


def test_released_modules_are_as_they_were() -> None:
    for name, digest in RELEASED.items():
        assert sha256((HERE / name).read_bytes()).hexdigest() == digest, name
    unlisted = {path.name for path in HERE.glob("v*.fb")} - set(RELEASED)
    own = set() if UNRELEASED is None else {f"v{UNRELEASED[0]}.{UNRELEASED[1]}-{name}.fb" for name in MODULES}
    assert unlisted == own, "the digests of a released set stand in RELEASED"
