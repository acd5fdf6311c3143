"""Expectations of a case about a block of code: an error, or a warning. The suite needs no test framework to run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class raises:  # noqa: N801  used as a function, as the one of pytest
    """The block must raise one of `errors` whose text matches the regular expression. Raises AssertionError otherwise.

    A class, since a generator's context manager refers to itself through the error's traceback from Python 3.12 on,
    which would keep the objects of the block alive.
    """

    def __init__(self, *errors: type[BaseException], match: str = "") -> None:
        self._errors = errors
        self._match = match

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is None:
            names = " or ".join(one.__name__ for one in self._errors)
            raise AssertionError(f"{names} with {self._match!r} was not raised")
        if not isinstance(error, self._errors):
            return False
        said = f"{type(error).__name__} says {str(error)!r}, expected {self._match!r}"
        assert re.search(self._match, str(error)), said
        return True


@contextmanager
def warns(kind: type[Warning], match: str) -> Iterator[None]:
    """The block must emit a warning of this kind that matches the regular expression. Other warnings are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = [one for one in caught if issubclass(one.category, kind) and re.search(match, str(one.message))]
    for one in caught:
        if one not in found:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    said = [str(one.message) for one in caught]
    assert found, f"no {kind.__name__} with {match!r}; warnings: {said}"
