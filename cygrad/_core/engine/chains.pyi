"""Types of the compiled module, which is for the engine only."""

from typing import final

@final
class Chain: ...
