"""Functions on vectors: every value in the text of a function is a vector, the lanes of which are 32 bits wide.

Conditions are masks: a lane is 0 or -1, as comparisons of vectors give it.
"""

from functools import cache

from orchestrion.compiler.targets.c_text.language import Language
from orchestrion.schema.dtypes import BOOL, DType

from .render import OpenCLBody
from .scalars import LANGUAGE

#: the types of lanes, in OpenCL C
_TYPES = {"i1": "int", "i32": "int", "ui32": "uint", "f32": "float"}
_ROWS = (
    ("not", "bs", "~{x}"),
    ("add", "s", "as_{R}(as_{W}({x}) + as_{W}({y}))"),
    ("subtract", "s", "as_{R}(as_{W}({x}) - as_{W}({y}))"),
    ("multiply", "s", "as_{R}(as_{W}({x}) * as_{W}({y}))"),
    ("negate", "s", "as_{R}(-as_{W}({x}))"),
    ("select", "bsuf", "select({z}, {y}, {x})"),
    ("convert", "suf", "convert_{R}({x})"),
    ("unchecked_convert", "f", "convert_{R}({x})"),
    ("unchecked_divide", "s", "{x} / {y}"),
    ("unchecked_shift_left", "s", "as_{R}(as_{W}({x}) << {y})"),
    ("unchecked_shift_right_logical", "s", "as_{R}(as_{U}({x}) >> {y})"),
    ("unchecked_shift_right_arithmetic", "s", "{x} >> {y}"),
    ("unchecked_shift_right_arithmetic", "U", "as_{R}(as_{S}({x}) >> {y})"),
)


class _Vectors(Language):
    """OpenCL C on vectors of a number of lanes."""

    def literal(self, pattern: int, dtype: DType) -> str:
        number = ("-1" if pattern else "0") if dtype.kind == BOOL else LANGUAGE.literal(pattern, dtype)
        return f"({self.types[dtype.name]})({number})"


@cache
def body_on(lanes: int) -> type[OpenCLBody]:
    """The class that renders the bodies of functions on vectors of that many lanes; 1: on scalars."""
    if lanes == 1:
        return OpenCLBody
    types = {name: f"{type}{lanes}" for name, type in _TYPES.items()}
    vectors = _Vectors(types, {}, (*LANGUAGE.rows, *_ROWS), LANGUAGE.suffix, LANGUAGE.not_finite, LANGUAGE.vector)
    return type(f"OpenCLBodyOn{lanes}", (OpenCLBody,), {"language": vectors})
