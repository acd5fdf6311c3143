"""vm-pack lint: checks a module against the rules of a store. The rules are the table of `linting/rules.py`.

Exit status 1 if a rule of severity `error` is broken. Nothing of the module runs.
"""

import argparse
import json
import os

from orchestrion.schema.printable import printable
from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

from .linting.profiles import LINT_PROFILES

EXAMPLES = (
    ("vm-pack lint m.fb", "Says what the rules of app stores object to. The exit status is 1 where they refuse it."),
    (
        "vm-pack lint m.fb --policy=keys.toml --html=review.html",
        "Also asks for signatures, and writes a page for the reviewer.",
    ),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "lint", run, "Checks a module against the rules of a store.", EXAMPLES)
    made.add_argument("file", metavar="M.fb", help="the module")
    made.add_argument(
        "--profile",
        choices=LINT_PROFILES,
        default="app-store",
        help="; ".join(f"{row.name}: {row.doc}" for row in LINT_PROFILES.values()) + " (default: app-store)",
    )
    made.add_argument("--json", metavar="FILE", help="write the result as JSON; - for standard output")
    made.add_argument("--html", metavar="FILE", help="write a page for the store's reviewer")
    made.add_argument("--policy", metavar="KEYS.toml", help="signatures must suffice under this trust policy")
    made.add_argument("--key", metavar="KEY.pub.pem", help="this key must have signed")
    made.add_argument("--detached", metavar="F", help="signatures that are in a file of their own")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.decoder import open_module
    from orchestrion.schema.errors import ModuleError

    from .linting import report as lint_report
    from .linting import rules as lint_rules
    from .linting.signature import signature_facts
    from .linting.subject import LintSubject

    if options.policy is not None and options.key is not None:
        raise cli.UsageError("--policy and --key cannot be combined")
    profile = LINT_PROFILES[options.profile]
    subject = None
    try:
        module = open_module(options.file)
    except ModuleError as error:
        data, verdicts = memoryview(cli.read_bytes(options.file)), lint_rules.unsound(str(error))
    else:
        facts = signature_facts(module, options.policy, options.key, options.detached)
        subject = LintSubject(module, profile, facts)
        data, verdicts = module.container.data, lint_rules.judge(subject)
    found = lint_report.report(os.path.basename(options.file), data, profile, verdicts, subject)
    _write(found, options)
    return cli.DONE if found["passed"] else cli.BAD_INPUT


def _write(found: "dict[str, object]", options: argparse.Namespace) -> None:
    from .linting.page import page
    from .linting.report import lines

    text = json.dumps(found, indent=2) + "\n"
    if options.html is not None:
        cli.write_whole(options.html, page(found).encode())
    if options.json == "-":
        print(text, end="")
        return
    if options.json is not None:
        cli.write_whole(options.json, text.encode())
    for line in lines(found):
        print(printable(line))
