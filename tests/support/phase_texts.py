"""That the text of each phase of a program continues to the same bytes."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.pipeline import FIRST_PHASE, PHASES
from orchestrion.schema.writer import write


def dumped_texts(folder: Path) -> dict[str, str]:
    """Phase -> its text, of the files that a compilation with `dump=folder` wrote."""
    return {path.stem.partition("-")[2]: path.read_text() for path in sorted(folder.iterdir())}


def check_texts_continue(texts: Mapping[str, str], wanted: bytes, first: str = FIRST_PHASE, **options: Any) -> None:
    """Each phase's text gives the next one's, and the last the bytes; so all of them give the same bytes.

    `first`: the phase of the source. `options` are those of `Compilation`.
    """
    assert list(texts) == list(PHASES)[list(PHASES).index(first) :]
    for phase, following in pairwise(texts):
        assert Compilation(start=phase, **options).text(texts[phase], following) == texts[following], phase
    assert write(Compilation(start=following, **options).rows(texts[following])) == wanted


def check_phases_continue(source: Any, folder: Path, **options: Any) -> dict[str, str]:
    """Compiles a program, checks its texts, and returns them. `folder` is empty."""
    wanted = write(Compilation(dump=folder, **options).rows(source))
    texts = dumped_texts(folder)
    check_texts_continue(texts, wanted, **options)
    return texts
