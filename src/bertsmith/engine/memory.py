"""How the process's memory is handed out, and how much of it there was."""

import ctypes
import functools
import mmap
import os
import sys

_LARGEST_KEPT_BYTES = 1 << 30
"""Larger blocks, which are few, come from the system and go back to it."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _NEVER = -1, -3, -1
"""Parameters of glibc's `mallopt`, and the value that turns one off."""
_HUGE_PAGE_BYTES = 1 << 21
_ADVISE_HUGE_PAGES = 14
_RESERVED_SHARE = 4
"""One part in this many of the machine's memory is reserved in huge pages; what is not used costs nothing."""


@functools.cache
def keep_freed_memory() -> None:
    """Let the C library keep memory that tensors gave back, for those that follow, in huge pages where there are any.

    By default it returns large blocks to the system and gets fresh ones, whose pages of 4 KiB are faulted in and set to
    zero one by one: in training on a CPU a tenth of the time or more. Where the library is not glibc, nothing changes.
    """
    if sys.platform != "linux" or not hasattr(library := ctypes.CDLL(None), "mallopt"):
        return
    library.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
    library.mallopt(_TRIM_THRESHOLD, _NEVER)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.free.argtypes = (ctypes.c_void_p,)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    size = _LARGEST_KEPT_BYTES - mmap.PAGESIZE
    memory = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    blocks = [library.malloc(size) for _ in range(memory // _RESERVED_SHARE // size)]
    for block in filter(None, blocks):
        first = -(-block // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
        library.madvise(first, (block + size - first) // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES, _ADVISE_HUGE_PAGES)
    for block in filter(None, blocks):
        library.free(block)


def peak_memory_bytes() -> int | None:
    """The most memory that this process ever had resident; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows has no such module.
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return peak if sys.platform == "darwin" else 1024 * peak
