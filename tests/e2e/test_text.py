"""Every phase of every program is text that says it all: read back it is the same, and continues to the same bytes.

Nothing is compared with an earlier output of ours: MLIR itself (`jaxlib.mlir`) reads each text, and XLA computes from
what the phase `stablehlo` made of a program what it computes from the program.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from phase_texts import check_texts_continue

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.frontend.stablehlo import load_module
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module

Check = Callable[[Any, list[np.ndarray]], None]
Xla = Callable[..., list[np.ndarray]]


@pytest.mark.sampled(every=12)
def test_every_phase_continues_to_the_same_bytes(
    graph_case: Any, module_of: Callable[[Any], bytes], texts_of: Callable[[Any], dict[str, str]]
) -> None:
    wanted, texts = module_of(graph_case), texts_of(graph_case)
    ir = pytest.importorskip("jaxlib.mlir.ir")
    context = ir.Context()
    context.allow_unregistered_dialects = True
    for phase, text in texts.items():
        assert print_module(parse(text)) == text, phase
        ir.Module.parse(text, context)
    check_texts_continue(texts, wanted)


@pytest.mark.sampled(every=12)
def test_simplifying_changes_no_result(case: Any, xla: Xla, check: Check) -> None:
    """Types that devices keep as their bits are such bits after the phase."""
    text = print_module(Compilation().module(case.lowered(), "stablehlo"), locations=False)
    got = xla(_without_resources(text), *case.arguments())
    wanted = case.wanted()
    kept = [want.dtype.kind == "V" or want.dtype == np.float16 for want in wanted]
    check(case, [g.view(w.dtype) if bits else g for g, w, bits in zip(got, wanted, kept, strict=True)])


def _without_resources(text: str) -> str:
    """XLA takes constants in the text only."""
    body, _, section = text.partition("{-#")
    found = dict(re.findall(r'(c_[0-9a-f]+): "0x[0-9a-f]{8}([0-9A-F]*)"', section))
    return re.sub(r"dense_resource<(\w+)>", lambda match: f'dense<"0x{found[match[1]]}">', body)


@pytest.mark.sampled(every=12)
def test_the_input_survives(case: Any) -> None:
    """What jaxlib prints of our text is what it prints of JAX's."""
    ir = pytest.importorskip("jaxlib.mlir.ir")
    lowered = case.lowered()
    module = lowered.compiler_ir("stablehlo")
    ours = load_module(lowered)
    for op in ours.walk():
        for key in ("arg_attrs", "res_attrs"):
            op.properties.pop(key, None)
    context = module.context
    with context:
        again = ir.Module.parse(_without_resources(print_module(ours)))
        theirs = ir.Module.parse(str(module.operation.get_asm(enable_debug_info=True)))
        for func in theirs.body.operations:
            for key in ("arg_attrs", "res_attrs"):
                if key in func.operation.attributes:
                    del func.operation.attributes[key]
        assert str(again) == str(theirs)
