"""Code of the null device: the entries, and nothing to execute."""

from orchestrion.hal.backend import BackendExecutable, Entry


class NullExecutable(BackendExecutable):
    __slots__ = ("entries",)

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries

    def release(self) -> None:
        return
