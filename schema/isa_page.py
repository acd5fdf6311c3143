"""The page docs/isa.md, written from the rows of `isa.py`: `python -m orchestrion.schema.isa_page > docs/isa.md`."""

from collections.abc import Iterator

from .isa import EFFECTS, FAMILIES, INSTRUCTIONS, KINDS, Instruction

_HEAD = """# The VM's instructions

Written by `python -m orchestrion.schema.isa_page > docs/isa.md` from the rows of `schema/isa.py`; a test compares them.

Numeric meaning is that of WebAssembly: i32 and i64 wrap; f32 and f64 are IEEE 754 with every result rounded once; a NaN
that arithmetic makes is the positive canonical one. `u(x)` is x read as unsigned, `s(x)` as signed, `N` the width of
the bank in bits. *trap* ends the call with a named error. Registers are zero or null when a function starts.

In code, an instruction is its opcode (u16) and its operands, little endian, in the order of the table, those of fixed
width first: registers, written by name and bank, take 2 bytes (bit 15 of a ref that is read is the move bit: the
register is null afterwards); immediates 4 or 8; ordinals of functions, imports, globals and constants, and branch
targets, 4; `registers` a u16 count and 2 bytes each, and so `integers`, which are registers of i32 or i64; `targets` a
u32 count and 4 bytes each; `text` a u16 count of UTF-8 bytes, padded to an even count.

The effect says what an instruction does beside computing:
"""


def page() -> Iterator[str]:
    """The lines of the page."""
    yield _HEAD
    yield "| effect | meaning |"
    yield "| --- | --- |"
    for effect, meaning in EFFECTS.items():
        yield f"| {effect} | {meaning} |"
    yield ""
    for family, title in FAMILIES.items():
        yield f"## {title[0].upper()}{title[1:]}"
        yield ""
        yield "| opcode | instruction | operands | effect | meaning |"
        yield "| --- | --- | --- | --- | --- |"
        for row in INSTRUCTIONS:
            if row.family == family:
                meaning = _escaped(row.doc)
                yield f"| `{row.opcode:#06x}` | `{row.name}` | {_operands(row)} | {row.effect} | {meaning} |"
        yield ""


def _operands(row: Instruction) -> str:
    ordered = sorted(row.operands, key=lambda operand: KINDS[operand.kind] is None)
    reads = " ".join(f"{operand.name}:{operand.type or operand.kind}" for operand in ordered if not operand.result)
    writes = " ".join(f"{operand.name}:{operand.type or operand.kind}" for operand in ordered if operand.result)
    return f"`{reads}{' ' if reads else ''}→ {writes}`" if writes else f"`{reads}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    print("\n".join(page()))
