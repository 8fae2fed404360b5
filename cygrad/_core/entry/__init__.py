"""Where calls come in: Python's operators, functions made from rows, and the door for what is special.

Promises that a call without special tensors costs no Python frame.
Knows all operators; nothing below calls it but by `special_elementwise`.
"""
