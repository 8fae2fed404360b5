"""The memory that this process may use, as the allocator asks for it: no Python code runs. Needs the GIL."""

cdef size_t granted_memory() noexcept           # bytes of the machine, or of the tightest cgroup
cdef size_t attainable_memory() noexcept        # and the swap space: the most that a single request can get
cdef bint runs_short(size_t nbytes) noexcept    # whether so many bytes more would leave less than a sixteenth of either free
