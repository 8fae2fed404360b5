cpdef tuple plain_weights(tuple outputs, tuple gradients)
