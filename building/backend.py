"""The build backend of pip and others: setuptools, once it and the other requirements are there."""

from building.requirements import exit_unless_met

exit_unless_met()

from setuptools.build_meta import *  # noqa: E402, F403
