"""Calls that run upwards (see upward.pxd for the contract)."""


cdef class Upward:
    """Functions of higher rooms."""


cdef Upward upward = Upward()


def fill(**calls):
    """Set the functions of Python."""
    for name, answer in calls.items():
        setattr(upward, name, answer)
