"""Exports without tensors, which are called with Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .call import Call
from .code import Code
from .context import Context
from .errors import CallerTypeError, CallerValueError, no_pickle
from .ops.float import round_f32

_INTEGERS = {"i32": 32, "i64": 64}


class ScalarFunction:
    """`function(1, 2.0)`: takes a number per argument, or None for a reference. Returns a value, a tuple, or None."""

    __slots__ = ("_code", "_context", "name")

    def __init__(self, name: str, code: Code, context: Context) -> None:
        self.name = name
        self._code = code
        self._context = context

    @property
    def flat(self) -> ScalarFunction:
        """This function."""
        return self

    def __call__(self, *arguments: Any) -> Any:
        code, context = self._code, self._context
        if len(arguments) != len(code.arguments):
            raise CallerTypeError(f"{self.name!r} takes {len(code.arguments)} arguments, got {len(arguments)}")
        values = [
            _value(value, type_name, f"argument {place} of {self.name!r}")
            for place, (value, type_name) in enumerate(zip(arguments, code.arguments, strict=True))
        ]
        with context.lock:
            if context.closed:
                raise context.refusal(f"the program of {self.name!r}")
            results = context.run(Call(context), code, values)
        return results[0] if len(results) == 1 else results or None

    def __reduce__(self) -> tuple[Any, ...]:
        raise no_pickle(self.name)

    def __repr__(self) -> str:
        code = self._code
        return f"<ScalarFunction {self.name}({', '.join(code.arguments)}) -> ({', '.join(code.results)})>"


def _number(value: Any, kinds: tuple[type, ...], type_name: str, what: str) -> Any:
    """A number of Python or NumPy as a Python number. `CallerError` for any other value."""
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise CallerTypeError(f"{what}: expected {type_name}, got {value!r}")
    return value.item() if isinstance(value, np.generic) else value


def _value(value: Any, type_name: str, what: str) -> Any:
    """The value for a register of that type. An integer may be signed or unsigned. `CallerError` if it does not fit."""
    bits = _INTEGERS.get(type_name)
    if bits is not None:
        value = _number(value, (int, np.integer), type_name, what)
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise CallerValueError(f"{what}: expected {type_name}, got {value!r}")
        half = 1 << bits - 1
        return (value & 2 * half - 1 ^ half) - half
    if type_name in ("f32", "f64"):
        value = _number(value, (int, float, np.integer, np.floating), type_name, what)
        try:
            number = float(value)
        except OverflowError:  # an integer beyond every f64
            raise CallerValueError(
                f"{what}: expected {type_name}, got an integer of {value.bit_length()} bits"
            ) from None
        return round_f32(number) if type_name == "f32" and number == number else number
    if value is not None:
        raise CallerTypeError(f"{what}: expected None for {type_name}, got {value!r}")
    return None
