"""A single segment is verified alone, as a whole or by pieces."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrion.schema import decoder, dtypes, rows, segments, writer
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.module import Module
from orchestrion.schema.segments import CHUNK

F32 = dtypes.BY_NAME["f32"]
LONG = np.arange((writer.CHUNKED_FROM + 4096) // 4, dtype=np.float32)


@pytest.fixture(scope="module")
def module() -> Module:
    constants = (
        writer.Constant("long", LONG, F32, LONG.shape),
        writer.Constant("short", LONG[: CHUNK // 4 + 1], F32, (CHUNK // 4 + 1,), chunked=True),
        writer.Constant("whole", LONG[: CHUNK // 2], F32, (CHUNK // 2,)),
    )
    program = writer.Program("p", "reference", (), (), constants=constants)
    return decoder.read_module(writer.write(writer.Module([program])))


def test_long_constants_have_a_digest_per_piece(module: Module) -> None:
    counts = [row.chunks_end - row.chunks_start for row in module.segments]
    assert counts == [5, 2, 0]
    assert len(module.chunks) == 7 * segments.DIGEST


def test_pieces_are_verified_alone(module: Module) -> None:
    for ordinal, row in enumerate(module.segments):
        data = module.segment(ordinal)
        for number in range(row.chunks_end - row.chunks_start):
            piece = data[number * CHUNK : (number + 1) * CHUNK]
            segments.verify_chunk(row, module.chunks, number, piece)
            damaged = bytes([piece[0] ^ 1]) + bytes(piece[1:])
            with pytest.raises(ModuleError, match=f"piece {number} of the segment is damaged: its digest differs"):
                segments.verify_chunk(row, module.chunks, number, damaged)
            with pytest.raises(ModuleError, match=f"has {len(piece) - 1} bytes, {len(piece)} wanted"):
                segments.verify_chunk(row, module.chunks, number, piece[1:])
    with pytest.raises(ModuleError, match="segment 2 has 0 pieces with a digest; piece 0 is none of them"):
        segments.verify_chunk(module.segments[2], module.chunks, 0, b"", "segment 2")


def test_digests_of_pieces_that_are_not_those_of_the_whole_are_found(module: Module) -> None:
    row, data = module.segments[1], module.segment(1)
    segments.verify_whole(row, module.chunks, data, "segment 1")
    changed = bytearray(module.chunks)
    changed[row.chunks_end * segments.DIGEST - 1] ^= 1
    with pytest.raises(ModuleError, match="piece 1 of segment 1 is damaged"):
        segments.verify_whole(row, memoryview(changed), data, "segment 1")


def test_a_downloaded_segment_is_verified_alone(module: Module) -> None:
    row, data = module.segments[0], bytes(module.segment(0))
    segments.verify_segment(row, data)
    with pytest.raises(ModuleError, match=f"segment 0 has {len(data) - 1} bytes, {len(data)} in the root"):
        segments.verify_segment(row, data[:-1], "segment 0")
    with pytest.raises(ModuleError, match="the segment is damaged: its digest differs"):
        segments.verify_segment(row, b"\1" + data[1:])


def test_an_open_parameter_takes_any_bytes_of_its_size() -> None:
    row = rows.Segment(4, bytes(32), 0, 0, rows.SegmentKind.Parameter, rows.NONE)
    assert segments.is_open(row)
    segments.verify_segment(row, b"abcd")
    with pytest.raises(ModuleError, match="has 3 bytes, 4 in the root"):
        segments.verify_segment(row, b"abc")
    closed = row._replace(digest=segments.chunk_digests(b"abcd")[0])
    assert not segments.is_open(closed) and not segments.is_open(row._replace(kind=rows.SegmentKind.Constant))
    segments.verify_segment(closed, b"abcd")
    with pytest.raises(ModuleError, match="damaged"):
        segments.verify_segment(closed, b"abce")


def test_chunk_digests_are_those_of_the_pieces() -> None:
    data = bytes(range(256)) * (CHUNK // 128) + b"x"
    whole, pieces = segments.chunk_digests(data)
    assert whole == segments.chunk_digests(memoryview(data))[0] and len(pieces) == segments.chunk_count(len(data)) == 3
    assert pieces == [segments.chunk_digests(data[at : at + CHUNK])[0] for at in range(0, len(data), CHUNK)]
    assert segments.chunk_digests(b"")[1] == []


def test_a_parameter_is_never_in_the_file(source: writer.Module) -> None:
    (program, *_) = source.programs
    tables = writer._Tables(replace(source, programs=[program]))
    at = next(i for i, row in enumerate(tables.rows["segments"]) if row[4] == rows.SegmentKind.Constant)
    size, digest, *chunks, _, name = tables.rows["segments"][at]
    tables.rows["segments"][at] = (size, digest, *chunks, rows.SegmentKind.Parameter, name)
    root = tables.root()
    from orchestrion.schema import container

    with pytest.raises(ModuleError, match=f"segment {at} is a parameter, whose bytes are never in the file"):
        decoder.read_module(b"".join(container.build(root, tables.segments)))
    data: list[memoryview | None] = [*tables.segments]
    data[at] = None
    module = decoder.read_module(b"".join(container.build(root, data)))
    assert module.container.complete and not module.missing(at)
    data[0] = None
    module = decoder.read_module(b"".join(container.build(root, data)))
    assert not module.container.complete and module.missing(0)
