"""The target of the `cpu` profile: a native image per executable and level, made by LLVM (docs/kernel.md).

A level is an instruction set (`levels.py`). The images of an executable are its variants, best first.
"""

from collections.abc import Iterable, Iterator, Sequence

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow.layout import Encoding, Layout
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.ir.dims import Shape, is_dynamic
from orchestrion.compiler.kernel.dialect import MultiplyAddBytes, MultiplyAddPairs
from orchestrion.compiler.kernel.machine import Machine, Quirks
from orchestrion.compiler.kernel.patterns.panels import panel_tile
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.compiler.targets.kernel_target import KernelTarget, Lowered
from orchestrion.compiler.targets.target import Payload
from orchestrion.schema import native_image

from . import llvm_child
from .code import notes
from .entry import EntryText
from .functions import Functions
from .levels import LEVELS, Level, host_levels, levels_named
from .linker import LinkError, link

MACHINES = {
    "cpu": Machine(
        simd=16,
        accumulators=128,
        explicit_vectors=True,
        lanes=4,
        units=64,
        transposed_tile=16,
        quick_builds=True,
        panel_tile=(8, 32),
        panel_bytes=320 << 10,
        winograd_bytes=136 << 10,
        attention_bytes=208 << 10,
        multiply_add=True,
        byte_products=True,
        pair_products=True,
        float_sums=False,
        chooses_extrema=True,
        quirks=Quirks(functions=True),
    ),
    "mcu": Machine(
        simd=4,
        accumulators=8,
        cached=False,
        subgroup=1,
        units=1,
        float_sums=False,
        flash=256 << 10,
        ram=64 << 10,
        quirks=Quirks(functions=True),
    ),
}

#: least number of rows and of columns of a dot whose constant right operand is stored in tiles
PACKED_ROWS, PACKED_COLUMNS = 32, 16
#: characters of LLVM IR from which on a text has no further entry. Texts are compiled side by side
PART = 16 << 10

#: bytes of the stack per function for the return address, and for alignment
_CALL = 64
#: attributes of every function: no symbol from outside, no tables, code that other code may not name
_ATTRIBUTES = (
    'attributes #0 = {{ nounwind "no-builtins" "no-jump-tables"="true" "probe-stack"="inline-asm" '
    '"target-cpu"="{cpu}" "target-features"="{features}" "prefer-vector-width"="{bits}" '
    f'"denormal-fp-math"="ieee,ieee" {llvm_child.REPORTS_FRAME} }}}}'
)


class CpuTarget(KernelTarget):
    """Serializes to native images."""

    api_version = (1, 1)
    name = "cpu"
    tiles = (1, 32)
    packs_constants_only = True
    most_entries = 64
    machines = MACHINES

    def layout(self, encoding: Encoding, shape: Shape) -> Layout | None:
        """Tiles of the columns that a workgroup computes, of the right operand of a matrix product: panels need not be
        copied from it (docs/decisions/packed-panels.md).
        """
        if self.row_major_because(encoding, shape):
            return None
        rows, columns, _ = encoding.sizes
        return encoding.tiled(shape, panel_tile(rows, columns, MACHINES["cpu"])[1])

    def row_major_because(self, encoding: Encoding, shape: Shape) -> str:
        """Why an operand stays in row-major order; empty if it does not."""
        rows, columns, _ = encoding.sizes
        if encoding.role == "lhs":
            return "kernels read the left operand of a dot in row-major order"
        if len(encoding.free) != 1 or encoding.batch or (encoding.role == "rhs" and len(encoding.contract) != 1):
            return "only matrices and kernels of convolutions are stored in tiles"
        if is_dynamic(*shape) or columns < PACKED_COLUMNS:
            return f"tiles are worth it from {PACKED_COLUMNS} columns on, of which there are {columns}"
        few = f"tiles are worth it from {PACKED_ROWS} rows on, of which there are {rows}"
        return few if rows < PACKED_ROWS else ""

    def serialize(self, executable: Operation) -> Payload:
        """The image for the best level of the host's architecture."""
        return self.payloads(executable, host_levels()[:1])[0]

    def payloads(self, executable: Operation, processors: Sequence[str] = ()) -> list[Payload]:
        """An image for each level; without names, for those of the host's architecture."""
        entries, features, shared = Lowered.of(executable)
        levels = levels_of(entries, levels_named(tuple(processors)))
        return [
            Payload(image, features | {level.name}, shared)
            for image, level in zip(images(entries, levels), levels, strict=True)
        ]


def levels_of(entries: Sequence[tuple[Block, Signature]], levels: Sequence[Level]) -> list[Level]:
    """The levels that need images of their own. If the entries have no products of bytes or bf16, a level that differs
    from its base only in these is replaced by its base.
    """
    kinds = {type(op) for block, _ in entries for op in block.walk()}

    def least(level: Level) -> Level:
        if not level.base:
            return level
        base = LEVELS[level.base]
        bytes = MultiplyAddBytes in kinds and level.byte_products != base.byte_products
        pairs = MultiplyAddPairs in kinds and level.pair_products != base.pair_products
        return level if bytes or pairs else least(base)

    return list(dict.fromkeys(map(least, levels)))


def images(entries: Sequence[tuple[Block, Signature]], levels: Sequence[Level]) -> list[bytes]:
    """The image of entries for each level.

    Raises CompileError with the names of the entries if LLVM or the linker fails.
    """
    signatures = [signature for _, signature in entries]
    with llvm_child.ObjectFiles() as objects:
        found = [[objects.add(text, level, names) for text, names in texts_of(entries, level)] for level in levels]
        return [
            _image([part.result() for part in parts], signatures, level)
            for parts, level in zip(found, levels, strict=True)
        ]


def _image(objects: Sequence[llvm_child.ObjectFile], signatures: Sequence[Signature], level: Level) -> bytes:
    """The image of object files."""
    functions = [f"e{number}" for number in range(len(signatures))]
    try:
        linked = link(level.architecture, [made.data for made in objects], functions)
    except LinkError as error:
        names = _names(signatures)
        raise CompileError(f"code of {names} for {level.name} cannot be linked: {error}") from error
    frames = {name: size for made in objects for name, size in made.frames.items() if name in functions}
    called = max(sum(size + _CALL for name, size in made.frames.items() if name not in frames) for made in objects)
    rows = []
    for function, signature in zip(functions, signatures, strict=True):
        stack = frames.get(function, 0) + _CALL + called
        if stack > native_image.MOST_STACK:
            raise CompileError(
                f"entry {signature.name} for {level.name} uses {stack} bytes of the stack, "
                f"{native_image.MOST_STACK} are allowed"
            )
        start, bindings = linked.functions[function][0], len(signature.bindings)
        rows.append(native_image.Entry(start, bindings, signature.parameters, stack))
    return native_image.encode(level.architecture, rows, linked.code)


def _names(signatures: Iterable[Signature]) -> str:
    return ", ".join(signature.name for signature in signatures)


def texts_of(entries: Sequence[tuple[Block, Signature]], level: Level) -> Iterator[tuple[str, str]]:
    """The LLVM IR of entries, a function `e<number>` each, in texts of some entries, with the names of those."""
    end = 0
    while end < len(entries):
        start, functions, texts = end, Functions(level), list[str]()
        while end < len(entries) and sum(map(len, texts)) < PART:
            texts.append(EntryText(f"e{end}", *entries[end], level, functions.callee).text())
            end += 1
        attributes = _ATTRIBUTES.format(cpu=level.cpu, features=level.features, bits=32 * level.lanes)
        head = f'target triple = "{level.triple}"\n'
        text = "\n".join([head, *functions.texts(), *texts, attributes, notes(level.unrolled > 1), ""])
        yield text, _names(signature for _, signature in entries[start:end])


TARGET = CpuTarget()
