"""Drivers and libraries of functions, ours and those of every other installed package, and the libraries they use.

An optional package that is not installed is not in the application: the driver or library says so when it is asked for.
"""

from importlib.util import find_spec

from PyInstaller.utils.hooks import collect_data_files, collect_entry_point

#: optional package -> what is imported of it by name
_OPTIONAL = {
    "vulkan": ["vulkan._vulkan"],
    "scipy": ["scipy.linalg.blas", "scipy.linalg.lapack"],
}

datas: list[tuple[str, str]] = collect_data_files("orchestrion.hal.cpu", includes=["*.img"])
hiddenimports = [
    "orchestrion.hal.libraries.blas",
    "orchestrion.hal.libraries.lapack",
    "orchestrion.hal.opencl.launch_process",
    "orchestrion.hal.vulkan.build_process",
]
for _group in ("orchestrion.hal", "orchestrion.libraries"):
    _datas, _modules = collect_entry_point(_group)
    datas += _datas
    hiddenimports += _modules
for _package, _modules in _OPTIONAL.items():
    if find_spec(_package):
        hiddenimports += _modules
