"""What the figures were measured on."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "h5py", "faiss-cpu", "hnswlib", "scann", "lorann", "usearch", "rabitqlib", "pyvsag")


def machine():
    """Processor, cores, memory, kernel and how busy the machine was."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_average": list(os.getloadavg()),
        "simd": _simd(),
    }


def _cpuinfo(field):
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(field):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def _cpu():
    return _cpuinfo("model name") or platform.processor() or "unknown"


def _simd():
    flags = _cpuinfo("flags").split()
    return [f for f in ("sse4_2", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx512vbmi") if f in flags]


def versions():
    """Versions of the interpreter and of the packages; None for one that is not installed."""
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found
