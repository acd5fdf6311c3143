"""The corpus of the mutation tests: text with control flow, lists, calls and device work, and what compilers give.

`compiled` and `linear_algebra` need JAX, `calling_libraries` and `linear_algebra` SciPy: an ImportError says so.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.schema import assembler, dtypes, encoding, tensor_encoding, writer
from orchestrion.schema.decoder import read_module
from orchestrion.schema.module import Module
from orchestrion.schema.rows import ACCESSES
from orchestrion.schema.rows import Entry as EntryRow
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_shapes import ShapeError, TensorType

TESTS = Path(__file__).parents[1]
PROGRAMS = TESTS / "fuzz" / "programs"
#: the kernels of the conformance suite, for `device.asm`
EXECUTABLE = """  executable @kernels {{
    entry @add parameters 2 bindings [read 4, read 4, write 4]
    entry @iota parameters 2 bindings [write 4]
    entry @increment parameters 2 bindings [readwrite 4]
    variant "spirv" workgroups [(64, 1, 1), (1, 1, 1), (64, 1, 1)] payload hex "{words}"
  }}
"""
SECOND_DISPATCH = "%r1, %r2, %i1, %l1, %l2, %l2, %r0, %i0, %l3, %l4, %r0, %i0, %l4, %l4"
#: functions of the VM's own test programs that one module exports
CHUNK = 10
_CALLS = ("call", "call.cached")
F32, F64, I1, I32, I64 = (dtypes.BY_NAME[name] for name in ("f32", "f64", "i1", "i32", "i64"))


def device_payload() -> bytes:
    """The executable of `device.asm`: one entry adds, the other goes through structural ops and negates."""
    four = TensorType(F32, (4,))
    add = EntryCode(3)
    (x,), (y,) = add.emit("load_input", (), 0, four), add.emit("load_input", (), 1, four)
    (z,) = add.emit("add", (x, y))
    add.emit("store_output", (z,), 2)
    negate = EntryCode(2)
    (x,) = negate.emit("load_input", (), 0, four)
    (x,) = negate.emit("reshape", (x,), (2, 2))
    (x,) = negate.emit("transpose", (x,), (1, 0))
    (x,) = negate.emit("reverse", (x,), (0,))
    (x,) = negate.emit("reshape", (x,), (4,))
    (x,) = negate.emit("negate", (x,))
    negate.emit("store_output", (x,), 1)
    return tensor_encoding.encode([add, negate])


def assembled() -> Iterator[tuple[str, writer.Module]]:
    for path in sorted(PROGRAMS.glob("*.asm")):
        yield path.stem, assembler.assemble(path.read_text().replace("{payload}", device_payload().hex()))


def of_the_vm() -> Iterator[tuple[str, writer.Module]]:
    """The self-checking programs of every instruction, some functions and what they call at a time."""
    for path in sorted((TESTS / "vm" / "programs").glob("*.asm")):
        module = assembler.assemble(path.read_text())
        (program,) = module.programs
        callable_ = [at for at, row in enumerate(program.functions) if not row.name.startswith("_")]
        for start in range(0, len(callable_), CHUNK):
            yield f"{path.stem}-{start // CHUNK}", _exporting(module, callable_[start : start + CHUNK])


def _exporting(module: writer.Module, wanted: list[int]) -> writer.Module:
    """The module with these functions behind exports, and of the others only what they need."""
    (program,) = module.programs
    kept = list(wanted)
    for at in kept:
        for one in encoding.decode(program.functions[at].bytecode):
            if one.row.name in _CALLS and one.operands[0] not in kept:
                kept.append(one.operands[0])  # type: ignore[arg-type]
    new = {at: place for place, at in enumerate(kept)}

    def moved(row: writer.Function) -> writer.Function:
        code = [
            (one.row, (new[one.operands[0]], *one.operands[1:]) if one.row.name in _CALLS else one.operands)  # type: ignore[index]
            for one in encoding.decode(row.bytecode)
        ]
        return replace(row, bytecode=encoding.encode_all(code))

    functions = tuple(moved(program.functions[at]) for at in kept)
    exports = tuple(writer.Export(program.functions[at].name) for at in wanted)
    entries = tuple(range(len(wanted)))
    return replace(module, programs=(replace(program, functions=functions, entries=entries),), exports=exports)


def compiled() -> Iterator[tuple[str, writer.Module]]:
    """Modules of the compiler, for all targets, so that the tables of the root are full."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    from orchestrion.compiler.driver import Compilation

    weights = np.random.default_rng(0).normal(size=(160, 128)).astype(np.float32)

    def product(x: Any, y: Any) -> Any:
        return x * y

    def dense(x: Any, b: Any) -> Any:
        hidden = jax.nn.relu(x @ weights + b)
        return hidden, jnp.max(hidden, axis=1), jnp.argmax(hidden, axis=1)

    def moved(x: Any, y: Any) -> Any:
        z = jnp.concatenate([x.T, y[::-1, 1:3]], axis=1)
        return lax.pad(z, jnp.float32(1), ((1, 0, 2), (0, -1, 0))), jnp.arange(6)[:, None] + z.astype(np.int64)[:1]

    def integers(x: Any, n: Any) -> Any:
        shifted = jnp.where(x > n, x << 3, x // jnp.maximum(n, 2)) ** 3
        return shifted, jnp.sum(shifted, axis=(0, 2)), lax.population_count(x), x % n != 0

    def normal(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return jax.nn.softmax(centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).astype(np.float64)

    def batched(x: Any, y: Any) -> Any:
        return jnp.einsum("bij,bjk->bik", x, y), jnp.any(x > 0), x.reshape(-1)[3:9:2]

    def looped(x: Any, n: Any) -> Any:
        def turn(state: Any) -> Any:
            y, i = state
            part = lax.dynamic_slice(y, (i, i * 0), (2, 400)) + 1
            return lax.dynamic_update_slice(y, part * 2, (i, i * 0)), i + 1

        rows, _ = lax.while_loop(lambda state: state[1] < n[0], turn, (x, n[1]))
        return rows, lax.fori_loop(0, 3, lambda i, y: y.at[i].set(y[i] + 1), x[:, 0])

    def taken(x: Any, n: Any) -> Any:
        return x[n], jnp.take_along_axis(x, n[:, None] % 3, axis=1), jnp.where(n > 0, n, -n)

    cases: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], type]]]] = {
        "product": (product, [((4,), np.float32), ((4,), np.float32)]),
        "dense": (dense, [((3, 160), np.float32), ((128,), np.float32)]),
        "moved": (moved, [((4, 2), np.float32), ((2, 4), np.float32)]),
        "integers": (integers, [((2, 3, 4), np.int32), ((), np.int32)]),
        "normal": (normal, [((2, 6), np.float32)]),
        "batched": (batched, [((2, 3, 4), np.int64), ((2, 4, 5), np.int64)]),
        "looped": (looped, [((8, 400), np.float32), ((2,), np.int32)]),
        "taken": (taken, [((4, 3), np.float32), ((4,), np.int32)]),
    }
    for name, (function, specs) in cases.items():
        shapes = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in specs]
        yield name, _in_bytes(Compilation().rows(jax.jit(function).lower(*shapes)))


LIBRARY_CALLS = """func.func @main(%a: tensor<4x3xf32>, %b: tensor<3x3xf64>) -> (tensor<4x5xf32>, tensor<3x2xf64>) {
  %one = stablehlo.constant dense<1.0> : tensor<3x5xf32>
  %0 = stablehlo.custom_call @blas.gemm(%a, %one) {api_version = 4 : i32, backend_config = {alpha = 2.0 : f64}}
    : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = stablehlo.slice %b [0:3, 0:2] : (tensor<3x3xf64>) -> tensor<3x2xf64>
  %2 = stablehlo.custom_call @blas.trsm(%b, %1) {api_version = 4 : i32, backend_config = {lower = true}}
    : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %0, %2 : tensor<4x5xf32>, tensor<3x2xf64>
}"""


def linear_algebra() -> Iterator[tuple[str, writer.Module]]:
    """What JAX exports as calls of LAPACK."""
    import jax
    from jax import numpy as jnp

    from orchestrion.compiler.driver import Compilation

    def solved(x: Any) -> Any:
        y = x @ x.T + jnp.eye(3)
        svd, eigh = jnp.linalg.svd(x), jnp.linalg.eigh(y)
        return jnp.linalg.cholesky(y), *jnp.linalg.qr(x), *svd, *eigh, *jax.lax.linalg.lu(x)

    lowered = jax.jit(solved).lower(jax.ShapeDtypeStruct((3, 3), np.float32))
    yield "lapack", _in_bytes(Compilation(targets=("reference",)).rows(lowered))


def calling_libraries() -> Iterator[tuple[str, writer.Module]]:
    """A module that only one target can run."""
    from orchestrion.compiler.driver import Compilation

    yield "library", _in_bytes(Compilation(targets=("reference",)).rows(LIBRARY_CALLS))


def _in_bytes(module: writer.Module) -> writer.Module:
    """With constants as plain bytes, which can go to another process."""
    programs = tuple(
        replace(
            program,
            constants=tuple(replace(row, data=memoryview(row.data).tobytes()) for row in program.constants),
        )
        for program in module.programs
    )
    return replace(module, programs=programs)


def written() -> Iterator[bytes]:
    """Small files that need no extra to be made: what is assembled, and modules of earlier versions."""
    for _, module in (*assembled(), *of_the_vm()):
        yield writer.write(module)
    for path in sorted((TESTS / "golden").glob("*.fb")):
        yield path.read_bytes()
    yield writer.write(beyond_programs())


def beyond_programs() -> writer.Module:
    """A small module with all that stands beside programs: attributes, custom segments, attachments, sections."""
    text = """
    attribute "model.name" = "n" attribute "icon" = hex "89" custom "a" = hex "00" attachment "NOTE" = hex "01"
    section "appended" = hex "0203"
    export @f attributes ["task" = "t"]
    program @p profile "reference" { attribute "k" = hex "" func @f () -> () { return () } entry @f }
    """
    module = assembler.assemble(text)
    constant = writer.Constant("c", bytes(8), dtypes.BY_NAME["f32"], (2,), chunked=True)
    return replace(module, programs=(replace(module.programs[0], constants=(constant,)),))


def for_device(profile: str) -> Iterator[writer.Module]:
    """What is assembled, as programs of another profile.

    `device.asm` dispatches the SPIR-V of the conformance suite; for other profiles, whose code is native, it dispatches
    nothing, and fills, copies, submits and waits.
    """
    for name, module in (*assembled(), *of_the_vm()):
        (program,) = module.programs
        if name != "device":
            yield replace(module, programs=(replace(program, profile=profile, executables=()),))
    text = (PROGRAMS / "device.asm").read_text().replace('profile "reference"', f'profile "{profile}"')
    start, end = text.index("  executable @adder"), text.index("  global @executable")
    words = (resources.files("orchestrion.hal.cts") / "payloads" / "kernels.spv").read_bytes().hex()
    executable = EXECUTABLE.format(words=words) if profile == "spirv" else ""
    text = text[:start] + executable + text[end:]
    lines = []
    for line in text.splitlines():
        if "recording.dispatch(" in line and profile == "spirv":
            lines.append("    %i5 = i32.const 4 call_import @hal.recording.parameters(%r1, %i5, %i1)")
            line = line.replace(SECOND_DISPATCH, "%r1, %r2, %i2, %l1, %l2, %l2, %r0, %i0, %l3, %l4")
        used = any(word in line for word in ("recording.dispatch(", "hal.executable.create(", "%r0, @executable"))
        lines.append("" if used and not executable and not line.startswith("import") else line)
    yield assembler.assemble("\n".join(lines))


def golden_variants(format: str) -> Iterator[tuple[bytes, tuple[Entry, ...]]]:
    """Payloads of a format in the modules of earlier versions, with the entries that these say they have."""
    for path in sorted((TESTS / "golden").glob("*.fb")):
        module = read_module(path.read_bytes())
        for executable in module.executables:
            for variant in module.variants[executable.variants_start : executable.variants_end]:
                if module.strings[variant.format] == format:
                    sizes = module.workgroup_sizes[variant.workgroup_sizes_start : variant.workgroup_sizes_end]
                    rows = module.executable_entries[executable.entries_start : executable.entries_end]
                    entries = [_entry(module, row, tuple(size)) for row, size in zip(rows, sizes, strict=True)]
                    yield bytes(module.segment(variant.payload)), tuple(entries)


def _entry(module: Module, row: EntryRow, size: tuple[int, ...]) -> Entry:
    accesses = {code: name for name, code in ACCESSES.items()}
    bindings = module.bindings[row.bindings_start : row.bindings_end]
    taken = tuple((accesses[access], length) for length, access in bindings)
    return Entry(module.strings[row.name], taken, row.parameter_words, (size[0], size[1], size[2]))


def tensor_entries() -> Iterator[bytes]:
    """A payload per kind of structural op, with scalars between."""
    four, pairs = TensorType(F32, (4,)), TensorType(I32, (2, 3))
    zero = ("constant", (), TensorType(F32, ()), bytes(4))
    rows: list[list[tuple[Any, ...]]] = [
        [("load_input", (), 0, four), zero, ("pad", (0, 1), (1,), (-1,), (2,)), ("reshape", (2,), (5, 2))],
        [("load_input", (), 0, pairs), ("broadcast_in_dim", (0,), (3, 2, 2), (1, 0)), ("convert", (0,), F64)],
        [("load_input", (), 0, pairs), ("slice", (0,), (0, 1), (2, 3), (1, 2)), ("concatenate", (1, 1), 1)],
        [("load_input", (), 0, pairs), ("dot_general", (0, 0), (), (), (1,), (1,), I32), ("iota", (), pairs, 1)],
        [("load_input", (), 0, four), ("load_input", (), 0, TensorType(I32, ())), ("dynamic_slice", (0, 1), (2,))],
        [("load_input", (), 0, four), zero, ("compare_lt", (0, 0)), ("select", (2, 0, 0)), ("exponential", (3,))],
        [("load_input", (), 0, TensorType(I1, (8,))), ("not", (0,)), ("load_input", (), 0, TensorType(I64, (1,)))],
        [("load_input", (), 0, four), ("windows", (0,), (0,), (2,), (1,), (1,)), ("reverse", (0,), (0,))],
    ]
    for lines in rows:
        code, last = EntryCode(2), 0
        for name, operands, *attributes in lines:
            try:
                found = code.emit(name, operands, *attributes)
            except (ShapeError, KeyError) as error:
                raise ValueError(f"{name}{operands} {attributes}: {error}") from error
            last = found[-1]
        code.emit("store_output", (last,), 1)
        yield tensor_encoding.encode([code])
