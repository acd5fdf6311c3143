"""Any bytes given to compile are of a known kind or CompileError; text and its bytes are of the same kind."""

from collections.abc import Sequence

from fuzzing import ROOT, check

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.frontend import source
from orchestrion.schema.trees import decode, encode

LEAF, TUPLE, DICT = 0, 2, 4
MAX_BYTES = 65536
POOL = (
    b"ML\xefR",
    b"StableHLO_v1.0.0\0",
    b"module",
    b"func.func",
    b"{-#",
    b"#a = ",
    b"!b = ",
    b"//",
    b'"',
    b"%",
    b"ORCH",
    b"\n",
)


def seeds():
    for name in ("simple_mul.mlir", "simple_mul.generic.mlir", "relu_tanh.mlir", "mlp_input.npy"):
        yield (ROOT / "examples" / name).read_bytes()
    yield b"ML\xefR\x0dStableHLO_v1.13.0\0" + bytes(100)
    yield b"#a = loc(unknown)\n!t = i32\n// c\nmodule {}\n"
    yield _exported()
    yield b"#a = 1\n" * 9000


def _exported() -> bytes:
    """The table that `jax.export.Exported.serialize` writes, as far as it is read here."""
    import flatbuffers

    builder = flatbuffers.Builder(256)
    program = builder.CreateByteVector(b"ML\xefR\x0dStableHLO_v1.13.0\0" + bytes(40))
    taken = _tree(builder, TUPLE, [_tree(builder, TUPLE, [_tree(builder, LEAF)]), _tree(builder, DICT, [])])
    given = _tree(builder, DICT, [_tree(builder, LEAF)], ["y"])
    builder.StartVector(2, 1, 2)
    builder.PrependUint16(0)
    kept = builder.EndVector()
    builder.StartObject(16)
    builder.PrependUOffsetTRelativeSlot(2, taken, 0)
    builder.PrependUOffsetTRelativeSlot(4, given, 0)
    builder.PrependUOffsetTRelativeSlot(13, program, 0)
    builder.PrependUOffsetTRelativeSlot(15, kept, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _tree(builder, kind: int, children: Sequence[int] | None = None, names: Sequence[str] = ()) -> int:
    """A `PyTreeDef`: its kind, children, and names of these."""
    texts = [builder.CreateString(name) for name in names]
    vectors = []
    for offsets in (children, texts):
        builder.StartVector(4, len(offsets or ()), 4)
        for offset in reversed(offsets or ()):
            builder.PrependUOffsetTRelative(offset)
        vectors.append(builder.EndVector())
    builder.StartObject(5)
    builder.PrependInt8Slot(0, kind, 0)
    if children is not None:
        builder.PrependUOffsetTRelativeSlot(1, vectors[0], 0)
        builder.PrependUOffsetTRelativeSlot(2, vectors[1], 0)
    return int(builder.EndObject())


def one_input(data: bytes) -> None:
    try:
        found = source.read_source(data)
    except CompileError as error:
        check(str(error), "an error without a message")
        return
    if found.interface is not None:
        decode(encode(found.interface.trees), *found.interface.counts)
    check(found.kind in source.KINDS, f"kind {found.kind!r}")
    if found.kind in ("generic", "pretty"):
        check(found.data == data.decode(), "another text")
    else:
        check(found.data in data, "bytes that were not there")
