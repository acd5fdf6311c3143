"""The conformance suite: the same cases on any driver, by name.

    python -m orchestrion.hal.cts --device=opencl --report=DIR
    pytest --pyargs orchestrion.hal.cts --hal-driver=opencl --cts-report=DIR

Each file of cases is one noun of the interface; `catalogue.py` lists them all and runs them, `kernels.py` holds the
code they dispatch, one payload per executable format, `tags.py` what a case may need of a device. A driver states in
its class (`BackendDriver.conformance`) which cases can never pass on it and why, and which fail though they should
pass: one of those that passes is a failure.

Version rule: the major number grows when a case is removed, renamed, or asks for more than it did; the minor number
when cases are added; the last one when a case is corrected and no right driver can tell.
"""

VERSION = "1.0.0"

SCOPE = (
    "The suite tests that a driver keeps the contract of orchestrion.hal.backend, as it is seen through the front of "
    "the HAL: memory, transfers, dispatches, recordings, order and synchronisation, lifetimes, errors, statistics, "
    "interrupts and profiling. It does not test the accuracy of kernels, speed, how native code is confined, or what "
    "the compiler emits for a target."
)
