"""The lines that an app writes run as the page shows them, and refuse what the page says."""

import re
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from signed_modules import code_module, keys_file, signed

from orchestrion.schema.trust import keys
from orchestrion.schema.trust.policy import MODES, SCOPES
from orchestrion.schema.trust.signature_set import ALGORITHMS, KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "signatures.md").read_text(encoding="utf-8")
(APP,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_lines_of_an_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    key = keys.generate("ed25519")
    keys_file(tmp_path / "keys.toml", key)
    good = signed(code_module('attribute "model.name" = "mlp"'), key)
    path = tmp_path / "signed.fb"
    path.write_bytes(good)
    exec(APP, {})
    assert capsys.readouterr().out == "('publisher',)\n"
    stranger = signed(code_module('attribute "model.name" = "mlp"'), keys.generate("p256"))
    other = signed(code_module('attribute "model.name" = "other"'), key)
    place = good.index(b"mlp")
    damaged = good[:place] + b"MLP" + good[place + 3 :]
    for data, words in ((stranger, "not ours: module"), (damaged, "damaged: the root"), (other, "another model")):
        path.write_bytes(data)
        with pytest.raises(SystemExit, match=words):
            exec(APP, {})


def test_the_page_names_all_there_is() -> None:
    for word in (*MODES, *SCOPES):
        assert f'"{word}"' in PAGE
    for word in KINDS:
        assert f"`{word}`" in PAGE
    for number, name in ALGORITHMS.items():
        assert f"{number} {name}" in PAGE
