"""The language of declarations: the decorator, the words for tangents and batches, the reading of arguments, formulas by tiles."""
