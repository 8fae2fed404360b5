# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyCygrad(PythonPackage):
    """Tensors with torch's API and reverse-mode gradients on the CPU, compiled
    with Cython; needs nothing but NumPy."""

    homepage = "https://github.com/cygrad/cygrad"
    git = "https://github.com/cygrad/cygrad.git"

    license("MIT")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    variant("openmp", default=True, description="Compute with threads")

    depends_on("c", type="build")
    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-cython@3.3:", type="build")
    depends_on("py-numpy@2.0:", type=("build", "link", "run"))

    # The loops are compiled for several levels of x86-64, which GCC has from 12 on.
    conflicts("%gcc@:11", msg="cygrad needs GCC 12 or newer")
    conflicts("+openmp", when="%apple-clang", msg="Apple's Clang has no OpenMP")

    import_modules = ["cygrad", "cygrad.func", "cygrad.linalg", "cygrad.autograd"]

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("CYGRAD_OPENMP", "1" if self.spec.satisfies("+openmp") else "0")
