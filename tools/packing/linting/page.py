"""The page for a store's reviewer: a description of the file, what it can and cannot do, each rule and its verdict.

One HTML file without scripts and external links. Everything from the module is escaped, so it is shown as text.
"""

from collections.abc import Iterable
from html import escape
from typing import Any

from .report import Report, count

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }
.passes, .holds { color: #0a6b2d; } .fails, .error { color: #b00020; } .warning { color: #8a5a00; }
.verdict { font-weight: 600; white-space: nowrap; } code, pre { font: 14px/1.4 ui-monospace, monospace; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; white-space: pre-wrap; }
@media (prefers-color-scheme: dark) { body { color: #e8e8e8; background: #161616; } pre { background: #242424; }
  th, td { border-color: #3a3a3a; } .passes, .holds { color: #6cd391; } .fails, .error { color: #ff8a94; }
  .warning { color: #ffc35c; } }
"""


def page(found: Report) -> str:
    """The HTML of a report (`report.report`)."""
    word = "passes" if found["passed"] else "fails"
    head = f"{escape(found['file'])} {word} {escape(found['profile']['name'])}"
    parts = [
        f"<h1><span class={word}>{head}</span></h1>",
        f"<p>Judged as {escape(found['profile']['doc'])}: {count(found['errors'], 'error')}, "
        f"{count(found['warnings'], 'warning')}.</p>",
        *_module(found),
        *_abilities(found),
        *_rules(found["rules"]),
        *_model_card(found["module"]),
        *_segments(found["module"]),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{head}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def _table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    """A table; cells are HTML."""
    lines = ["<table>"]
    if head:
        lines.append("<tr>" + "".join(f'<th scope="col">{cell}</th>' for cell in head) + "</tr>")
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join((*lines, "</table>"))


def _code(text: object) -> str:
    return f"<code>{escape(str(text))}</code>"


def _module(found: Report) -> Iterable[str]:
    yield "<h2>What the file is</h2>"
    module: dict[str, Any] | None = found["module"]
    rows = [
        ("File", escape(found["file"])),
        ("Size", f"{found['bytes']:,} bytes"),
        ("SHA-256 of the file", _code(found["sha256"])),
    ]
    if module is None:
        yield _table([*rows, ("Module", "the file does not open: nothing else was judged")])
        return
    model = module["attributes"]
    name = model["model.name"] or "without a name"
    yield _table(
        [
            ("Model", f"{escape(name)}, version {escape(model['model.version'] or 'not stated')}"),
            *rows,
            ("SHA-256 of the root, which names the module and every segment", _code(module["digest"])),
            ("Signature", escape(module["signature"])),
            ("Licence", escape(_first_line(model["model.licence"]))),
            ("Format, made by", f"{escape(module['format'])}, {escape(module['producer'])}"),
            ("Functions", "<br>".join(_code(row["signature"]) for row in module["exports"]) or "none"),
            (
                "Declared limits",
                "<br>".join(f"{_code(k)} {escape(str(v))}" for k, v in module["limits"].items()) or "none",
            ),
        ]
    )
    yield "<h2>Programs</h2>\n<p>A device runs one of these. Those that are not in the file were taken out.</p>"
    yield _table(
        (
            (
                escape(row["name"]),
                escape(row["profile"]),
                _there(row),
                escape(", ".join(row["formats"]) or "none"),
                f"{row['code_bytes']:,}",
                f"{row['constant_bytes']:,}",
            )
            for row in module["programs"]
        ),
        ("Program", "Profile", "Is", "Code", "Bytes of code", "Bytes of constants"),
    )


def _there(row: dict[str, Any]) -> str:
    return "in the file" if row["in_file"] else "not in the file"


def _first_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    if not lines:
        return "none"
    return lines[0] if len(lines) == 1 else f"{lines[0]} ... ({len(lines)} lines)"


def _abilities(found: Report) -> Iterable[str]:
    yield "<h2>What it cannot do</h2>"
    yield _table(
        (
            '<span class="verdict holds">cannot</span>' if row["holds"] else '<span class="verdict error">might</span>',
            escape(row["what"]),
            "by " + ", ".join(map(_code, row["rules"])),
        )
        for row in found["cannot"]
    )
    module = found["module"]
    if module is None:
        return
    yield "<h2>What it can do</h2>\n<p>It computes on the arguments of a call, by these functions and no others:</p>"
    yield _table((_code(row["name"]), escape(row["does"])) for row in module["imports"])


def _rules(rules: Iterable[dict[str, Any]]) -> Iterable[str]:
    yield "<h2>Rules</h2>"
    yield _table((_verdict(row), _explained(row)) for row in rules)


def _verdict(row: dict[str, Any]) -> str:
    kind = row["severity"] if row["verdict"] == "broken" else "holds" if row["verdict"] == "holds" else "warning"
    word = row["severity"] if row["verdict"] == "broken" else row["verdict"]
    return f'<span class="verdict {kind}">{escape(word)}</span><br>{_code(row["id"])}'


def _explained(row: dict[str, Any]) -> str:
    text = f"{escape(row['what'])}<br><small>Why: {escape(row['why'])}.</small>"
    if row["verdict"] != "broken":
        return text
    found = "".join(f"<li>{_code(line)}</li>" for line in row["findings"])
    return f"{text}<ul>{found}</ul><small>To fix: {escape(row['mend'])}.</small>"


def _model_card(module: dict[str, Any] | None) -> Iterable[str]:
    for key, title in (("model.card", "Model card"), ("model.licence", "Licence")):
        text = None if module is None else module["attributes"][key]
        if text:
            yield f"<h2>{title}</h2>\n<p>As the publisher wrote it.</p>\n<pre>{escape(text)}</pre>"


def _segments(module: dict[str, Any] | None) -> Iterable[str]:
    if module is None:
        return
    yield "<h2>Segments</h2>\n<p>What the root names by its SHA-256. Those that are not in the file were taken out.</p>"
    yield _table(
        ((escape(row["kind"]), f"{row['bytes']:,}", _there(row), _code(row["sha256"])) for row in module["segments"]),
        ("Kind", "Bytes", "Is", "SHA-256"),
    )
