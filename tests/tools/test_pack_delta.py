"""vm-pack delta and apply: small deltas if weights stay the same, complete results or none, and malicious deltas."""

import dataclasses
import random
import struct
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from orchestrion.schema import writer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.shipping.delta import LITERAL, Delta, apply, read_delta, write_delta
from orchestrion.tools import pack
from orchestrion.tools.packing import matching
from orchestrion.tools.packing.delta import make_delta

CHOOSE = random.Random(1)
OLD = CHOOSE.randbytes(50_000)
NEW = OLD[:1000] + b"hello" + OLD[1000:20_000] + CHOOSE.randbytes(300) + OLD[30_000:] + OLD[:64]

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs vm-pack: exit status and output."""

    def command(*arguments: object) -> tuple[int, str]:
        status = pack.main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return status, said.out + said.err

    return command


def made(old: bytes, new: bytes, compression: str = "lzma") -> bytes:
    return make_delta(memoryview(old), memoryview(new), compression)


def applied(old: bytes, data: bytes, most: int | None = None) -> bytes:
    return b"".join(apply(memoryview(old), read_delta(data), most))


def module(bias: float, size: int = 1 << 16) -> bytes:
    """A module with fixed weights and a constant that varies."""
    weights = np.random.default_rng(0).standard_normal(size, np.float32)
    text = 'program @p profile "reference" { func @f () -> () { return () } }'
    found = assemble(text)
    (program,) = found.programs
    constants = [
        writer.Constant("w", weights, BY_NAME["f32"], (size,)),
        writer.Constant("b", np.full(100, bias, np.float32), BY_NAME["f32"], (100,)),
    ]
    return writer.write(dataclasses.replace(found, programs=[dataclasses.replace(program, constants=constants)]))


@pytest.mark.parametrize("compression", ["lzma", "zlib"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, NEW),
        (b"", b""),
        (b"a", b""),
        (b"", b"abc"),
        (OLD, OLD),
        (OLD[::-1], OLD),
        (b"a" * 5000, b"a" * 70_000),
        (bytes(3), bytes(100_000)),
    ],
    ids=["edited", "empty", "to nothing", "from nothing", "same", "reversed", "repeated", "zeros"],
)
def test_there_and_back(old: bytes, new: bytes, compression: str) -> None:
    assert applied(old, made(old, new, compression)) == new


def test_random_edits() -> None:
    choose = random.Random(7)
    for _ in range(60):
        old = choose.randbytes(choose.randrange(3000)) * choose.choice((1, 1, 3))
        parts = [old[a : a + choose.randrange(800)] for a in (choose.randrange(len(old) + 1) for _ in range(5))]
        new = b"".join(part + choose.randbytes(choose.choice((0, 1, 40))) for part in parts)
        assert applied(old, made(old, new)) == new


def test_blocks_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_MAX_BLOCKS", 100)
    monkeypatch.setattr(matching, "_SLAB", 4096)
    data = made(OLD, NEW)
    assert applied(OLD, data) == NEW and len(data) < 3000


def test_it_is_small_when_weights_stay() -> None:
    old, new = module(1.0), module(2.0)
    data = made(old, new)
    assert applied(old, data) == new
    assert len(new) > 250_000 and len(data) < 1500


def test_equal_segments_are_copied_without_being_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = module(1.0), module(2.0)
    monkeypatch.setattr(matching._Index, "_blocks", lambda self, spans: (np.empty(0, np.uint64), np.empty(0, np.int64)))
    copied = sum(length for offset, length in read_delta(made(old, new)).steps if offset != LITERAL)
    assert copied >= 4 << 16


def test_the_command_line(run: Run, tmp_path: Path) -> None:
    old, new, d, out = (tmp_path / name for name in ("old.fb", "new.fb", "d", "out.fb"))
    old.write_bytes(module(1.0))
    new.write_bytes(module(2.0))
    status, said = run("delta", old, new, "-o", d)
    assert status == 0 and "are copied from" in said
    assert run("apply", old, d, "-o", out)[0] == 0
    assert out.read_bytes() == new.read_bytes()
    assert run("apply", old, d, "-o", old)[0] == 0
    assert old.read_bytes() == new.read_bytes()
    status, said = run("apply", old, d, "-o", out)
    assert status == 1 and "the delta is for a file of" in said


@pytest.mark.parametrize("compression", ["lzma", "zlib"])
def test_each_changed_byte_is_found(compression: str) -> None:
    old, new = OLD[:2000], OLD[:900] + b"hello" + OLD[1000:2000]
    data = made(old, new, compression)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= CHOOSE.randrange(1, 256)
        with pytest.raises(ModuleError):
            read_delta(damaged)
    for at in range(len(old)):
        with pytest.raises(ModuleError, match="the delta is for a file"):
            applied(old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :], data)


def sealed(data: bytes) -> bytes:
    return data[:-32] + sha256(data[:-32]).digest()


def test_bytes_that_a_stranger_changed_and_sealed_are_found() -> None:
    """The delta's checksum is updated, but the result must have the digest in the header, or nothing is written."""
    old, new = OLD[:2000], OLD[:900] + b"hello" + OLD[1000:2000]
    for compression in ("lzma", "zlib"):
        data = made(old, new, compression)
        for at in range(len(data) - 32):
            damaged = bytearray(data)
            damaged[at] ^= CHOOSE.randrange(1, 256)
            try:
                assert applied(old, sealed(damaged)) == new
            except ModuleError:
                continue


def handmade(old: bytes, new: bytes, steps: list[tuple[int, int]], literals: bytes, size: int | None = None) -> bytes:
    ends = len(old), sha256(old).digest(), len(new) if size is None else size, sha256(new).digest()
    return write_delta(Delta(*ends, "zlib", steps, len(literals), memoryview(zlib.compress(literals)), 0))


@pytest.mark.parametrize(
    ("steps", "literals", "size", "words"),
    [
        ([(0, 10)], b"", 9, "the steps give 10 bytes, 0 of literals; the header says 9, 0"),
        ([(0, 101)], b"", 101, "step 0 copies 101 bytes at 0; the old file has 100"),
        ([(2**64 - 2, 5)], b"", 5, "step 0 copies 5 bytes at 18446744073709551614"),
        ([(0, 0)], b"", 0, "step 0 is empty"),
        ([(LITERAL, 1), (LITERAL, 1)], b"ab", 2, "step 1 is empty, or belongs to the one before it"),
        ([(LITERAL, 2**63)], b"ab", 2**63, "the header says"),
        ([(0, 10)], b"", 10, "the delta gives digest"),
    ],
)
def test_steps_are_checked(steps: list[tuple[int, int]], literals: bytes, size: int, words: str) -> None:
    old = OLD[:100]
    with pytest.raises(ModuleError, match=words):
        applied(old, handmade(old, b"other", steps, literals, size))


def test_literals_are_neither_more_nor_fewer_than_the_header_says() -> None:
    old = OLD[:100]
    for said, words in ((3, "more bytes"), (5, "fewer bytes")):
        delta = read_delta(handmade(old, b"abcd", [(LITERAL, 4)], b"abcd"))
        delta = delta._replace(steps=[(LITERAL, said)], literals=said, new_size=said)
        with pytest.raises(ModuleError, match=words):
            list(apply(memoryview(old), delta))
    delta = read_delta(handmade(old, b"abcd", [(LITERAL, 4)], b"abcd"))
    for packed, words in ((bytes(delta.packed) + b"x", "go on after their end"), (delta.packed[:-4], "lack it")):
        with pytest.raises(ModuleError, match=words):
            list(apply(memoryview(old), delta._replace(packed=memoryview(packed))))


def test_what_a_stranger_may_expand_to_is_limited() -> None:
    old = bytes(1000)
    new = bytes(40 << 20)
    steps = [(0, 1000)] * (len(new) // 1000) + [(0, len(new) % 1000)]
    bomb = handmade(old, new, steps, b"")
    assert applied(old, bomb) == new  # the delta itself is large enough to say so
    literal = handmade(old, new, [(LITERAL, len(new))], new)
    assert len(literal) < 50_000
    with pytest.raises(ModuleError, match="gives a file of 41943040, more than .* --most-bytes"):
        applied(old, literal)
    assert applied(old, literal, len(new)) == new


def test_nothing_is_written_when_it_fails(run: Run, tmp_path: Path) -> None:
    old, d, out = tmp_path / "old", tmp_path / "d", tmp_path / "out"
    old.write_bytes(OLD)
    out.write_bytes(b"what is there")
    delta = read_delta(made(OLD, NEW))
    other = write_delta(delta._replace(new_digest=bytes(32)))
    d.write_bytes(other)
    status, said = run("apply", old, d, "-o", out)
    assert status == 1 and "the delta gives digest" in said
    assert out.read_bytes() == b"what is there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "old", "out"]


def test_results_go_to_files_alone(run: Run, tmp_path: Path) -> None:
    old, d = tmp_path / "old", tmp_path / "d"
    old.write_bytes(OLD)
    d.write_bytes(made(OLD, NEW))
    status, said = run("apply", old, d, "-o", "/dev/null")
    assert status == 1 and "is no file" in said
    status, said = run("apply", old, "/dev/zero", "-o", tmp_path / "out")
    assert status == 1 and "is a device, not a file" in said


@pytest.mark.parametrize("cut", [0, 4, 111, 120, 150])
def test_truncated(cut: int) -> None:
    with pytest.raises(ModuleError):
        read_delta(made(OLD, NEW)[:cut])


def test_other_versions_and_codecs_are_refused_by_their_number() -> None:
    data = bytearray(made(b"", b"abc"))
    for at, words in ((4, "version 9, this version of the package applies 1"), (88, "codec 9; there are zlib, lzma")):
        other = bytearray(data)
        struct.pack_into("<I", other, at, 9)
        with pytest.raises(ModuleError, match=words):
            read_delta(sealed(other))
