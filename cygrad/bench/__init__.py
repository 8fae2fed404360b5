"""`python -m cygrad bench`: operators and whole programs against NumPy always, and against its peers where they are installed.

Nothing of the package imports it but the command line, so it costs an import nothing.
"""
