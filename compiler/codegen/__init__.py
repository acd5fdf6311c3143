"""Source code of programs: what `vm-codegen` writes.

A style is a row of `styles.STYLES` and a package that renders a subject (`subject.py`) as files. Styles render what the
compiler decided; they choose no schedules and no memory layout.
"""
