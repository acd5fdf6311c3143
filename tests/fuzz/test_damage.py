"""Files as disks and networks damage them, digests and all: one error, which says what part is damaged."""

import pytest
from everyday import of_the_day

from orchestrion.schema import container, decoder, writer
from orchestrion.schema.errors import ModuleError
from orchestrion.vm.program import load

CODE = "tensor-bytecode"


@pytest.fixture(scope="session")
def product(corpus: dict[str, writer.Module]) -> bytes:
    """A compiled module for all targets."""
    return writer.write(corpus["product"])


def refused(data: bytes) -> str:
    with pytest.raises(ModuleError) as caught:
        load(data).close()
    return str(caught.value)


def test_every_truncation_is_refused(product: bytes, pytestconfig: pytest.Config) -> None:
    for length in of_the_day(pytestconfig, range(len(product)), 5):
        message = refused(product[:length])
        assert "truncated" in message or "not a module" in message or "the file has" in message, length


def test_what_follows_the_file_is_refused(product: bytes) -> None:
    assert "bytes follow the last segment" in refused(product + b"\0")


def flipped(data: bytes, at: int, bit: int = 3) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


def test_every_flip_in_the_root_is_refused(product: bytes) -> None:
    root = len(container.open_bytes(product).root)
    for at in range(root):
        message = refused(flipped(product, at))
        elsewhere = "truncated" in message or "directory" in message if at < 4 else "not a module" in message
        assert "the root is damaged" in message or (at < 12 and elsewhere), (at, message)


def test_every_flip_in_the_directory_is_refused(product: bytes) -> None:
    file = container.open_bytes(product)
    start = container.aligned_offset(len(file.root), 0)
    for at in range(start, start + 48 + 16 * len(file.spans)):
        message = refused(flipped(product, at))
        assert "directory" in message, (at, message)


def test_a_flip_in_an_executable_is_refused_when_it_is_created(product: bytes) -> None:
    module = decoder.read_module(product)
    payloads = {row.payload for row in module.variants if module.strings[row.format] == CODE}
    for ordinal in payloads:
        offset, size = module.container.spans[ordinal]
        for at in range(offset, offset + size, 7):
            assert f"segment {ordinal} is damaged: its digest differs" in refused(flipped(product, at))


def test_flips_in_what_another_device_runs_change_nothing(product: bytes) -> None:
    """A device reads the executables of its own program alone."""
    module = decoder.read_module(product)
    for row in module.variants:
        if module.strings[row.format] != CODE:
            load(flipped(product, module.container.spans[row.payload][0])).close()


def test_padding_is_zero(product: bytes) -> None:
    """Between root, directory and segments lie zeros; anything else is refused."""
    file = container.open_bytes(product)
    used = [(0, len(file.root)), (container.aligned_offset(len(file.root), 0), 48 + 16 * len(file.spans)), *file.spans]
    covered = {at for offset, size in used for at in range(offset, offset + size)}
    for at in sorted(set(range(len(product))) - covered):
        assert f"padding at {at} is not zero" in refused(flipped(product, at))
