#%Module1.0
# Environment Modules. Install with `pip install --prefix=<root>/<version> cygrad`, and put this file at <modules>/cygrad/<version>.
set version 0.2.0
set root    /opt/cygrad/$version
set python  3.13

proc ModulesHelp { } {
    puts stderr "Tensors with torch's API and reverse-mode gradients on the CPU; `python -m cygrad info` shows its threads and libraries."
    puts stderr "Threads: OMP_NUM_THREADS, else the processors of the job."
}

module-whatis "cygrad $version: torch's tensors and gradients on the CPU, needing NumPy only (https://github.com/cygrad/cygrad)"
prereq        python
prepend-path  PYTHONPATH $root/lib/python$python/site-packages
