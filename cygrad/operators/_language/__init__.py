"""What operators are declared in: the decorator, the words for tangents and batches, the reading of arguments, formulas by tiles."""
