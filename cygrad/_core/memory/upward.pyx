"""Calls that run upwards (see upward.pxd for the contract)."""


cdef class Upward:
    """What higher rooms bring."""


cdef Upward upward = Upward()


def fill(**calls):
    """Bring what Python answers."""
    for name, answer in calls.items():
        setattr(upward, name, answer)
