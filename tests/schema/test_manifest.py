"""Manifests: each has exactly one text, reading is strict, and fields of later versions are allowed."""

import dataclasses
import json
from typing import Any

import pytest

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.shipping import manifest
from orchestrion.schema.shipping.manifest import (
    READERS,
    Entry,
    Executable,
    File,
    Format,
    Import,
    Limit,
    Manifest,
    Maxima,
    Model,
    Parameter,
    Part,
    Program,
    Variant,
    read_manifest,
    write_manifest,
)

DIGEST = "ab" * 32
FULL = Manifest(
    "1.0",
    File(1000, DIGEST, DIGEST),
    Format(1, 0, 0, "orchestrion"),
    Model("mobilenet", 7),
    (
        Program(
            "p",
            "spirv",
            3,
            0,
            1,
            4096,
            5,
            (Executable("e", 2, (Variant("spirv", 1, 0, 64, 128, 3),)),),
            (Import("clock.now", "() -> i64", True),),
            ("lapack.gesv",),
            Maxima(4, "a", 1 << 20, "b", 16, "c"),
        ),
    ),
    1,
    4096,
    (Parameter("w", "4x4xf32", 64, DIGEST),),
    limits=(Limit("memory", "1000"),),
    scopes=("code", "weights"),
    parts=(Part("NOTE", DIGEST),),
    signers=(DIGEST,),
    signatures=("0011ff",),
    entries=(Entry("module.fb", "module", 1000, DIGEST),),
)
PROGRAM = {"name": "p", "profile": "spirv"}
SMALL = Manifest("1.0", File(1, DIGEST, DIGEST), Format(1, 0))


def changed(change: dict[str, Any]) -> bytes:
    return json.dumps(json.loads(write_manifest(SMALL)) | change).encode()


def refused(data: bytes) -> str:
    with pytest.raises(ModuleError) as error:
        read_manifest(data)
    return str(error.value)


@pytest.mark.parametrize("made", [FULL, SMALL])
def test_there_and_back(made: Manifest) -> None:
    assert read_manifest(write_manifest(made)) == made
    assert write_manifest(read_manifest(write_manifest(made))) == write_manifest(made)


def test_every_field_has_a_reader() -> None:
    for kind, readers in READERS.items():
        assert [field.name for field in dataclasses.fields(kind)] == list(readers), kind


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a manifest"),
        (b"\xff", "not a manifest"),
        (b"[]", "not a JSON object"),
        (b"{}", "it has no version"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"manifest": "1.0", "manifest": "1.0"}', "a key twice"),
        (b'{"manifest": "1.0", "a": 1.5}', "1.5 is no whole number"),
        (b'{"manifest": "1.0", "a": NaN}', "NaN is no whole number"),
        (b'{"manifest": "1.0", "a": ' + b"1" * 5000 + b"}", "not a manifest"),
        (b" " * (manifest.MAX_BYTES + 1), "more than 1048576 bytes"),
        (changed({"manifest": "2.0"}), "version 2.0, this version of the package reads 1.0"),
        (changed({"manifest": 1}), "it has no version"),
        (changed({"programms": []}), "it has the unknown key 'programms'"),
        (changed({"programs": {}}), "programs is not a list"),
        (changed({"programs": [{"name": "p"}]}), "programs[0] lacks the key 'profile'"),
        (changed({"file": {"bytes": -1, "digest": DIGEST, "sha256": DIGEST}}), "file.bytes is not a whole number"),
        (changed({"file": {"bytes": True, "digest": DIGEST, "sha256": DIGEST}}), "file.bytes is not a whole number"),
        (changed({"file": {"bytes": 1, "digest": DIGEST.upper(), "sha256": DIGEST}}), "file.digest is not a SHA-256"),
        (changed({"model": {"name": "\ud800"}}), "model.name is not UTF-8"),
        (changed({"model": {"name": "a" * 5000}}), "at most 4096 characters"),
        (changed({"parameters": [{"name": "w", "type": "f32", "bytes": 4}]}), "parameter_count is 0"),
        (changed({"signatures": ["0"]}), "signatures[0] is not at most 65536 hexadecimal digits"),
        (changed({"programs": [PROGRAM | {"absent": 1 << 20}]}), "programs[0].absent is not the ordinal of a segment"),
        (changed({"requires": ["splines"]}), "requires splines, which this version does not know"),
        (changed({"manifest": "1.9", "requires": ["splines"]}), "requires splines, which this version does not know"),
    ],
)
def test_refused(data: bytes, words: str) -> None:
    assert words in refused(data)


def test_a_manifest_of_a_later_minor_version_is_read_without_what_is_new() -> None:
    data = json.loads(write_manifest(FULL))
    data |= {"manifest": "1.9", "novelty": [1]}
    data["programs"][0] |= {"novelty": {"a": None}}
    data["programs"][0]["executables"][0]["variants"][0]["novelty"] = "x"
    assert read_manifest(json.dumps(data).encode()) == dataclasses.replace(FULL, manifest="1.9")


def test_keys_of_others_are_ignored() -> None:
    assert read_manifest(changed({"x-shop": {"price": 1}})) == SMALL
