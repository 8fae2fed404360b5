from typing import Any

class Front:
    inner: Any
