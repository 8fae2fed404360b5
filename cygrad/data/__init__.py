"""Data: factories of tensors, nested Python numbers read as arrays, random samples, limits of dtypes.

Promises that numbers become elements by one conversion, with torch's errors.
Uses the core; operators and the public modules use it.
"""
