"""The layout of the module file is read from its FlatBuffers schema."""

from PyInstaller.utils.hooks import collect_data_files

datas = collect_data_files("orchestrion.schema", includes=["*.fbs"])
