-- Lmod. Install with `pip install --prefix=<root>/<version> cygrad`; this file is <modules>/cygrad/<version>.lua.
local version = "0.2.0"
local root = pathJoin("/opt/cygrad", version)
local python = "3.13"

whatis("Name: cygrad")
whatis("Version: " .. version)
whatis("URL: https://github.com/cygrad/cygrad")
whatis("Description: torch's tensors and gradients on the CPU, needing NumPy only")
help([[
Tensors with torch's API and reverse-mode gradients on the CPU, for Python ]] .. python .. [[.
`python -m cygrad info` tells what it computes with. Threads: OMP_NUM_THREADS, else what the job may use.
]])

prereq(atleast("python", python))
prepend_path("PYTHONPATH", pathJoin(root, "lib", "python" .. python, "site-packages"))
