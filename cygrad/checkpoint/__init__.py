"""Memory for time: regions, sequences and loops that are computed again during backward.

The names are as in `torch.utils.checkpoint`, and `checkpoint_loop` for long time loops.
"""

from cygrad.checkpoint.loop import checkpoint_loop as checkpoint_loop
from cygrad.checkpoint.reentrant import CheckpointFunction as CheckpointFunction
from cygrad.checkpoint.reentrant import check_backward_validity as check_backward_validity
from cygrad.checkpoint.reentrant import detach_variable as detach_variable
from cygrad.checkpoint.region import CheckpointError as CheckpointError
from cygrad.checkpoint.region import checkpoint as checkpoint
from cygrad.checkpoint.region import checkpoint_sequential as checkpoint_sequential
from cygrad.checkpoint.region import noop_context_fn as noop_context_fn
from cygrad.checkpoint.region import set_checkpoint_debug_enabled as set_checkpoint_debug_enabled
from cygrad.checkpoint.region import set_checkpoint_early_stop as set_checkpoint_early_stop
