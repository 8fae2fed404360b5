"""Signal processing: `cygrad.signal.windows`, the window functions."""

from cygrad.signal import windows as windows
