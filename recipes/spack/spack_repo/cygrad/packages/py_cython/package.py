# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.packages.py_cython.package import PyCython as BuiltinPyCython

from spack.package import *


class PyCython(BuiltinPyCython):
    __doc__ = BuiltinPyCython.__doc__

    version("3.3.1", sha256="e0e45989e821bef6aa9ae15c7d583ab5e055f7406c4b3624e49e06d24e90375a")
