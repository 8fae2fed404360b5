"""How cygrad is built: files made of others, the C compiler, Cython, the requirements of a build, and setuptools' command that puts them
together.

Only `setup.py` imports this; nothing of it is installed.
"""

EPOCH = "315532800"     # how old files in archives are: of 1980, the first year that a wheel can name
