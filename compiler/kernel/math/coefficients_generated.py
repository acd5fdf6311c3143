"""Constants and polynomial coefficients of the expansions, per float format. Generated: do not edit.

Polynomials give the constant term first. What each is a fit of, on which interval and how exactly, stands in
tests/compiler/test_math_coefficients.py, which recomputes every number.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of one format. A `high` and `low` pair sums to the constant."""

    log2_e: float
    ln2_high: float
    ln2_low: float
    exp_most: float
    exp_least: float
    expm1_least: float
    tanh_most: float
    tiny: float
    sqrt_half_bits: int
    sqrt_half_carry: int
    third_high: float
    third_low: float
    power_most: float
    pi_high: float
    pi_low: float
    half_pi_high: float
    half_pi_low: float
    quarter_pi: float
    quarter_pi_low: float
    two_over_pi: tuple[int, ...]
    tan_eighth_pi: float
    atan2_huge: float
    atan2_shrink: float
    atan2_tiny: float
    atan2_grow: float
    cbrt_middle: float
    cbrt_factor: float
    cbrt_guess: int
    cbrt_half_bit: int
    cbrt_mask: int
    exp: tuple[float, ...]
    log: tuple[float, ...]
    log_tail: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    arctangent: tuple[float, ...]


TABLES: dict[str, Table] = {
    "f32": Table(
        log2_e=1.4426950216293335,
        ln2_high=0.693145751953125,
        ln2_low=1.428606765330187e-06,
        exp_most=89.0,
        exp_least=-106.0,
        expm1_least=-20.0,
        tanh_most=10.0,
        tiny=1.4901161193847656e-08,
        sqrt_half_bits=0x3F3504F3,
        sqrt_half_carry=0x4AFB0D,
        third_high=0.3333333432674408,
        third_low=-9.934107758624577e-09,
        power_most=2199023255552.0,
        pi_high=3.1415927410125732,
        pi_low=-8.742277657347586e-08,
        half_pi_high=1.5707963705062866,
        half_pi_low=-4.371138828673793e-08,
        quarter_pi=0.7853981852531433,
        quarter_pi_low=-2.1855694143368964e-08,
        two_over_pi=(
            0x0,
            0xA2F9836E,
            0x4E441529,
            0xFC2757D1,
            0xF534DDC0,
            0xDB629599,
            0x3C439041,
            0xFE5163AB,
        ),
        tan_eighth_pi=0.4142135679721832,
        atan2_huge=1.0633823966279327e+37,
        atan2_shrink=0.00390625,
        atan2_tiny=1.6543612251060553e-24,
        atan2_grow=16777216.0,
        cbrt_middle=9.223372036854776e+18,
        cbrt_factor=2097152.0,
        cbrt_guess=0x2A5118B6,
        cbrt_half_bit=0x800,
        cbrt_mask=0xFFFFF000,
        exp=(
            0.5,
            0.1666666716337204,
            0.04166646674275398,
            0.00833331048488617,
            0.0013933641603216529,
            0.00019890980911441147,
        ),
        log=(
            0.3333333432674408,
            0.2000006139278412,
            0.14275410771369934,
            0.11665233969688416,
        ),
        log_tail=(
            0.20000000298023224,
            0.1428576558828354,
            0.11102382838726044,
            0.09560178965330124,
        ),
        sine=(
            -0.1666666716337204,
            0.008333331905305386,
            -0.00019840087043121457,
            2.7249900540482486e-06,
        ),
        cosine=(
            0.0416666679084301,
            -0.00138888880610466,
            2.480059993104078e-05,
            -2.730093910940923e-07,
        ),
        arctangent=(
            -0.3333333432674408,
            0.19999977946281433,
            -0.14284150302410126,
            0.11071348190307617,
            -0.08624552935361862,
            0.05047820508480072,
        ),
    ),
    "f64": Table(
        log2_e=1.4426950408889634,
        ln2_high=0.693147180559663,
        ln2_low=2.8235290563031577e-13,
        exp_most=710.0,
        exp_least=-747.0,
        expm1_least=-40.0,
        tanh_most=20.0,
        tiny=2.7755575615628914e-17,
        sqrt_half_bits=0x3FE6A09E667F3BCD,
        sqrt_half_carry=0x95F619980C433,
        third_high=0.3333333333333333,
        third_low=1.850371707708594e-17,
        power_most=1.1805916207174113e+21,
        pi_high=3.141592653589793,
        pi_low=1.2246467991473532e-16,
        half_pi_high=1.5707963267948966,
        half_pi_low=6.123233995736766e-17,
        quarter_pi=0.7853981633974483,
        quarter_pi_low=3.061616997868383e-17,
        two_over_pi=(
            0x0,
            0xA2F9836E4E441529,
            0xFC2757D1F534DDC0,
            0xDB6295993C439041,
            0xFE5163ABDEBBC561,
            0xB7246E3A424DD2E0,
            0x6492EEA09D1921C,
            0xFE1DEB1CB129A73E,
            0xE88235F52EBB4484,
            0xE99C7026B45F7E41,
            0x3991D639835339F4,
            0x9C845F8BBDF9283B,
            0x1FF897FFDE05980F,
            0xEF2F118B5A0A6D1F,
            0x6D367ECF27CB09B7,
            0x4F463F669E5FEA2D,
            0x7527BAC7EBE5F17B,
            0x3D0739F78A5292EA,
            0x6BFB5FB11F8D5D08,
            0x56033046FC7B6BAB,
        ),
        tan_eighth_pi=0.41421356237309503,
        atan2_huge=5.617791046444737e+306,
        atan2_shrink=0.00390625,
        atan2_tiny=9.025971879324148e-277,
        atan2_grow=9007199254740992.0,
        cbrt_middle=6.703903964971299e+153,
        cbrt_factor=1.4965776766268446e+51,
        cbrt_guess=0x2A9F786C226809D4,
        cbrt_half_bit=0x4000000,
        cbrt_mask=0xFFFFFFFFF8000000,
        exp=(
            0.5,
            0.1666666666666667,
            0.04166666666666667,
            0.008333333333326141,
            0.0013888888888883752,
            0.00019841269874800493,
            2.4801587325533363e-05,
            2.7557255425746435e-06,
            2.7557273661348637e-07,
            2.510520637395701e-08,
            2.0914679376583935e-09,
        ),
        log=(
            0.3333333333333333,
            0.2000000000000044,
            0.14285714285401807,
            0.11111111195856958,
            0.09090897820066453,
            0.07693119851407329,
            0.06634386569328443,
            0.06543313073920051,
        ),
        log_tail=(
            0.2,
            0.14285714285714682,
            0.11111111110828116,
            0.09090909167657202,
            0.07692297485447729,
            0.06667402119112673,
            0.05853124270461193,
            0.05861525514048877,
        ),
        sine=(
            -0.16666666666666666,
            0.008333333333333331,
            -0.00019841269841265063,
            2.7557319219337672e-06,
            -2.5052106231927857e-08,
            1.6058531536611833e-10,
            -7.586692262094344e-13,
        ),
        cosine=(
            0.041666666666666664,
            -0.0013888888888887398,
            2.4801587298764778e-05,
            -2.7557317271258515e-07,
            2.0876146170183976e-09,
            -1.1382625349447592e-11,
        ),
        arctangent=(
            -0.3333333333333333,
            0.19999999999999804,
            -0.14285714285659748,
            0.11111111105147764,
            -0.09090908753118594,
            0.07692296363979952,
            -0.066664246872465,
            0.05878926715756726,
            -0.052304374642516874,
            0.045515165635903104,
            -0.0345685906686069,
            0.01628357235648259,
        ),
    ),
}
