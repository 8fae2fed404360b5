"""What pip and others build with: setuptools, once it is there with the rest of what a build needs."""

from building.requirements import exit_unless_met

exit_unless_met()

from setuptools.build_meta import *  # noqa: E402, F403
