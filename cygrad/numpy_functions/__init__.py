"""NumPy's functions, called on tensors.

A function that has a row here is computed by operators: its results are tensors, and have a history where an argument has. Questions
about tensors (shapes, dtypes, whether they are equal) are answered. Functions that make an array, or a file, do so by way of
`Tensor.numpy`, so it refuses a tensor that requires a gradient. Every other function raises: nothing is computed blindly, nothing loses its
history unseen.
"""
