"""The parts of generated code that do not depend on the program. A module holds only those that it uses.

They are text here, since the compiler does not import the HAL; `tests/e2e/test_hal_code.py` checks them with the rest
of the generated code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

VARIANT: Final = '''\
class Variant(NamedTuple):
    """Code of an executable: its file and the SHA-256 of that, its entries, and what it requires of a device."""

    format: str
    file: str
    sha256: str
    entries: tuple[Entry, ...]
    features: frozenset[str] = frozenset()
    shared_memory_bytes: int = 0

    def refusal(self, info: DeviceInfo) -> str:
        """The reason why the code does not run on a device; empty if it does."""
        if self.format not in info.formats:
            return f"wants {self.format}, the device runs {', '.join(info.formats) or 'nothing'}"
        room = info.limits.shared_memory_bytes
        if self.shared_memory_bytes > room:
            return f"{self.format}: wants {self.shared_memory_bytes} bytes of shared memory, the device has {room}"
        missing = ", ".join(sorted(self.features - info.features))
        return f"{self.format}: wants {missing}, which the device lacks" if missing else ""
'''

CALL: Final = '''\
class Unwatched:
    """For loops that the host follows: nothing ends them early."""

    def check(self) -> None:
        """Go on."""


class Call:
    """One call: the recordings that are not submitted yet, each with the buffers for its slots.

    They run in order, as one submission, behind `wait`. Each sees what those before it wrote.
    """

    def __init__(self, device: Device, wait: Fence | None = None) -> None:
        self.queue = device.queue
        self.wait = wait
        self.work: list[tuple[CommandBuffer, Sequence[Buffer]]] = []

    def add(self, recording: CommandBuffer, *buffers: Buffer) -> None:
        """Add a recording. A loop may add any number: those before are run if there are many."""
        if len(self.work) >= MOST_RECORDINGS:
            self.run()
        self.work.append((recording, buffers))

    def run(self) -> None:
        """Submit the recordings and wait for them. Raises their error."""
        if self.wait is not None:
            self.wait.wait()
            self.wait = None
        work, self.work = self.work, []
        if any(isinstance(recording, HostControlFlow) for recording, _ in work):
            host_control_flow.run(self.queue, work, Unwatched())
        elif len(work) == 1:
            self.queue.execute(*work[0])
        elif work:
            self.queue.execute_batch(work)

    def submit(self, signal: Fence | None) -> None:
        """Submit the recordings. `signal` is reached when they are over, and a wait for it raises their error."""
        if any(isinstance(recording, HostControlFlow) for recording, _ in self.work):
            self.run()
        self.queue.submit_batch(self.work, self.wait, signal)

    def read(self, buffer: Buffer, offset: int, size: int) -> int:
        """A number in a buffer, after the recordings: 1 byte, or 4 bytes with a sign."""
        self.run()
        word = np.empty(size, np.uint8)
        buffer.read(word, offset)
        return int.from_bytes(word.tobytes(), "little", signed=size == 4)
'''

#: see `selected`
PROGRAM: Final = '''\
class Program:
    """A program on a device. Any thread may call it; calls run one after the other.

    The caller keeps the device open until `close`, which also ends a `with` block.
    """

    NAME: ClassVar[str]
    FORMAT: ClassVar[str]
    FEATURES: ClassVar[frozenset[str]]
    EXECUTABLES: ClassVar[dict[str, tuple[Variant, ...]]]
    CONSTANTS: ClassVar[dict[str, tuple[str, int]]]  #: their files, and the bytes of these
    PARAMETERS: ClassVar[dict[str, tuple[DType, tuple[int, ...]]]] #+

    def __init__(self, device: Device) -> None: #-
    def __init__(self, device: Device, parameters: Parameters) -> None: #+
        self.device = device
        self._parameters = parameters #+
        self._lock = Lock()
        with ExitStack() as resources:
            self._resources = resources
            self._set_up()
            self._resources = resources.pop_all()

    @classmethod
    def create(cls, device: Device) -> Self: #-
    def create(cls, device: Device, parameters: Parameters) -> Self: #+
        """Load the code and the constants, and record the command buffers.

        `parameters`: the arrays by name. They are not copied where the device imports memory of the host, #+
        and must not change then. Raises InvalidArgument if one is missing or has another type. #+
 #+
        Raises Unsupported if the device lacks what the program requires, PolicyRefused if its policy does not trust
        native code of the module, ModuleError or OSError for files that are damaged or missing, and HalError if the
        device fails.
        """
        reason = cls.refusal(device.info)
        if reason:
            raise Unsupported(f"program {cls.NAME} does not run on {device.info.id} ({device.info.name}): {reason}")
        return cls(device) #-
        for name, (dtype, shape) in cls.PARAMETERS.items(): #+
            wanted, array = described(dtype, shape), parameters.get(name) #+
            if array is None: #+
                raise InvalidArgument(f"parameter {name} is missing, of type {wanted}") #+
            if array.dtype != dtype.numpy or array.shape != shape: #+
                raise InvalidArgument(f"parameter {name}: expected {wanted}, got {array.dtype}{array.shape}") #+
        return cls(device, parameters) #+

    @classmethod
    def refusal(cls, info: DeviceInfo) -> str:
        """The reason why the program does not run on a device; empty if it does."""
        if cls.FORMAT not in info.formats:
            return f"wants {cls.FORMAT}, the device runs {', '.join(info.formats) or 'nothing'}"
        missing = ", ".join(sorted(cls.FEATURES - info.features))
        if missing:
            return f"wants {missing}, which the device lacks"
        for name, variants in cls.EXECUTABLES.items():
            reasons = [variant.refusal(info) for variant in variants]
            if all(reasons):
                return f"no variant of {name} runs there: {'; '.join(dict.fromkeys(reasons))}"
        return ""

    def close(self) -> None:
        """Release recordings, memory and code, in that order. Work in flight keeps what it uses."""
        with self._lock:
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set_up(self) -> None:
        raise NotImplementedError

    def _own(self, resource: Resource) -> Resource:
        """Release a resource in `close`."""
        self._resources.callback(resource.release)
        return resource

    def _executable(self, name: str) -> Executable:
        """Build an executable: the first variant that the device runs."""
        info = self.device.info
        variant = next(variant for variant in self.EXECUTABLES[name] if not variant.refusal(info))
        code = (FOLDER / variant.file).read_bytes()
        if hashlib.sha256(code).hexdigest() != variant.sha256:
            raise ModuleError(f"{variant.file}: the SHA-256 differs from the one that {NAME}.py states")
        return self.device.create_executable(variant.format, memoryview(code), variant.entries, MODULE)
'''

#: see `selected`
CONSTANT: Final = '''
    def _constant(self, name: str, offset: int, length: int) -> Buffer:
        """A range of a constant, without a copy where the device imports memory of the host."""
        data = self._bytes(name)
        if not 0 <= offset <= offset + length <= data.size:
            raise ModuleError(f"{name}: {length} bytes from byte {offset} on, it has {data.size}")
        data = data[offset : offset + length]
        buffer = self.device.allocator.import_host(data)
        if buffer is None:
            buffer = self.device.allocator.allocate(length, MemoryUse.CONSTANT)
            buffer.write(data)
        return buffer

    def _bytes(self, name: str) -> npt.NDArray[np.uint8]:
        """The bytes of a constant. Its file is mapped."""
        if name in self.PARAMETERS: #+
            return np.ascontiguousarray(self._parameters[name]).reshape(-1).view(np.uint8) #+
        file, size = self.CONSTANTS[name]
        found = (FOLDER / file).stat().st_size
        if found != size:
            raise ModuleError(f"{file}: {found} bytes, expected {size}")
        return np.memmap(FOLDER / file, np.uint8, "r") if size else np.empty(0, np.uint8)
'''

CONTROL_FLOW: Final = '''
    def _control_flow(self, slots: int) -> CommandBuffer:
        """A recording with loops or branches. The host follows them where the device records none."""
        if self.device.info.control_flow:
            return self.device.create_command_buffer(slots)
        return HostControlFlow(self.device, slots)
'''

#: name -> its text, in the order of a module
HELPERS: Final[dict[str, str]] = {
    "ProgramFailed": '''\
class ProgramFailed(HalError):
    """The program ended the call itself. The message is the program's."""
''',
    "described": '''\
def described(dtype: DType, shape: tuple[int | None, ...]) -> str:
    """A type for messages: `4x?xf32`."""
    return "x".join([*("?" if size is None else str(size) for size in shape), dtype.name])
''',
    "storage": '''\
def storage(what: str, view: BufferView, dtype: DType, shape: tuple[int | None, ...]) -> Buffer:
    """The buffer of a view of this type. `None` stands for any size.

    Raises InvalidArgument for a view of another type, or one that does not begin with its buffer.
    """
    if not isinstance(view, BufferView):
        raise InvalidArgument(f"{what}: expected a BufferView, got {type(view).__name__}")
    fits = view.shape == shape or (
        len(view.shape) == len(shape) and all(b in (a, None) for a, b in zip(view.shape, shape, strict=True))
    )
    if view.dtype is not dtype or not fits:
        raise InvalidArgument(f"{what}: expected {described(dtype, shape)}, got {described(view.dtype, view.shape)}")
    if view.offset:
        raise InvalidArgument(f"{what}: begins at byte {view.offset} of its buffer, expected 0")
    return view.buffer
''',
    "destination": '''\
def destination(device: Device, what: str, view: BufferView | None, dtype: DType, shape: tuple[int, ...]) -> BufferView:
    """The view for a result: the given one, checked as `storage` does, or a new one over new memory."""
    if view is not None:
        storage(what, view, dtype, shape)
        return view
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    return BufferView(device.allocator.allocate(size, MemoryUse.OUTPUT), dtype, shape)
''',
    "words": '''\
def words(*numbers: int) -> bytes:
    """The low 32 bits of each number: the parameters of a dispatch."""
    return b"".join([(number & 0xFFFFFFFF).to_bytes(4, "little") for number in numbers])
''',
    "wrapped": '''\
def wrapped(number: int, bits: int) -> int:
    """A number reduced to signed integers of this many bits."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half
''',
    "quotient": '''\
def quotient(a: int, b: int) -> int:
    """a / b rounded towards 0."""
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found
''',
    "remainder": '''\
def remainder(a: int, b: int) -> int:
    """The remainder of a / b, with the sign of a."""
    found = abs(a) % abs(b)
    return -found if a < 0 else found
''',
    "Recent": '''\
class Recent(Generic[Made]):
    """What was made for the sizes that calls had last."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], Made] = {}

    def get(self, sizes: tuple[int, ...], make: Callable[..., Made]) -> Made:
        """What `make(*sizes)` returned, or returns now."""
        found = self._made.pop(sizes) if sizes in self._made else make(*sizes)
        self._made[sizes] = found
        while len(self._made) > MOST_SIZES:
            del self._made[next(iter(self._made))]
        return found

    def release(self) -> None:
        """Forget everything. Work in flight keeps what it uses."""
        self._made.clear()
''',
}
#: helper -> those that it uses
NEEDS: Final[dict[str, tuple[str, ...]]] = {"storage": ("described",), "destination": ("storage", "described")}

UPLOAD: Final = '''\
def upload(device: Device, array: npt.ArrayLike, dtype: DType) -> BufferView:
    """A view over new memory of the device with the elements of an array."""
    elements = np.ascontiguousarray(array, dtype.numpy).reshape(np.shape(array))
    view = BufferView(device.allocator.allocate(elements.nbytes, MemoryUse.INPUT), dtype, elements.shape)
    view.write(elements)
    return view
'''


def selected(text: str, parameters: bool) -> str:
    """A text for programs with or without parameters: lines with the mark `#+` or `#-` are for one of them."""
    other = " #-" if parameters else " #+"
    lines = [line for line in text.splitlines(keepends=True) if not line.rstrip("\n").endswith(other)]
    return "".join(lines).replace(" #+\n", "\n").replace(" #-\n", "\n")


def with_needs(names: Iterable[str]) -> list[str]:
    """Helpers and those that they use, in the order of a module."""
    found = {*names}
    for name in names:
        found.update(NEEDS.get(name, ()))
    return [name for name in HELPERS if name in found]
