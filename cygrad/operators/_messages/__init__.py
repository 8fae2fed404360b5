"""Messages between processes: their two sides, their transposes, and the MPI calls. The families `transfers` and others record them."""
