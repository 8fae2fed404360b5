"""Writers of the pages of the API, and the command that writes all files that are made from the declarations."""
