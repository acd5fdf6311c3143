"""Which program and which variants a device gets, of whole files and of those that something was taken out of."""

from dataclasses import replace
from pathlib import Path

import pytest
from later_format import base

from orchestrion import vm
from orchestrion.hal.registry import open_device
from orchestrion.schema import container, decoder, encoding, isa, writer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.disassembler import disassemble
from orchestrion.schema.errors import ModuleError
from orchestrion.vm import selection, verifier
from orchestrion.vm.errors import CallerError, NoProgram

GOLDEN = Path(__file__).parents[1] / "golden" / "v1.0-simple_mul.fb"


def thinned(data: bytes, *taken: int) -> bytes:
    """The file without some segments."""
    file = container.open_bytes(data)
    kept = [None if at in taken else file.segment(at) for at in range(len(file.spans))]
    return b"".join(container.build(file.root, kept))


def with_variants(*payloads: bytes) -> bytes:
    """`base` with an executable that has these variants."""
    (program,) = base().programs
    (executable,) = program.executables
    variants = [replace(executable.variants[0], payload=payload) for payload in payloads]
    program = replace(program, executables=(replace(executable, variants=variants),))
    return writer.write(replace(base(), programs=(program,)))


def test_a_program_without_its_constant_is_skipped_and_says_so() -> None:
    (program,) = base().programs
    other = replace(program, name="other", constants=())
    data = writer.write(replace(base(), programs=(program, other)))
    module = decoder.read_module(data)
    segment = module.constants[0].segment
    loaded = vm.load(thinned(data, segment))
    assert (loaded.name, loaded.seven()) == ("other", 7)
    assert loaded.skipped == [("today", f"its segment {segment} was taken out of this file")]
    loaded.close()
    with pytest.raises(NoProgram, match=rf"today \(its segment {segment} was taken out of this file\)"):
        vm.load(thinned(writer.write(base()), segment))


def test_a_variant_that_was_taken_out_is_not_chosen() -> None:
    data = with_variants(b"first", b"second")
    module = decoder.read_module(data)
    first, second = (row.payload for row in module.variants)
    with open_device("reference") as device:
        chosen = [
            selection.choose_variant(decoder.read_module(file), module.executables[0], device.info).payload
            for file in (data, thinned(data, first), thinned(data, second))
        ]
    assert chosen == [first, second, first]
    with pytest.raises(NoProgram, match=rf"executable e runs on .*: its segment {first} was taken out .*; its segment"):
        vm.load(thinned(data, first, second))


def test_what_is_remembered_of_a_whole_file_is_not_used_for_a_thinned_one() -> None:
    """The root is the same, and so is the code; which variants are there is a matter of the file."""
    data = GOLDEN.read_bytes()
    module = decoder.read_module(data)
    names = [module.strings[row.name] for row in module.programs]
    row = module.programs[names.index("reference")]
    payload = module.variants[module.executables[row.executables_start].variants_start].payload
    for _ in range(3):
        vm.load(data).close()
        with pytest.raises(NoProgram, match=f"its segment {payload} was taken out of this file"):
            vm.load(thinned(data, payload))


def test_debug_segments_and_other_programs_may_be_taken_out() -> None:
    data = GOLDEN.read_bytes()
    module = decoder.read_module(data)
    names = [module.strings[row.name] for row in module.programs]
    row = module.programs[names.index("reference")]
    rows = module.executables[row.executables_start : row.executables_end]
    used = {at.payload for e in rows for at in module.variants[e.variants_start : e.variants_end]}
    used |= {at.segment for at in module.constants[row.constants_start : row.constants_end]}
    data = thinned(data, *(at for at in range(len(module.segments)) if at not in used))
    program = vm.load(data)
    assert program.simple_mul([1, 2, 3, 4], [1, 1, 1, 1]) is not None
    program.close()


def test_every_program_is_explained() -> None:
    module = decoder.open_module(GOLDEN)
    with open_device("reference") as device:
        found = dict(selection.explain_programs(module, device.info))
    assert found.pop("reference") == ""
    assert found and all(reason.startswith("wants ") for reason in found.values())


def test_an_executable_without_variants_is_refused() -> None:
    with pytest.raises(NoProgram, match="no variant of executable e runs on device reference: it has none"):
        vm.load(with_variants())


def test_shared_memory_beyond_the_devices_is_named() -> None:
    module = decoder.read_module(with_variants(b"x"))
    with open_device("reference") as device:
        most = device.info.limits.shared_memory_bytes
        info = device.info
    module.variants[0] = module.variants[0]._replace(shared_memory_bytes=most + 1)  # type: ignore[index]
    (found,) = selection.explain_programs(module, info)
    assert f"wants {most + 1} bytes of shared memory, the device has {most}" in found[1]


def test_a_program_that_states_too_low_a_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of that version would call it damaged."""
    row = isa.BY_NAME["i32.const"]
    later = replace(row, since=6)
    monkeypatch.setitem(encoding.READERS, row.opcode, (later, *encoding.READERS[row.opcode][1:]))
    monkeypatch.setattr(verifier, "prove", lambda *_: None)
    monkeypatch.setattr(verifier, "BYTECODE_MINOR", 6)
    module = decoder.read_module(writer.write(base()))
    with pytest.raises(ModuleError, match=r"function\[0\] pc 0x0: i32.const came with bytecode 1.6, .* states 1.0"):
        verifier.verify(module, 0)
    stated = replace(base().programs[0], bytecode_minor=6)
    verifier.verify(decoder.read_module(writer.write(replace(base(), programs=(stated,)))), 0)


def test_a_part_of_a_file_is_loaded(tmp_path: Path) -> None:
    data = writer.write(base())
    path = tmp_path / "app.apk"
    path.write_bytes(bytes(4099) + data + b"another entry")
    program = vm.load(path, offset=4099, length=len(data))
    assert program.seven() == 7
    program.close()
    with pytest.raises(CallerError, match=r"app.apk: offset 4099 and length 100000 are no part of a file of"):
        vm.load(path, offset=4099, length=100_000)
    with pytest.raises(CallerError, match="offset and length are for files; slice the bytes instead"):
        vm.load(data, offset=1)


def test_the_variant_of_a_thinned_file_is_not_that_of_the_whole_one() -> None:
    """Their roots are the same, and what was worked out about one serves the other."""
    module = assemble(disassemble(decoder.open_module(GOLDEN)))
    (program,) = (row for row in module.programs if row.profile == "reference")
    (executable,) = program.executables
    broken = replace(executable.variants[0], payload=b"broken")
    executable = replace(executable, variants=(broken, *executable.variants))
    data = writer.write(replace(module, programs=(replace(program, executables=(executable,)),)))
    for _ in range(3):
        vm.load(thinned(data, 0)).close()
        with pytest.raises(ModuleError, match="tensor bytecode"):
            vm.load(data)
