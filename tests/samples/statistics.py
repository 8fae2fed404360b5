"""Variance, standard deviation, means."""


import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "mode": [sample(lambda x: x.mode(), (2, 3), numpy=lambda a: (a.min(-1), a.argmin(-1)), kinds="f"),
             sample(lambda x: x.mode(0, keepdim=True), (3, 2)), sample(lambda x: x.mode(), ())],
    "nanmean": [sample(lambda x: x.nanmean(0), (2, 3), numpy=lambda a: a.mean(0), kinds="f")],
    "var": [sample(lambda x: x.var(), (2, 3)), sample(lambda x: x.var(1, correction=0, keepdim=True), (2, 3))],
    "std": [sample(lambda x: x.std(), (2, 3)), sample(lambda x: x.std((0, 2)), (2, 3, 2))],
    "var_mean": [sample(lambda x: cg.var_mean(x, 1), (2, 3)), sample(lambda x: cg.var_mean(x, (0, 2), keepdim=True)[::-1], (2, 3, 2)),
                 sample(lambda x: cg.var_mean(x)[1], (2, 3))],
    "std_mean": [sample(lambda x: cg.std_mean(x, correction=0), (2, 3)), sample(lambda x: cg.std_mean(x, 0), (3, 2)),
                 sample(lambda x: cg.std_mean(x)[0], (3,))],
}
