"""Compiles the LLVM IR texts of the driver `cpu` into the native images that stand beside them.

`python -m orchestrion.tools.native_images` rewrites all of them; it needs llvmlite. The images are part of the package,
so the driver runs without llvmlite. A test compiles the texts again and compares every byte.

A text knows no architecture. It is compiled behind a prelude, which defines what differs: `@pause`, for loops that wait
for another thread, and functions that return the numbers of system calls. The linker is that of the target `cpu`. The
code may use nothing outside of itself: undefined symbols and variables are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrion.compiler.targets.cpu.linker import link
from orchestrion.schema import native_image

#: the version of llvmlite that compiled the committed images
LLVMLITE = "0.50"
HAL = Path(__file__).resolve().parent.parent / "hal"


@dataclass(frozen=True, slots=True)
class Architecture:
    """How a text is compiled for an architecture: LLVM's triple, processor and features, and the prelude."""

    triple: str
    processor: str
    features: str
    prelude: str


ARCHITECTURES: dict[str, Architecture] = {
    "x86-64": Architecture(
        "x86_64-unknown-linux-gnu",
        "x86-64-v2",
        "",
        """
declare void @llvm.x86.sse2.pause()
define internal void @pause() {
  call void @llvm.x86.sse2.pause()
  ret void
}
define internal i64 @futex_number() {
  ret i64 202
}
define internal i64 @getaffinity_number() {
  ret i64 204
}
define internal i64 @setaffinity_number() {
  ret i64 203
}
""",
    ),
    "aarch64": Architecture(
        "aarch64-unknown-linux-gnu",
        "generic",
        "-outline-atomics",
        """
declare void @llvm.aarch64.hint(i32)
define internal void @pause() {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
define internal i64 @futex_number() {
  ret i64 98
}
define internal i64 @getaffinity_number() {
  ret i64 123
}
define internal i64 @setaffinity_number() {
  ret i64 122
}
""",
    ),
}


@dataclass(frozen=True, slots=True)
class Source:
    """A text below `hal/`, and its entries: name, bindings and parameter words of each."""

    text: str
    entries: tuple[tuple[str, int, int], ...]

    def image(self, architecture: str) -> Path:
        return (HAL / self.text).with_suffix(f".{architecture}.img")


SOURCES: tuple[Source, ...] = (
    Source(
        "cpu/worker.ll",
        (("replay", 0, 0), ("helper", 0, 0), ("stop", 0, 0), ("copy", 2, 4), ("fill", 1, 4)),
    ),
    Source("cts/payloads/kernels.ll", (("add", 3, 2), ("iota", 1, 2), ("increment", 1, 2))),
)


def build(text: str, entries: Sequence[tuple[str, int, int]], architecture: str) -> bytes:
    """The native image of an IR text. Raises LinkError if the code uses anything outside of itself."""
    linked = link(architecture, [_compile(text, ARCHITECTURES[architecture])], [name for name, _, _ in entries])
    rows = [
        native_image.Entry(linked.functions[name][0], bindings, parameters) for name, bindings, parameters in entries
    ]
    return native_image.encode(architecture, rows, linked.code)


def _compile(text: str, architecture: Architecture) -> bytes:
    """The object file of a text."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(f'target triple = "{architecture.triple}"\n{architecture.prelude}\n{text}')
    module.verify()
    for function in module.functions:
        if not function.is_declaration:
            for attribute in ("nounwind", "nobuiltin"):
                function.add_function_attribute(attribute)
    machine = llvm.Target.from_triple(architecture.triple).create_target_machine(
        cpu=architecture.processor, features=architecture.features, opt=2, reloc="pic", codemodel="small"
    )
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False  # loops stay as the texts write them
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    made: bytes = machine.emit_object(module)
    return made


def main() -> int:
    for source in SOURCES:
        for architecture in ARCHITECTURES:
            image = build((HAL / source.text).read_text(), source.entries, architecture)
            source.image(architecture).write_bytes(image)
            print(f"{source.image(architecture).relative_to(HAL.parent)}: {len(image)} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
