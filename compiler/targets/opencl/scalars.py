"""OpenCL C as a language of the C family: its types, and the scalar ops for which it has functions of its own."""

from orchestrion.compiler.targets.c_text.language import Language

LANGUAGE = Language(
    types={
        "i1": "bool",
        "i8": "char",
        "i16": "short",
        "i32": "int",
        "i64": "long",
        "ui8": "uchar",
        "ui16": "ushort",
        "ui32": "uint",
        "ui64": "ulong",
        "f32": "float",
        "f64": "double",
    },
    memory={"i1": "uchar"},
    rows=(
        ("abs", "f", "fabs({x})"),
        ("sqrt", "f", "sqrt({x})"),
        ("floor", "f", "floor({x})"),
        ("ceil", "f", "ceil({x})"),
        ("round_nearest_even", "f", "rint({x})"),
        ("trunc", "f", "trunc({x})"),
        ("bitcast", "suf", "as_{R}({x})"),
    ),
    suffix="l",
    not_finite="as_{R}({bits})",
    vector="{R}{lanes}",
)
