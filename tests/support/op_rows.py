"""A smallest program for each op of StableHLO and CHLO, over any element type: the rows of docs/coverage.md.

A row is a signature, attributes and regions in MLIR's generic syntax, in which `{e}` is the element type, `{r}` its
real part's where it is complex, `{c}` the complex type of it where it is f32 or f64. Operands are arguments of the
program; `lines` stand in front of the op and make others. A row without `{e}` has no element type to vary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

V, S = "tensor<4x{e}>", "tensor<{e}>"
I64 = "tensor<i64>"


@dataclass(frozen=True, slots=True)
class Row:
    signature: str
    attributes: str = ""
    regions: str = ""
    lines: str = ""
    #: operands that `lines` make, behind the arguments
    made: tuple[tuple[str, str], ...] = ()
    #: how many arguments are operands; the regions use the others, and `lines` do
    operands: int = 99
    #: functions beside the program
    others: str = ""

    @property
    def varies(self) -> bool:
        return "{e}" in self.signature

    def text(self, name: str, element: str) -> str:
        """The program, for one element type."""
        real = re.sub(r"complex<(\w+)>", r"\1", element)
        one = "true" if element == "i1" else "1" if "i" in element else "(1.0, 0.0)" if "<" in element else "1.0"
        words = {"{e}": element, "{r}": real, "{c}": f"complex<{element}>", "{one}": one}
        takes, gives = self.signature.split(" -> ", 1)
        arguments = _split(takes.removeprefix("(").removesuffix(")"))
        results = _split(gives[1:-1] if gives.startswith("(") else gives)
        names = [*[f"%arg{at}" for at in range(len(arguments))][: self.operands], *(name for name, _ in self.made)]
        types = [*arguments[: self.operands], *(type for _, type in self.made)]
        values = [f"%r#{at}" for at in range(len(results))]
        shown = [(v, t) for v, t in zip(values, results, strict=True) if "token" not in t and not t.startswith("tuple")]
        defined = f"%r:{len(results)} = " if results else ""
        given = ", ".join(f"%arg{at}: {type}" for at, type in enumerate(arguments))
        out = ", ".join(type for _, type in shown)
        text = f"""func.func public @main({given}) -> ({out}) {{
  {self.lines}
  {defined}"{name}"({", ".join(names)}) <{{{self.attributes}}}> {f"({self.regions})" if self.regions else ""}
      : ({", ".join(types)}) -> ({", ".join(results)})
  return {", ".join(v for v, _ in shown)}{" : " if shown else ""}{out}
}}
{self.others}"""
        for word, value in words.items():
            text = text.replace(word, value)
        return text.replace(" <{}>", "")


def _split(types: str) -> list[str]:
    """At the commas that stand in no brackets."""
    found, depth, last = [], 0, ""
    for letter in types:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            found.append(last.strip())
            last = ""
        else:
            last += letter
    return [*found, last.strip()] if last.strip() else found


def _region(op: str, count: int = 2, gives: str = "{e}", attributes: str = "") -> str:
    arguments = [f"%{letter}" for letter in "abcd"[:count]]
    head = ", ".join(f"{argument}: tensor<{{e}}>" for argument in arguments)
    types = ", ".join(["tensor<{e}>"] * 2)
    return (
        f'{{ ^bb0({head}): %z = "{op}"({", ".join(arguments[:2])}) {attributes} : ({types}) -> tensor<{gives}> '
        f'"stablehlo.return"(%z) : (tensor<{gives}>) -> () }}'
    )


ADD = _region("stablehlo.add")
LESS = _region("stablehlo.compare", 2, "i1", "<{comparison_direction = #stablehlo<comparison_direction LT>}>")
SAME = '{ "stablehlo.return"(%arg1) : (tensor<4x{e}>) -> () }'
GROUP = "replica_groups = dense<[[0]]> : tensor<1x1xi64>"
UNARY = f"({V}) -> {V}"
BINARY = f"({V}, {V}) -> {V}"
PREDICATE = f"({V}) -> tensor<4xi1>"
NORM = "tensor<2x4x{e}>"
NORM_AT = "epsilon = 0.001 : f32, feature_index = 1 : i64"
DOT = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
CONV = (
    "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, "
    "batch_group_count = 1 : i64"
)
GATHER = (
    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
)
TOKEN = '%t = "stablehlo.create_token"() : () -> !stablehlo.token'
WITH_TOKEN = (("%t", "!stablehlo.token"),)
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>"


def _constant(values: str, type: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A constant operand, behind the arguments."""
    return f'%k = "stablehlo.constant"() <{{value = dense<{values}> : {type}}}> : () -> {type}', (("%k", type),)


def _shaped(signature: str, values: str, attributes: str = "", type: str = "tensor<1xi64>") -> Row:
    return Row(signature, attributes, "", *_constant(values, type))


_SHAPES = {
    "unary": "abs cbrt ceil count_leading_zeros cosine exponential exponential_minus_one floor log log_plus_one "
    "logistic negate not optimization_barrier popcnt round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan "
    "tanh",
    "binary": "add and atan2 divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic "
    "shift_right_logical subtract xor",
}
_CHLO = {
    "unary": "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc lgamma sinh square tan",
    "binary": "broadcast_add broadcast_and broadcast_atan2 broadcast_divide broadcast_maximum broadcast_minimum "
    "broadcast_multiply broadcast_next_after broadcast_or broadcast_polygamma broadcast_power broadcast_remainder "
    "broadcast_shift_left broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract "
    "broadcast_xor broadcast_zeta mulhi next_after polygamma zeta",
    "predicate": "is_inf is_neg_inf is_pos_inf",
}
_FORMS = {"unary": UNARY, "binary": BINARY, "predicate": PREDICATE}

ROWS: dict[str, Row] = {
    **{f"stablehlo.{name}": Row(_FORMS[form]) for form, names in _SHAPES.items() for name in names.split()},
    **{f"chlo.{name}": Row(_FORMS[form]) for form, names in _CHLO.items() for name in names.split()},
    "stablehlo.abs": Row(f"({V}) -> tensor<4x{{r}}>"),
    "chlo.broadcast_compare": Row(
        f"({V}, {V}) -> tensor<4xi1>", "comparison_direction = #chlo<comparison_direction LT>"
    ),
    "chlo.broadcast_complex": Row(f"({V}, {V}) -> tensor<4x{{c}}>"),
    "chlo.broadcast_select": Row(f"(tensor<4xi1>, {V}, {V}) -> {V}"),
    "chlo.constant": Row("() -> tensor<i32>", "value = dense<1> : tensor<i32>"),
    "chlo.constant_like": Row("(tensor<4xf32>) -> tensor<4xf32>", "value = 1.0 : f32"),
    "chlo.ragged_dot": Row(
        "(tensor<4x3x{e}>, tensor<2x3x5x{e}>, tensor<2xi64>) -> tensor<4x5x{e}>",
        "ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], "
        "rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>",
    ),
    "chlo.scan": Row(
        f"(tensor<4x{{e}}>, {S}) -> (tensor<4x{{e}}>, {S})",
        "dimension = 0 : i64, is_reverse = false, is_associative = false, operandSegmentSizes = array<i32: 1, 1>, "
        "resultSegmentSizes = array<i32: 1, 1>",
        '{ ^bb0(%a: tensor<{e}>, %b: tensor<{e}>): "stablehlo.return"(%a, %b) : (tensor<{e}>, tensor<{e}>) -> () }',
    ),
    "chlo.top_k": Row(f"({V}) -> (tensor<2x{{e}}>, tensor<2xi32>)", "k = 2 : i64"),
    "stablehlo.after_all": Row("() -> !stablehlo.token", "", "", TOKEN, WITH_TOKEN),
    "stablehlo.all_gather": Row(UNARY, f"all_gather_dim = 0 : i64, {GROUP}"),
    "stablehlo.all_reduce": Row(UNARY, GROUP, ADD),
    "stablehlo.all_to_all": Row(
        UNARY, f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, {GROUP}"
    ),
    "stablehlo.batch_norm_grad": Row(f"({NORM}, {V}, {V}, {V}, {NORM}) -> ({NORM}, {V}, {V})", NORM_AT),
    "stablehlo.batch_norm_inference": Row(f"({NORM}, {V}, {V}, {V}, {V}) -> {NORM}", NORM_AT),
    "stablehlo.batch_norm_training": Row(f"({NORM}, {V}, {V}) -> ({NORM}, {V}, {V})", NORM_AT),
    "stablehlo.bitcast_convert": Row(UNARY),
    "stablehlo.broadcast": Row(f"({V}) -> tensor<2x4x{{e}}>", "broadcast_sizes = array<i64: 2>"),
    "stablehlo.broadcast_in_dim": Row(f"({V}) -> tensor<2x4x{{e}}>", "broadcast_dimensions = array<i64: 1>"),
    "stablehlo.case": Row(f"(tensor<i32>, {V}) -> {V}", "", f"{SAME}, {SAME}", operands=1),
    "stablehlo.cholesky": Row("(tensor<3x3x{e}>) -> tensor<3x3x{e}>", "lower = true"),
    "stablehlo.clamp": Row(f"({S}, {V}, {S}) -> {V}"),
    "stablehlo.collective_broadcast": Row(UNARY, GROUP),
    "stablehlo.collective_permute": Row(UNARY, "source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>"),
    "stablehlo.compare": Row(
        f"({V}, {V}) -> tensor<4xi1>", "comparison_direction = #stablehlo<comparison_direction EQ>"
    ),
    "stablehlo.complex": Row(f"({V}, {V}) -> tensor<4x{{c}}>"),
    "stablehlo.composite": Row(
        UNARY,
        'name = "my.op", decomposition = @other',
        others=f"func.func private @other(%arg0: {V}) -> {V} {{ return %arg0 : {V} }}",
    ),
    "stablehlo.concatenate": Row(f"({V}, {V}) -> tensor<8x{{e}}>", "dimension = 0 : i64"),
    "stablehlo.constant": Row(f"() -> {V}", "value = dense<{one}> : tensor<4x{e}>"),
    "stablehlo.convert": Row(f"(tensor<4xf32>) -> {V}"),
    "stablehlo.convolution": Row("(tensor<1x4x2x{e}>, tensor<3x2x2x{e}>) -> tensor<1x2x2x{e}>", CONV),
    "stablehlo.create_token": Row("() -> !stablehlo.token"),
    "stablehlo.cross-replica-sum": Row(UNARY, GROUP),
    "stablehlo.custom_call": Row(UNARY, 'call_target_name = "Sharding"'),
    "stablehlo.dot": Row("(tensor<2x3x{e}>, tensor<3x2x{e}>) -> tensor<2x2x{e}>"),
    "stablehlo.dot_general": Row("(tensor<2x3x{e}>, tensor<3x2x{e}>) -> tensor<2x2x{e}>", DOT),
    "stablehlo.dynamic_broadcast_in_dim": _shaped(
        f"({V}) -> tensor<2x4x{{e}}>", "[2, 4]", "broadcast_dimensions = array<i64: 1>", "tensor<2xi64>"
    ),
    "stablehlo.dynamic_conv": _shaped(
        "(tensor<1x4x2x{e}>, tensor<3x2x2x{e}>) -> tensor<1x2x2x{e}>", "0", CONV, "tensor<1x2xi64>"
    ),
    "stablehlo.dynamic_gather": _shaped(f"({V}, tensor<2x1xi32>) -> tensor<2x{{e}}>", "1", GATHER),
    "stablehlo.dynamic_iota": _shaped(f"() -> {V}", "4", "iota_dimension = 0 : i64"),
    "stablehlo.dynamic_pad": Row(
        f"({V}, {S}) -> tensor<6x{{e}}>",
        "",
        "",
        _constant("1", "tensor<1xi64>")[0]
        + ' %n = "stablehlo.constant"() <{value = dense<0> : tensor<1xi64>}> : () -> tensor<1xi64>',
        (("%k", "tensor<1xi64>"), ("%k", "tensor<1xi64>"), ("%n", "tensor<1xi64>")),
    ),
    "stablehlo.dynamic_reshape": _shaped(f"({V}) -> tensor<2x2x{{e}}>", "2", type="tensor<2xi64>"),
    "stablehlo.dynamic_slice": Row(f"({V}, tensor<i32>) -> tensor<2x{{e}}>", "slice_sizes = array<i64: 2>"),
    "stablehlo.dynamic_update_slice": Row(f"({V}, tensor<2x{{e}}>, tensor<i32>) -> {V}"),
    "stablehlo.einsum": Row("(tensor<2x3x{e}>, tensor<3x2x{e}>) -> tensor<2x2x{e}>", 'einsum_config = "ab,bc->ac"'),
    "stablehlo.fft": Row(UNARY, "fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>"),
    "stablehlo.gather": Row(f"({V}, tensor<2x1xi32>) -> tensor<2x{{e}}>", f"{GATHER}, slice_sizes = array<i64: 1>"),
    "stablehlo.get_dimension_size": Row(f"({V}) -> tensor<i32>", "dimension = 0 : i64"),
    "stablehlo.get_tuple_element": Row(
        f"({V}) -> {V}",
        "index = 0 : i32",
        "",
        f'%k = "stablehlo.tuple"(%arg0) : ({V}) -> tuple<{V}>',
        (("%k", f"tuple<{V}>"),),
        0,
    ),
    "stablehlo.if": Row(f"(tensor<i1>, {V}) -> {V}", "", f"{SAME}, {SAME}", operands=1),
    "stablehlo.imag": Row(f"({V}) -> tensor<4x{{r}}>"),
    "stablehlo.infeed": Row(f"() -> ({V}, !stablehlo.token)", "", "", TOKEN, WITH_TOKEN),
    "stablehlo.iota": Row(f"() -> {V}", "iota_dimension = 0 : i64"),
    "stablehlo.is_finite": Row(PREDICATE),
    "stablehlo.map": Row(
        UNARY, "dimensions = array<i64: 0>", '{ ^bb0(%a: tensor<{e}>): "stablehlo.return"(%a) : (tensor<{e}>) -> () }'
    ),
    "stablehlo.outfeed": Row(f"({V}) -> !stablehlo.token", "", "", TOKEN, WITH_TOKEN),
    "stablehlo.pad": Row(
        f"({V}, {S}) -> tensor<6x{{e}}>",
        "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>",
    ),
    "stablehlo.partition_id": Row("() -> tensor<ui32>"),
    "stablehlo.real": Row(f"({V}) -> tensor<4x{{r}}>"),
    "stablehlo.real_dynamic_slice": Row(
        f"({V}) -> tensor<2x{{e}}>",
        "",
        "",
        " ".join(
            f'%{n} = "stablehlo.constant"() <{{value = dense<{n[1]}> : tensor<1xi64>}}> : () -> tensor<1xi64>'
            for n in ("k0", "k2", "k1")
        ),
        tuple((f"%{n}", "tensor<1xi64>") for n in ("k0", "k2", "k1")),
    ),
    "stablehlo.recv": Row(f"() -> ({V}, !stablehlo.token)", CHANNEL, "", TOKEN, WITH_TOKEN),
    "stablehlo.reduce": Row(f"({V}, {S}) -> {S}", "dimensions = array<i64: 0>", ADD),
    "stablehlo.reduce_precision": Row(UNARY, "exponent_bits = 5 : i32, mantissa_bits = 2 : i32"),
    "stablehlo.reduce_scatter": Row(UNARY, f"scatter_dimension = 0 : i64, {GROUP}", ADD),
    "stablehlo.reduce_window": Row(f"({V}, {S}) -> tensor<3x{{e}}>", "window_dimensions = array<i64: 2>", ADD),
    "stablehlo.replica_id": Row("() -> tensor<ui32>"),
    "stablehlo.reshape": Row(f"({V}) -> tensor<2x2x{{e}}>"),
    "stablehlo.reverse": Row(UNARY, "dimensions = array<i64: 0>"),
    "stablehlo.rng": Row(
        f"({S}, {S}) -> {V}",
        "rng_distribution = #stablehlo<rng_distribution UNIFORM>",
        "",
        *_constant("4", "tensor<1xi64>"),
    ),
    "stablehlo.rng_bit_generator": Row(
        f"(tensor<2xui64>) -> (tensor<2xui64>, {V})", "rng_algorithm = #stablehlo<rng_algorithm PHILOX>"
    ),
    "stablehlo.scatter": Row(
        f"({V}, tensor<2x1xi32>, tensor<2x{{e}}>) -> {V}",
        "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
        ADD,
    ),
    "stablehlo.select": Row(f"(tensor<4xi1>, {V}, {V}) -> {V}"),
    "stablehlo.select_and_scatter": Row(
        f"({V}, tensor<3x{{e}}>, {S}) -> {V}", "window_dimensions = array<i64: 2>", f"{LESS}, {ADD}"
    ),
    "stablehlo.send": Row(f"({V}) -> !stablehlo.token", CHANNEL, "", TOKEN, WITH_TOKEN),
    "stablehlo.set_dimension_size": Row(f"({V}, tensor<i32>) -> tensor<?x{{e}}>", "dimension = 0 : i64"),
    "stablehlo.slice": Row(
        f"({V}) -> tensor<2x{{e}}>",
        "start_indices = array<i64: 0>, limit_indices = array<i64: 4>, strides = array<i64: 2>",
    ),
    "stablehlo.sort": Row(f"({V}) -> {V}", "dimension = 0 : i64", LESS),
    "stablehlo.torch_index_select": Row(
        f"({V}, tensor<2xi32>) -> tensor<2x{{e}}>", "dim = 0 : i64, batch_dims = 0 : i64"
    ),
    "stablehlo.transpose": Row("(tensor<2x3x{e}>) -> tensor<3x2x{e}>", "permutation = array<i64: 1, 0>"),
    "stablehlo.triangular_solve": Row(
        "(tensor<3x3x{e}>, tensor<3x2x{e}>) -> tensor<3x2x{e}>",
        "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>",
    ),
    "stablehlo.tuple": Row(f"({V}) -> tuple<{V}>"),
    "stablehlo.unary_einsum": Row("(tensor<2x3x{e}>) -> tensor<3x{e}>", 'einsum_config = "ab->b"'),
    "stablehlo.while": Row(
        f"({V}) -> {V}",
        "",
        '{ ^bb0(%a: tensor<4x{e}>): %z = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> '
        ': () -> tensor<i1> "stablehlo.return"(%z) : (tensor<i1>) -> () }, '
        '{ ^bb0(%b: tensor<4x{e}>): "stablehlo.return"(%b) : (tensor<4x{e}>) -> () }',
    ),
}
