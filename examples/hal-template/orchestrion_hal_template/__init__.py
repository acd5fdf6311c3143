"""An Orchestrion driver in a package of its own, with its own executable format and compiler target.

The device is NumPy: all invocations of some workgroups run in lockstep, with one array per value. To make a driver,
copy the package, rename it, and replace `lanes.py` by code for your hardware.
"""
