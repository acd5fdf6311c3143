"""The page docs/isa.md, written from the rows of `isa.py`: `python -m orchestrion.schema.isa_page > docs/isa.md`."""

from collections.abc import Iterator

from .isa import EFFECTS, FAMILIES, INSTRUCTIONS, KINDS, Instruction

_HEAD = """# Instructions of the virtual machine

`python -m orchestrion.schema.isa_page > docs/isa.md` writes this page from the rows of `schema/isa.py`. A test compares
them.

**Numbers.** Arithmetic is that of WebAssembly. i32 and i64 wrap. f32 and f64 are IEEE 754, and every result is rounded
once. A NaN made by arithmetic is the positive canonical NaN. `u(x)` is x read as unsigned, `s(x)` is x read as signed,
and `N` is the width of the register bank in bits. *trap* ends the call with a named error. Registers are zero or null
when a function starts.

**Encoding.** An instruction is its opcode (u16) and its operands, little endian, in the order of the table, operands of
fixed width first:

| operand | bytes |
| --- | --- |
| register, written as name and bank | 2; bit 15 of a ref that is read is the move bit: the register is then null |
| immediate | 4 or 8 |
| ordinal of a function, import, global or constant; branch target | 4 |
| `registers`; `integers`, which are registers of i32 or i64 | a u16 count, then 2 each |
| `targets` | a u32 count, then 4 each |
| `text` | a u16 count of UTF-8 bytes, then these, padded to an even count |

The effect of an instruction is one of these:
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
