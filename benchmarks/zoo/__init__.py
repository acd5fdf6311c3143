"""Programs of other people's libraries, as their documentation writes them: `python -m zoo` in this folder runs all.

Each file has the programs of one library. `programs.py` says what a row is, `measure.py` runs one in a process of its
own, `__main__.py` makes the table of `docs/zoo.md`.
"""
