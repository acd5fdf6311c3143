"""Expectations of a case about a block of code: an error, or a warning. The suite needs no test framework to run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def raises(*errors: type[BaseException], match: str = "") -> Iterator[None]:
    """The block must raise one of `errors` whose text matches the regular expression. Raises
    AssertionError otherwise.
    """
    try:
        yield
    except errors as error:
        assert re.search(match, str(error)), f"{type(error).__name__} says {str(error)!r}, expected {match!r}"
        return
    names = " or ".join(error.__name__ for error in errors)
    raise AssertionError(f"{names} with {match!r} was not raised")


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
