"""The token of a tape: a tensor of no elements that each message of a thread takes and returns, so that a backward reaches all of them."""

from __future__ import annotations

import threading
from typing import Any


class _Thread(threading.local):
    token: Any = None       # None outside of tapes


thread = _Thread()
