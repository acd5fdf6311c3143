"""What each instruction does, a file per family. Importing this package fails unless every row has exactly one
function.

`OPS` are factories of ops that work on registers alone, `ENDS` those of what ends a block. Which rows end one is said
by their effect, and a row whose function is in the wrong table fails the import, too. The rows in `LINKED` need the
linked imports; `imports.py` makes their ops.
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
        raise ImportError(f"instructions that end a block, or do not, and are taken for the other: {sorted(misplaced)}")


_check_totality()
