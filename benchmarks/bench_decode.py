"""Time per token of a decode loop over growing lengths: recordings that serve many sizes, compared with one recording
per size.

Both run on the same device in the same process.

Expected before measuring: without recording, a token costs what a call of a known length costs, about 0.25 ms, and some
0.15 ms for the setup, which is traced for its length. Recording again costs about 1 ms more: memory for the arena and
the slots, descriptor sets, commands.

A token is one step of attention over caches that grow by one row, `f32[s, 32]` each, from 1 row to 257. Rounds of the
variants alternate; a row shows the median over all tokens of the median over the rounds.
"""

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from harness import arguments, need, versions

WIDTH, TOKENS = 32, 256


def module(bound: bool) -> bytes:
    """One step, exported with a symbolic length. With `bound`, the length's greatest value is declared."""
    import jax
    import jax.numpy as jnp
    from jax import export

    from orchestrion import compiler

    def step(w: Any, x: Any, keys: Any, values: Any) -> Any:
        keys = jnp.concatenate([keys, x @ w[1]], 0)
        values = jnp.concatenate([values, x @ w[2]], 0)
        scores = jax.nn.softmax(x @ w[0] @ keys.T / 6.0, axis=-1)
        return scores @ values, keys, values

    (s,) = export.symbolic_shape("s", constraints=[f"s <= {TOKENS}"] if bound else [])
    shapes = ((3, WIDTH, WIDTH), (1, WIDTH), (s, WIDTH), (s, WIDTH))
    specs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return compiler.compile(export.export(jax.jit(step))(*specs).mlir_module(), targets=["spirv"])


class Variant:
    """A loaded program. With `per_size`, each length has a recording of its own, as on devices without indirect
    dispatch.
    """

    def __init__(self, code: bytes, per_size: bool, known: bool = False) -> None:
        from orchestrion import vm
        from orchestrion.hal.vulkan.device import VulkanDevice

        able, VulkanDevice.indirect_dispatch = VulkanDevice.indirect_dispatch, not per_size
        try:
            self.program = vm.load(code, device="vulkan")
            _ = self.program.main  # made while the device says what it can
        finally:
            VulkanDevice.indirect_dispatch = able
        self.known = known
        random = np.random.default_rng(0)
        self.weights = random.normal(size=(3, WIDTH, WIDTH)).astype(np.float32) / 6
        self.x = random.normal(size=(1, WIDTH)).astype(np.float32)
        self.medians: list[float] = []
        self.recorded = 0

    def round(self) -> None:
        """One loop; the first token is not counted."""
        statistics = self.program.context.device.statistics
        keys = values = np.zeros((TOKENS // 2 if self.known else 1, WIDTH), np.float32)
        _, more_keys, more_values = self.program.main(self.weights, self.x, keys, values)
        before, times = statistics.command_buffers_recorded, []
        for _ in range(TOKENS - 1):
            if not self.known:
                keys, values = more_keys, more_values
            started = perf_counter()
            _, more_keys, more_values = self.program.main(self.weights, self.x, keys, values)
            times.append(perf_counter() - started)
        if not self.medians:
            self.recorded = statistics.command_buffers_recorded - before
        self.medians.append(median(times))


def main() -> None:
    options = arguments("time per token of a decode loop, with recordings for many sizes and with one per size")
    need("jax")
    plain, bounded = module(False), module(True)
    variants = {
        "a recording per length": Variant(plain, per_size=True),
        "no declared bound": Variant(plain, per_size=False),
        f"s <= {TOKENS} declared": Variant(bounded, per_size=False),
        "one length, for comparison": Variant(plain, per_size=False, known=True),
    }
    for _ in range(max(1, options.rounds // 6)):
        for variant in variants.values():
            variant.round()
    base = median(variants["a recording per length"].medians)
    print(f"{versions('jax')}\n\n{'':28}{'us per token':>14}{'of the first':>14}{'recorded after token 1':>24}")
    for name, variant in variants.items():
        time = median(variant.medians)
        print(f"{name:28}{time * 1e6:14.0f}{time / base:14.2f}{variant.recorded:24}")


if __name__ == "__main__":
    main()
