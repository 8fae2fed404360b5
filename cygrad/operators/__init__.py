"""The operators, a module a family; how one is declared: `declaration`."""
