"""The page: one HTML file with the data as JSON and one script. It loads nothing from elsewhere.

Everything from the module is data. It is embedded as JSON without `<`, so that it cannot end the script element, and
the script inserts it as text. The page's content security policy allows no request, and the script and the style sheet
only by their digests.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from dataclasses import asdict
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from orchestrion.schema.module import Module
from orchestrion.tools import cli

from . import overlays
from .model import ModuleView, module_view

#: the parts of the script, in order; they share one scope
SCRIPTS = ("quantities.js", "layout.js", "graph.js", "memory.js", "details.js", "code.js", "page.js")


def write(path: str, module: Module, name: str, profile: str | None, comparison: str | None) -> None:
    """Writes the page of a module. `name` is that of its file; a `path` of `-` is standard output. `profile` and
    `comparison` are files of `vm-run`. Raises ModuleError, InputError, OSError.
    """
    found: dict[str, Any] = {}
    if profile is not None:
        found["profile"] = overlays.profile(profile, module)
    if comparison is not None:
        found["compare"] = overlays.comparison(comparison, module)
    title = Path(name).name.encode("utf-8", "replace").decode()
    made = page(module_view(module, title), found).encode()
    if path == "-":
        sys.stdout.buffer.write(made)
    else:
        cli.write_whole(path, made)


def page(view: ModuleView, laid_over: dict[str, Any]) -> str:
    """The HTML. `laid_over`: the data of a profile and a comparison (`overlays.py`)."""
    folder = files(__package__) / "static"
    style = (folder / "page.css").read_text("utf-8")
    parts = "\n".join((folder / name).read_text("utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}\n}})();\n'
    return Template((folder / "page.html").read_text("utf-8")).substitute(
        title=escape(view.title),
        policy=f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        data=embedded(asdict(view) | laid_over),
    )


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def embedded(data: Any) -> str:
    """JSON for a script element: without `<`, and in ASCII."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
