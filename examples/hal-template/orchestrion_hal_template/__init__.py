"""A driver for Orchestrion in a package of its own, with an executable format and a compiler target of its own.

The device is NumPy: all invocations of some workgroups run in lockstep, an array per value. Copy the package, rename
it, and replace `lanes.py` by what your hardware does.
"""
