"""Functions captured once and replayed without Python: `cygrad.compile`.

`compiled` has the decorator and its calls, `observing` finds the values outside of a function that its code can name.
"""
