"""Where calls come in: Python's operators, functions made from rows, and the door for special tensors.

Promises that a call without special tensors costs no Python frame.
Uses all operators; lower rooms call it by `special_elementwise` alone.
"""
