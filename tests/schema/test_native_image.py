"""Native images: a round trip, and every header and row that is no image is refused at its byte."""

import random
import struct

import pytest

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.native_image import MAGIC, PAGE, Entry, decode, encode

CODE = bytes(range(256)) * 2
ENTRIES = (Entry(0, 3, 0), Entry(64, 16, 7, 1 << 19))
PAYLOAD = encode("x86-64", ENTRIES, CODE)


def test_round_trip() -> None:
    image = decode(PAYLOAD)
    assert (image.architecture, image.entries, bytes(image.code)) == ("x86-64", ENTRIES, CODE)
    assert image.code_offset == PAGE and PAYLOAD[PAGE:] == CODE
    many = encode("aarch64", [Entry(4 * index, 1, 2) for index in range(300)], bytes(1200))
    assert decode(many).code_offset == 2 * PAGE and len(decode(many).entries) == 300


def test_the_layout_is_frozen() -> None:
    assert PAYLOAD[:32] == MAGIC + struct.pack("<6I", 1, 1, PAGE, 512, 2, 0)
    assert PAYLOAD[32:64] == struct.pack("<8I", 0, 3, 0, 0, 64, 16, 7, 1 << 19)


@pytest.mark.parametrize(
    ("at", "word", "message"),
    [
        (0, 0, "no native image"),
        (8, 2, "version 2, this version reads 1"),
        (12, 3, "architecture 3"),
        (16, 2 * PAGE, "code at 8192"),
        (20, 0, "0 bytes of code"),
        (20, 513, "its header says 4609"),
        (20, 0xFFFFFFFF, "1073741824 are allowed"),
        (24, 0, "0 entries"),
        (24, 0xFFFFFFFF, "4294967295 entries"),
        (24, 3, "bytes of code, or not"),
        (28, 1, "reserved word"),
        (32, 2, "multiple of 4"),
        (32, 512, "byte 512 of 512"),
        (36, 1025, "1025 bindings"),
        (40, 16385, "16385 parameter words"),
        (44, (1 << 19) + 1, "uses 524289 bytes of the stack, at most 524288"),
        (64, 1, "other than zero"),
    ],
)
def test_refused_words(at: int, word: int, message: str) -> None:
    damaged = bytearray(PAYLOAD)
    struct.pack_into("<I", damaged, at, word)
    if at == 24 and word == 3:
        struct.pack_into("<I", damaged, 64, 512)
    with pytest.raises(ModuleError, match=message):
        decode(damaged)


def test_sizes_other_than_the_stated_one_are_refused() -> None:
    for size in (*range(65), PAGE - 1, PAGE, len(PAYLOAD) - 1):
        with pytest.raises(ModuleError):
            decode(PAYLOAD[:size])
    with pytest.raises(ModuleError, match="4609 bytes, its header says 4608"):
        decode(PAYLOAD + b"\0")


def test_random_damage_is_refused_or_is_an_image() -> None:
    random_bytes = random.Random(16)
    for _ in range(2000):
        damaged = bytearray(PAYLOAD)
        for _ in range(random_bytes.randrange(1, 4)):
            damaged[random_bytes.randrange(80)] = random_bytes.randrange(256)
        try:
            image = decode(damaged)
        except ModuleError:
            continue
        assert encode(image.architecture, image.entries, bytes(image.code)) == damaged


def test_the_writer_refuses_what_the_reader_refuses() -> None:
    for entries, code in (((), CODE), (ENTRIES, b""), ((Entry(1, 0, 0),), CODE), ((Entry(0, 1 << 11, 0),), CODE)):
        with pytest.raises(ValueError, match="image|entry"):
            encode("x86-64", entries, code)
