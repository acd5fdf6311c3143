"""vm-asm: the text assembler for modules, and back (`--disassemble`). Both ways give the same bytes again."""

import argparse
import sys
from collections.abc import Sequence

from . import cli
from .arguments import Parser

EXAMPLES = (
    ("vm-asm program.vmasm -o program.fb", "Assembles a module."),
    ("vm-asm --disassemble program.fb", "Prints the text of a module, which assembles to the same bytes."),
)


def assemble(options: argparse.Namespace) -> int:
    if options.disassemble:
        from orchestrion.schema.decoder import read_module
        from orchestrion.schema.disassembler import disassemble

        text = disassemble(read_module(cli.read_bytes(options.input)))
        if options.output is None:
            sys.stdout.write(text)
        else:
            cli.write_whole(options.output, text.encode())
        return cli.DONE
    if options.output is None:
        raise cli.UsageError("-o OUT.fb is missing")
    from orchestrion.schema.assembler import assemble as read
    from orchestrion.schema.writer import write_file

    try:
        source = cli.read_bytes(options.input).decode()
    except UnicodeDecodeError as error:
        raise cli.InputError(f"{options.input}: not text: {error}") from None
    write_file(options.output, read(source))
    return cli.DONE


def parser() -> Parser:
    made = cli.parser("vm-asm", "Assembles a module from text.", EXAMPLES)
    made.add_argument("input", metavar="IN", help="the text, or the module with --disassemble; - for standard input")
    group = made.group("what is written")
    group.add_argument("-o", dest="output", metavar="OUT", help="the module, or the text (which needs no -o)")
    group.add_argument("--disassemble", action="store_true", help="from module to text")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-asm", parser(), assemble, argv)


if __name__ == "__main__":
    sys.exit(main())
