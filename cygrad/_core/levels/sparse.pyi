from typing import Any, final

from cygrad._core.levels.fronts import Front

@final
class Sparse(Front):
    pattern: Any
    def around(self, inner: Any) -> Any: ...

def sparse_tensor(values: Any, pattern: Any) -> Any: ...
def sparse_part(tensor: object) -> Any: ...       # a Sparse, or None
def replace_sparse(tensor: Any, source: Any) -> Any: ...
