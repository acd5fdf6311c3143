"""The meaning of each instruction, with a file per family. The import fails unless each row has exactly one function.

`OPS` holds the factories of ops, which work on registers alone, and `ENDS` the factories of the ends of blocks. The
effect of a row says whether it ends a block; the import fails if its function is in the wrong table. Rows in `LINKED`
need the linked imports, and `imports.py` makes their ops.
"""

from orchestrion.schema.isa import INSTRUCTIONS, Effect

from . import buffers, control, conversion, globals, integer, lists, ref, value
from . import float as float_family
from .control import ENDS
from .table import Factory

LINKED = tuple(row.name for row in INSTRUCTIONS if row.effect in (Effect.NATIVE, Effect.LINKED))

_FAMILIES = (control, value, ref, integer, float_family, conversion, globals, lists, buffers)
OPS: dict[str, Factory] = {name: factory for family in _FAMILIES for name, factory in family.OPS.items()}

__all__ = ["ENDS", "LINKED", "OPS"]


def _check_totality() -> None:
    names = [name for family in _FAMILIES for name in family.OPS] + [*ENDS, *LINKED]
    rows = {row.name for row in INSTRUCTIONS}
    if len(names) != len(set(names)) or set(names) != rows:
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ImportError(
            f"instructions without a function: {sorted(rows - set(names))}; "
            f"functions without a row: {sorted(set(names) - rows)}; twice: {twice}"
        )
    misplaced = {row.name for row in INSTRUCTIONS if row.ends_block} ^ set(ENDS)
    if misplaced:
        raise ImportError(f"instructions in the wrong table, OPS or ENDS: {sorted(misplaced)}")


_check_totality()
