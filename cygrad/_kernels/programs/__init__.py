"""Broadcasting, blocks and threads around the generated loops, once per family, without the GIL. Arrays are addresses and strides."""
