"""Programs of other libraries, written as in their documentation. `python -m zoo` in this folder runs all of them.

Each file has the programs of one library. `programs.py` defines a program, `measure.py` runs one in a process of its
own, `__main__.py` makes the table of `docs/zoo.md`.
"""
