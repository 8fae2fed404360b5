"""What a failed check raises."""


class GradcheckError(RuntimeError):
    """What `gradcheck` and `gradgradcheck` raise when gradients fail the check."""
