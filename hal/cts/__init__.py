"""The conformance suite: the same cases on any driver, by name.

    python -m orchestrion.hal.cts --device=opencl --report=DIR
    pytest --pyargs orchestrion.hal.cts --hal-driver=opencl --cts-report=DIR

Each file of cases covers one noun of the interface. `catalogue.py` lists and runs all of them. `kernels.py` holds the
code that they dispatch, one payload per executable format. `tags.py` defines what a case may require of a device. A
driver's class (`BackendDriver.conformance`) states which cases can never pass on it, and why, and which fail although
they should pass. A listed case that passes is a failure.

Version rule: the major number grows when a case is removed or renamed, or requires more than before; the minor number
when cases are added; the last number when a case is corrected and no correct driver can notice it.
"""

VERSION = "1.0.2"

SCOPE = (
    "The suite tests that a driver keeps the contract of orchestrion.hal.backend, as observed through the front of "
    "the HAL: memory, transfers, dispatches, recordings, order and synchronisation, lifetimes, errors, statistics, "
    "interrupts and profiling. It does not test the accuracy of kernels, speed, how native code is confined, or what "
    "the compiler emits for a target."
)
