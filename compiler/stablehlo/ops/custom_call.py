"""`stablehlo.custom_call` of a library function: `library.function` over tensors, with attributes in its
backend_config.

`expand` converts calls of frontends to one canonical form, the only one that is supported: the function's name in
`call_target_name`, its attributes in the dictionary `backend_config`, `api_version` 4, and nothing else. Other fields
describe XLA's memory layout (layouts, results that share memory with operands), or features that are refused: side
effects, called computations, names that are no library functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from orchestrion.compiler.ir.attributes import (
    ArrayAttr,
    BoolAttr,
    DenseArray,
    DenseElements,
    DictAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from orchestrion.compiler.ir.core import Operation, Trait
from orchestrion.compiler.ir.declare import attr, operands, optional, results
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, Attribute, TensorType
from orchestrion.schema.library_call import KIND_NAMES, Attributes, Value, check_attributes, name_problem
from orchestrion.schema.tensor_shapes import ShapeError

from .base import StablehloOp, may_be_empty, tensor_of
from .dynamic import ASSERTION

TYPED_FFI: Final = IntegerAttr(4, I32)  #: api_version: the attributes are in a dictionary
#: The attribute where JAX puts the dictionary, for readers that know only older versions.
_FOREIGN_CONFIG: Final = "mhlo.backend_config"
#: Attributes that describe memory and no values.
_MEMORY: Final = ("operand_layouts", "result_layouts", "output_operand_aliases")
#: Names of custom calls that JAX, XLA and Triton generate for one kind of device -> the device.
_PLATFORMS: Final = (
    (re.compile(r"cu(?:solver|blas|sparse|dnn|fft|rand)?_|__cu(?:blas|dnn|solver)\b|__cu(?:blas|dnn)\$"), "CUDA"),
    (re.compile(r"(?:hip|roc)(?:solver|blas|sparse|fft|rand)?_|__hip"), "ROCm"),
    (re.compile(r"triton_|mosaic_gpu|__gpu\$|xla\.gpu\."), "GPUs"),
    (re.compile(r"tpu_|Mosaic"), "TPUs"),
)
_FOR_CPU: Final = "export the program for cpu: jax.export.export(f, platforms=['cpu'])"
#: Prefix of op names, such as `dynamic_top_k`, that are calls only while their shapes are computed.
_STABLEHLO: Final = "stablehlo."
#: The attribute that lists the operands with the shapes of results, if those are symbolic.
SHAPES: Final = "indices_of_shape_operands"


class CustomCall(StablehloOp):
    """Calls a function of the device. Equal operands and attributes give equal results; there is no other effect."""

    name = "stablehlo.custom_call"
    inputs = operands(TensorType)
    call_target_name = attr(StringAttr)
    backend_config = optional(Attribute)
    api_version = optional(IntegerAttr)
    has_side_effect = optional(BoolAttr)
    called_computations = optional(ArrayAttr)
    operand_layouts = optional(ArrayAttr)
    result_layouts = optional(ArrayAttr)
    output_operand_aliases = optional(ArrayAttr)
    out = results(TensorType)
    traits = frozenset({Trait.PURE})

    def has(self, trait: Trait) -> bool:
        """Whether the op has a trait; a call with side effects is not pure."""
        return super().has(trait) and not (trait is Trait.PURE and self.get("has_side_effect") == BoolAttr(True))

    @property
    def function(self) -> str:
        """The name, `library.function`."""
        return self.call_target_name.value

    def check(self) -> Iterator[str]:
        """Messages unless it is a call of a library function in canonical form, with something to compute."""
        yield from self.form_problems()
        if not self.refusal_reason() and not self._is_computed():
            yield from self._results()

    def form_problems(self) -> Iterator[str]:
        """Messages about everything except its results."""
        if self._is_computed():
            return
        if reason := self.refusal_reason():
            yield reason
            return
        if self.has_side_effect == BoolAttr(True):
            yield f"calls {self.function}, which has side effects; functions over tensors only are supported"
        if self.called_computations:
            yield f"calls {self.function} with computations, which is not supported"
        config = self.backend_config
        if not isinstance(config, DictAttr):
            yield f"calls {self.function} with backend_config {config}, a dictionary (api_version = 4) is supported"
            return
        yield from attribute_problems(config)
        if self.api_version != TYPED_FFI:
            yield f"calls {self.function} with api_version {self.api_version}, supported is {TYPED_FFI}"

    def _is_computed(self) -> bool:
        """Whether `refine-shapes` reads the call: it is an assertion, or states the shapes of its results."""
        known = all(isinstance(value.type, TensorType) and value.type.is_known for value in self.results)
        says = SHAPES in self.attributes or self.function.startswith(_STABLEHLO)
        return self.function == ASSERTION or (says and not known)

    def refusal_reason(self) -> str:
        """Why the name cannot be that of a library function; empty if it can."""
        target = self.get_as("call_target_name", StringAttr)
        problem = name_problem(target.value) if target is not None else None
        if target is not None and target.value.startswith(_STABLEHLO):
            return f"is not supported: {target.value} of such operands, results and attributes"
        if target is None or problem is None:
            return ""
        platform = next((platform for pattern, platform in _PLATFORMS if pattern.match(target.value)), None)
        if platform is not None:
            return f"is not supported: {target.value} is code for {platform}; {_FOR_CPU}"
        return f"is not supported (a call of code that the module does not have): {problem}"

    def _results(self) -> Iterator[str]:
        if not self.results:
            yield f"calls {self.function} without results; a library function needs one"
        for index, result in enumerate(self.results):
            type = tensor_of(result)
            if may_be_empty(type):
                has = "has" if type.is_static else "may have"
                yield f"result {index} is {type}, which {has} no elements for {self.function} to compute"


#: Maximum numbers of a list attribute that are expanded from one repeated number.
MAX_REPEATED: Final = 1 << 16


def attribute_problems(config: DictAttr) -> Iterator[str]:
    """What is wrong with the attributes of a library call."""
    for key, value in config.items:
        try:
            check_attributes(((key, _value(value)),))
        except ShapeError as error:
            yield f"attribute {key}: {error}"


def attribute_values(config: DictAttr) -> Attributes:
    """The attributes in the form of module files. Raises ShapeError if `attribute_problems` reports anything."""
    return tuple([(key, _value(value)) for key, value in config.items])


def _value(given: Attribute) -> Value:
    match given:
        case BoolAttr() | StringAttr() | IntegerAttr():
            return given.value
        case FloatAttr() if str(given.type) in ("f16", "f32", "f64"):
            return given.value
        case DenseArray():
            return _list(given.values, str(given.element))
        case DenseElements() if given.type.rank == 1 and not (
            given.is_splat and given.type.num_elements > MAX_REPEATED
        ):
            return _list(given.array().tolist(), str(given.type.element))
        case _:
            raise ShapeError(f"{str(given)[:60]} is not supported; supported are {KIND_NAMES}")


def _list(values: Sequence[Any], element: str) -> Value:
    return tuple(map(bool, values)) if element == "i1" else tuple(values)


def canonicalize_call(op: Operation, rewriter: Rewriter) -> bool:
    """Converts a call to canonical form if it is in another one that means the same."""
    if not isinstance(op, CustomCall):
        return False
    given = op.get("backend_config")
    foreign = op.attributes.get(_FOREIGN_CONFIG)
    properties = {key: value for key, value in op.properties.items() if key not in _MEMORY}
    if foreign is not None and given in (None, StringAttr(""), DictAttr(())):
        properties["backend_config"] = foreign
    elif given in (None, StringAttr("")):
        properties["backend_config"] = DictAttr(())
    if isinstance(properties.get("backend_config"), DictAttr):
        properties["api_version"] = TYPED_FFI
    for key, nothing in (("has_side_effect", BoolAttr(False)), ("called_computations", ArrayAttr(()))):
        if properties.get(key) == nothing:
            del properties[key]
    if properties == op.properties and foreign is None:
        return False
    op.properties = properties
    op.attributes.pop(_FOREIGN_CONFIG, None)
    return True
