"""The conformance suite: the same cases on any driver, by name.

    pytest --pyargs orchestrion.hal.cts --hal-driver=opencl

Each file of cases is one noun of the interface; `catalogue.py` lists them all, `kernels.py` holds the code they
dispatch, one payload per executable format. A driver states in its class (`BackendDriver.conformance`) which cases can
never pass on it and why, and which fail though they should pass: one of those that passes is a failure.
"""
