"""Where and when a memory was written while several version counters count its changes: C only."""
