"""The writer: the same bytes each time, no duplicates, no copies of constants, complete files or none."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrion.schema import container, decoder, dtypes, writer
from orchestrion.schema.errors import ModuleError

F32 = dtypes.BY_NAME["f32"]


def with_constants(source: writer.Module, *constants: writer.Constant) -> writer.Module:
    return replace(source, programs=[replace(program, constants=constants) for program in source.programs])


def test_the_same_rows_give_the_same_bytes(source: writer.Module, data: bytes) -> None:
    assert writer.write(source) == data
    code = """if True:
        import sys
        from conftest import make_module
        from orchestrion.schema import writer
        sys.stdout.buffer.write(writer.write(make_module()))
    """
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert other.stdout == data


def test_strings_are_stored_once(data: bytes) -> None:
    strings = decoder.read_module(data).strings
    assert len(set(strings)) == len(strings)


def test_programs_share_bytecode_but_functions_of_one_do_not(data: bytes, source: writer.Module) -> None:
    module = decoder.read_module(data)
    ranges = [(f.bytecode_start, f.bytecode_end) for f in module.functions]
    assert ranges[0] == ranges[4] == ranges[8]
    assert len(module.bytecode) == 40 + 30 + len("reference") + len("spirv") + len("opencl")
    twins = [replace(f, bytecode=b"same") for f in source.programs[0].functions]
    module = decoder.read_module(writer.write(replace(source, programs=[replace(source.programs[0], functions=twins)])))
    assert bytes(module.bytecode) == b"same" * 4


def test_a_module_may_be_empty() -> None:
    module = decoder.read_module(writer.write(writer.Module([])))
    assert (module.programs, module.segments, module.strings) == ((), (), ["orchestrion"])


@pytest.mark.parametrize(
    "data",
    [
        b"\1\2\3\4",
        bytearray(b"\1\2\3\4"),
        memoryview(b"\1\2\3\4"),
        np.frombuffer(b"\1\2\3\4", np.float32),
        np.frombuffer(b"\1\2\3\4", np.float32).reshape(()),
        np.array([[True, False], [True, False]]).view(np.uint8) * np.uint8(0) + np.uint8(1),
    ],
    ids=lambda data: type(data).__name__,
)
def test_constants_are_any_buffer(source: writer.Module, data: writer.Data) -> None:
    module = decoder.read_module(writer.write(with_constants(source, writer.Constant("c", data, F32, ()))))
    assert module.segment(module.constants[0].segment).tobytes() == memoryview(data).tobytes()


def test_constants_of_no_elements(source: writer.Module) -> None:
    empty = np.zeros((0, 3), np.float32)
    module = decoder.read_module(writer.write(with_constants(source, writer.Constant("c", empty, F32, (0, 3)))))
    assert module.segment(module.constants[0].segment).nbytes == 0


def test_large_constants_are_not_copied(tmp_path: Path, source: writer.Module) -> None:
    array = np.memmap(tmp_path / "weights", np.float32, "w+", shape=(1 << 23,))
    array[:: 1 << 10] = 1
    constant = writer.Constant("weights", array, F32, array.shape)
    tracemalloc.start()
    writer.write_file(tmp_path / "m.fb", with_constants(source, constant))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    module = decoder.open_module(tmp_path / "m.fb")
    segment = module.constants[0].segment
    assert module.container.spans[segment][0] % 16384 == 0
    assert np.array_equal(np.frombuffer(module.segment(segment), np.float32), array)


def test_constants_that_programs_share_are_hashed_once(source: writer.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed, chunk_digests = [], writer.chunk_digests
    monkeypatch.setattr(writer, "chunk_digests", lambda view: hashed.append(view) or chunk_digests(view))
    one = with_constants(source, writer.Constant("c", bytes(8), F32, (2,), chunked=True))
    programs = [one.programs[0], replace(one.programs[0], name="again")]
    assert len(decoder.read_module(writer.write(replace(one, programs=programs))).programs) == 2
    assert len(hashed) == 1


def test_opening_reads_no_constants(tmp_path: Path, source: writer.Module) -> None:
    array = np.ones(1 << 24, np.uint32)
    dtype = dtypes.BY_NAME["ui32"]
    writer.write_file(tmp_path / "m.fb", with_constants(source, writer.Constant("weights", array, dtype, array.shape)))
    decoder.open_module(tmp_path / "m.fb")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    module = decoder.open_module(tmp_path / "m.fb")
    view = module.segment(module.constants[0].segment, verify=False)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 64
    assert view.nbytes == 1 << 26


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: replace(m, producer="a\0b"), "holds a NUL"),
        (
            lambda m: with_constants(m, writer.Constant("c", np.zeros((4, 4), np.float32).T[1:], F32, (3, 4))),
            "contiguous",
        ),
        (lambda m: _with_global(m, writer.Global("g", "i32", value=2**31)), "'g': 2147483648 is no i32"),
        (lambda m: _with_global(m, writer.Global("g", "i64", value=0.5)), "'g': 0.5 is no i64"),
        (lambda m: _with_global(m, writer.Global("g", "f32", value=1e300)), r"'g': 1e\+300 is no f32"),
        (lambda m: _with_global(m, writer.Global("g", "hal.buffer", value=1)), "hal.buffer starts as null, not as 1"),
        (lambda m: _with_function(m, registers=(0, 70000, 0, 0, 0)), "functions: .* does not fit the format"),
        (
            lambda m: replace(m, exports=[writer.Export("f", [writer.Value("a", F32, (2**63,))])]),
            "dims: .* does not fit",
        ),
        (lambda m: replace(m, exports=[writer.Export("f", [writer.Value("a", F32, (), 0)])]), "'a' has an alias"),
    ],
)
def test_rows_that_no_file_can_hold_are_the_callers_mistake(
    source: writer.Module, change: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        writer.write(change(source))  # type: ignore[operator]


def _with_global(module: writer.Module, row: writer.Global) -> writer.Module:
    return replace(module, programs=[replace(module.programs[0], globals=[row])])


def _with_function(module: writer.Module, registers: tuple[int, int, int, int, int]) -> writer.Module:
    function = writer.Function("f", b"", registers=registers)
    return replace(module, programs=[replace(module.programs[0], functions=[function])])


@pytest.mark.parametrize(
    ("entries", "initializer", "message"),
    [
        ([0, 4], 0, r"entries\[1\]: 4 is out of range \(4 functions"),
        ([0, 1], 9, r"initializers\[0\].function: 9 is out"),
    ],
)
def test_ordinals_that_name_nothing_are_refused(
    source: writer.Module, entries: list[int], initializer: int, message: str
) -> None:
    first = replace(source.programs[0].initializers[0], function=initializer)
    program = replace(source.programs[0], entries=entries, initializers=[first])
    with pytest.raises(ModuleError, match=message):
        writer.write(replace(source, programs=[program]))


def test_a_file_is_replaced_whole(tmp_path: Path, source: writer.Module, data: bytes) -> None:
    path = tmp_path / "m.fb"
    writer.write_file(path, replace(source, producer="before"))
    old = decoder.open_module(path)
    mask = os.umask(0o022)
    os.umask(mask)
    writer.write_file(path, source)
    assert path.read_bytes() == data
    assert old.strings[old.header.producer] == "before"
    assert os.listdir(tmp_path) == ["m.fb"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_a_link_is_followed_and_a_device_written_to(tmp_path: Path, source: writer.Module, data: bytes) -> None:
    (tmp_path / "real.fb").write_bytes(b"")
    (tmp_path / "link.fb").symlink_to("real.fb")
    writer.write_file(tmp_path / "link.fb", source)
    assert (tmp_path / "link.fb").is_symlink()
    assert (tmp_path / "real.fb").read_bytes() == data
    writer.write_file("/dev/null", source)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_folder_or_a_missing_folder_is_an_error(tmp_path: Path, source: writer.Module) -> None:
    with pytest.raises(IsADirectoryError, match=f"cannot write the module: .*{tmp_path.name}"):
        writer.write_file(tmp_path, source)
    with pytest.raises(FileNotFoundError, match="cannot write the module: .*m.fb"):
        writer.write_file(tmp_path / "nowhere" / "m.fb", source)
    assert os.listdir(tmp_path) == []


@pytest.fixture
def short_of_space() -> Iterator[None]:
    """Limits each file to 4096 bytes, to simulate a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("short_of_space")
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, source: writer.Module) -> None:
    path = tmp_path / "m.fb"
    path.write_bytes(b"what was there")
    with pytest.raises(OSError, match="cannot write the module: .*m.fb") as caught:
        writer.write_file(path, source)
    assert caught.value.errno == errno.EFBIG
    assert os.listdir(tmp_path) == ["m.fb"]
    assert path.read_bytes() == b"what was there"


def test_an_interruption_leaves_nothing_behind(
    tmp_path: Path, source: writer.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writer.write_file(tmp_path / "m.fb", source)
    assert os.listdir(tmp_path) == []


def test_what_would_be_refused_is_not_written(tmp_path: Path, source: writer.Module) -> None:
    with pytest.raises(ModuleError):
        writer.write_file(tmp_path / "m.fb", replace(source, exports=[source.exports[0]] * 2))
    assert os.listdir(tmp_path) == []


def test_reseal_leaves_a_sound_file_as_it_is(data: bytes) -> None:
    assert writer.reseal(data) == data


def test_reseal_makes_damaged_segments_pass(data: bytes) -> None:
    module = decoder.read_module(data)
    changed = bytearray(data)
    for offset, size in module.container.spans:
        if size:
            changed[offset] ^= 255
    resealed = decoder.read_module(writer.reseal(bytes(changed)))
    for ordinal, (offset, size) in enumerate(module.container.spans):
        assert bytes(resealed.segment(ordinal)) == bytes(changed[offset : offset + size])
    assert resealed.container.digest != container.open_bytes(data).digest


def test_import_needs_no_flatbuffers_to_read() -> None:
    code = textwrap.dedent("""
        import sys
        from orchestrion.schema import decoder
        assert "flatbuffers" not in sys.modules
    """)
    subprocess.run([sys.executable, "-c", code], check=True)
