"""The machine: memory, threads, instruction sets. There are no arrays here."""
