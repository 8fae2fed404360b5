"""Broadcasting, blocks and threads around the generated loops, once per family, without the GIL. Knows arrays as addresses and strides."""
