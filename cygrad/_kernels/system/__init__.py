"""What the machine gives: memory, threads, instruction sets. Knows nothing of arrays."""
