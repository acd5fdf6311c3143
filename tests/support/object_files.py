"""Machine code of equal texts of LLVM IR is made once in a process: tests read kernels back and compile them again."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from typing import Any
from unittest.mock import patch

from orchestrion.compiler.targets.cpu import llvm_child
from orchestrion.compiler.targets.cpu.levels import Level
from orchestrion.schema.lru_cache import LruCache

#: object files that are kept, those that were used last: more than a program has
COUNT = 256


@contextmanager
def kept() -> Iterator[None]:
    """Keeps object files within the block. Errors are not kept."""
    real, lock, files = llvm_child.object_file, Lock(), LruCache[tuple[Any, ...], llvm_child.ObjectFile]()

    def object_file(text: str, level: Level, *rest: Any, text_only: bool = False, **more: Any) -> llvm_child.ObjectFile:
        key = sha256(text.encode()).digest(), level.triple, level.cpu, level.features, text_only
        with lock:
            found = files.use(key)
        if found is None:
            found = real(text, level, *rest, text_only=text_only, **more)
            with lock:
                files.put(key, found, COUNT)
        return found

    with patch.object(llvm_child, "object_file", object_file):
        yield
