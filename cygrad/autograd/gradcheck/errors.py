"""The error of a failed check."""


class GradcheckError(RuntimeError):
    """The error of `gradcheck` and `gradgradcheck` for gradients that fail the check."""
