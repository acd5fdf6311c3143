"""Ratios of two versions' times, which were measured in turn, with their intervals.

A *pair* is the ratios of the rounds of a pair of processes.
"""

import random
import statistics

Pairs = list[list[float]]


def ratio(pairs: Pairs) -> float:
    """The geometric mean over pairs of processes of the median over rounds."""
    return statistics.geometric_mean([statistics.median(rounds) for rounds in pairs])


def interval(pairs: Pairs) -> tuple[float, float]:
    """The 95 % interval of `ratio`, from resampling the pairs and the rounds of each."""
    generator = random.Random(0)
    found = sorted(
        ratio([generator.choices(rounds, k=len(rounds)) for rounds in generator.choices(pairs, k=len(pairs))])
        for _ in range(1000)
    )
    return found[25], found[975]


def shown(pairs: Pairs) -> str:
    """The ratio and its interval, as they are printed."""
    low, high = interval(pairs)
    return f"{ratio(pairs):5.3f} [{low:5.3f}, {high:5.3f}]"
