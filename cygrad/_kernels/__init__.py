"""Kernels: drivers in Cython around inner loops generated from the tables; threads, instruction sets, memory."""
