"""A library call as a kernel.

The function is looked up, and its `check` is called, when the executable is made. A run passes arrays, and reports who
is at fault if it fails.
"""

from types import MappingProxyType

import numpy as np

from orchestrion.hal.errors import HalError, InvalidArgument, LibraryFailed
from orchestrion.hal.libraries.registry import Array, Function, Spec, find
from orchestrion.schema.library_call import Attributes, call_text
from orchestrion.schema.tensor_shapes import TensorType, Types

from .kernels import Kernel


def bind(operands: Types, results: Types, name: str, attributes: Attributes) -> Kernel:
    """Returns the kernel of a call. Raises LibraryUnavailable if the function does not exist, InvalidArgument if it
    refuses the call.
    """
    function, text, count = find(name), call_text(name, operands, results), len(operands)
    named = MappingProxyType(dict(attributes))
    _check(function, text, [_spec(type) for type in operands], [_spec(type) for type in results], named)
    run = function.run

    def call(*arrays: Array) -> None:
        inputs = tuple([_input(array) for array in arrays[:count]])
        given = arrays[count:]
        outputs = tuple([out if out.flags.aligned else out.copy() for out in given])
        try:
            returned = run(inputs, outputs, named)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # SystemExit, too, would end the worker and block those who wait for it
            raise LibraryFailed(f"library function {text} raised {type(error).__name__}: {error}") from error
        if returned is not None:
            raise LibraryFailed(
                f"library function {text} returned {type(returned).__name__}; results are written into its outputs"
            )
        for out, made in zip(given, outputs, strict=True):
            if made is not out:
                out[...] = made

    return call


def _check(function: Function, text: str, inputs: list[Spec], outputs: list[Spec], named: MappingProxyType) -> None:  # type: ignore[type-arg]
    if function.check is None:
        return
    try:
        function.check(inputs, outputs, named)
    except HalError:
        raise
    except Exception as error:
        raise InvalidArgument(f"library function {text} refuses the call: {error}") from error


def _spec(type: TensorType) -> Spec:
    return Spec(type.dtype.numpy, type.shape)


def _input(array: Array) -> Array:
    """A read-only, contiguous, aligned array: a view if possible, otherwise a copy."""
    flags = array.flags
    view = array.view() if flags.c_contiguous and flags.aligned else np.array(array, order="C")
    view.flags.writeable = False
    return view
