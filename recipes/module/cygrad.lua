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
`python -m cygrad info` shows its threads and libraries. Threads: OMP_NUM_THREADS, else the processors of the job.
]])

prereq(atleast("python", python))
prepend_path("PYTHONPATH", pathJoin(root, "lib", "python" .. python, "site-packages"))
