"""Types of the compiled module."""

from typing import final

@final
class MemoryFormat:
    name: str
    order: tuple[int, ...] | None

@final
class Layout:
    name: str

contiguous_format: MemoryFormat
preserve_format: MemoryFormat
channels_last: MemoryFormat
channels_last_3d: MemoryFormat
strided: Layout
sparse_coo: Layout
sparse_csr: Layout
sparse_csc: Layout

def memory_format_named(name: str) -> MemoryFormat: ...
def layout_named(name: str) -> Layout: ...
def check_layout(function: str, layout: object, refusal: Exception | None = None) -> None: ...
