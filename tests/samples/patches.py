"""Windows of several dims."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional

SAMPLES = {
    "take_columns": [
        sample(lambda x: F.unfold(x, (2, 3)), (2, 1, 3, 4)),
        sample(lambda x: F.unfold(x, 2, dilation=(1, 2), padding=1, stride=(2, 1)), (2, 3, 3)),
    ],
    "add_columns": [
        sample(lambda x: F.fold(x, (3, 3), 2), (2, 4, 4)),
        sample(lambda x: F.fold(x, (3, 2), (2, 1), dilation=(2, 1), padding=(1, 0), stride=(2, 1)), (4, 4)),
    ],
}
