"""What PyInstaller has to know to freeze an application that uses the runtime.

PyInstaller finds modules by their import statements, so `hook-NAME.py` here names what NAME imports by a string or
opens as a file. PyInstaller finds this folder through the entry point `hook-dirs` of the group `pyinstaller40`.
"""

from pathlib import Path


def hook_dirs() -> list[str]:
    return [str(Path(__file__).parent)]
