"""Where each operator is declared: written by `python -m cygrad.operators`, read when a name is first asked for."""

FUNCTIONS: dict[str, str] = {
    "cygrad.operators.diagonals":
        "tril triu diagonal diag_embed diag diagflat diagonal_scatter select_scatter slice_scatter",
    "cygrad.operators.rearranging":
        "tile repeat_interleave flip fliplr flipud roll",
}

METHODS: dict[str, str] = {
    "cygrad.operators.diagonals":
        "tril tril_ triu triu_ diagonal diag_embed diag diagflat diagonal_scatter select_scatter slice_scatter",
    "cygrad.operators.rearranging":
        "repeat tile repeat_interleave flip fliplr flipud roll",
    "cygrad.operators.windows":
        "unfold _fold",
}

PROPERTIES: dict[str, str] = {
}

RULES: dict[str, str] = {
    "cygrad.operators.diagonals":
        "tril triu diagonal diag_embed diagonal_scatter select_scatter slice_scatter",
    "cygrad.operators.rearranging":
        "repeat flip roll",
    "cygrad.operators.windows":
        "unfold fold",
}
