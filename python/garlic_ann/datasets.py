"""The public data sets of ANN-Benchmarks, downloaded once into the data directory.

The directory is ``$GARLIC_DATA``, or ``~/.cache/garlic/datasets`` if that is not set. The program ``garlic`` looks for names
there, too. An interrupted download continues where it stopped. A download of another format, such as the login page of a
network, or of too many bytes is refused. The SHA-256 of a file is written beside it, and :func:`check` compares with it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import struct
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._progress import Progress

__all__ = ["MAX_BYTES", "NAMES", "check", "directory", "get", "labels", "load"]

BASE = "https://ann-benchmarks.com/"

NAMES = (
    "deep-image-96-angular",
    "fashion-mnist-784-euclidean",
    "gist-960-euclidean",
    "glove-25-angular",
    "glove-50-angular",
    "glove-100-angular",
    "glove-200-angular",
    "lastfm-64-dot",
    "mnist-784-euclidean",
    "nytimes-256-angular",
    "sift-128-euclidean",
)

# Published sizes in MiB; a download may be twice as large.
_MIB = {
    "deep-image-96-angular": 3687,
    "fashion-mnist-784-euclidean": 217,
    "gist-960-euclidean": 3687,
    "glove-25-angular": 121,
    "glove-50-angular": 235,
    "glove-100-angular": 463,
    "glove-200-angular": 918,
    "lastfm-64-dot": 135,
    "mnist-784-euclidean": 217,
    "nytimes-256-angular": 301,
    "sift-128-euclidean": 501,
}

MAX_BYTES = 16 << 30
"""Default limit in bytes of a set that is not in ``NAMES``."""

# How files of each format begin.
_HDF5, _GZIP = ("HDF5", b"\x89HDF\r\n\x1a\n"), ("gzip", b"\x1f\x8b")

# Labels are a few tens of kilobytes.
_LABEL_BYTES = 1 << 20

# Where the labels are, and the MD5 that their publishers give.
_LABELS = {
    "mnist": (
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": (
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
}

_PIECE = 1 << 18


def directory() -> Path:
    """The data directory; it need not exist yet."""
    given = os.environ.get("GARLIC_DATA")
    return Path(given) if given else Path.home() / ".cache" / "garlic" / "datasets"


def get(
    name: str,
    *,
    url: str | None = None,
    sha256: str | None = None,
    into: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
    max_bytes: int | None = None,
) -> Path:
    """The file of a data set, downloaded unless it exists.

    ``url`` is for sets that are not in ``NAMES``. Raises ``OSError`` if the download fails; the next call continues it.
    Raises ``ValueError`` and deletes the download if it is not an HDF5 file, has another checksum than ``sha256``, or is
    larger than ``max_bytes``. The default limit is twice the published size, and ``MAX_BYTES`` for other sets.
    """
    if url is None:
        if name not in NAMES:
            raise ValueError(f"there is no data set {name!r}; the names are: {', '.join(NAMES)}")
        url = f"{BASE}{name}.hdf5"
    path = Path(into or directory()) / f"{name}.hdf5"
    if path.exists():
        if not _begins_with(path, _HDF5):
            raise ValueError(f"{path}: is no HDF5 file; delete it to download it again")
        if sha256 is not None and _digest(path, "sha256") != sha256:
            raise ValueError(f"{path}: does not have the checksum {sha256}; delete it to download it again")
        return path
    with Progress(progress) as report:
        _download(url, path, _HDF5, _limit(name, max_bytes), "sha256", sha256, report)
    return path


def _limit(name: str, given: int | None) -> int:
    """Most bytes of a data set."""
    if given is not None:
        return given
    return 2 * _MIB[name] << 20 if name in _MIB else MAX_BYTES


def check(name: str, into: str | os.PathLike[str] | None = None) -> bool:
    """Whether the file of a data set still has the checksum that it came with."""
    path = Path(into or directory()) / f"{name}.hdf5"
    return _sidecar(path).read_text().split()[0] == _digest(path, "sha256")


def load(name: str, **options: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a data set by name: ``train``, ``test``, ``neighbors``, ``distances``. Needs h5py."""
    import h5py

    with h5py.File(get(name, **options)) as file:
        return {key: file[key][:] for key in file}


def labels(name: str, into: str | os.PathLike[str] | None = None) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Labels of the training and the test images of ``mnist`` or ``fashion-mnist``, in the order of the data sets."""
    if name not in _LABELS:
        raise ValueError(f"there are no labels of {name!r}; there are those of: {', '.join(_LABELS)}")
    base, *sums = _LABELS[name]
    found = []
    for part, md5 in zip(("train", "t10k"), sums):
        path = Path(into or directory()) / f"{name}-{part}-labels.gz"
        if not path.exists():
            _download(f"{base}{part}-labels-idx1-ubyte.gz", path, _GZIP, _LABEL_BYTES, "md5", md5, None)
        found.append(_idx(path))
    return found[0], found[1]


def _idx(path: Path) -> NDArray[np.uint8]:
    """Bytes in the format of the MNIST files: magic, count, values."""
    data = gzip.decompress(path.read_bytes())
    if len(data) < 8 or struct.unpack(">II", data[:8]) != (0x801, len(data) - 8):
        raise ValueError(f"{path}: is no file of labels; delete it to download it again")
    return np.frombuffer(data, np.uint8, offset=8)


class _Unwanted(ValueError):
    """What comes is not what was asked for; nothing of it is kept."""


def _download(
    url: str,
    path: Path,
    format: tuple[str, bytes],
    most: int,
    kind: str,
    wanted: str | None,
    report: Callable[[str, int, int], None] | None,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part, note = path.with_name(path.name + ".part"), path.with_name(path.name + ".part.json")
    try:
        _fetch(url, part, note, format, most, report)
        if not _begins_with(part, format):
            raise _no_file(url, format)
        found = _digest(part, kind)
        if wanted is not None and found != wanted:
            raise _Unwanted(f"{url}: has the checksum {found}, not {wanted}; nothing was kept")
    except urllib.error.HTTPError as error:
        raise OSError(f"{url}: the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise OSError(f"{url}: cannot be reached ({error.reason}); put the file at {path} by hand") from None
    except _Unwanted as error:
        part.unlink(missing_ok=True)
        note.unlink(missing_ok=True)
        raise ValueError(str(error)) from None
    # The checksum first: a file without one is a file that was put there by hand.
    if kind == "sha256":
        _sidecar(path).write_text(f"{found}  {path.name}\n")
    os.replace(part, path)
    note.unlink(missing_ok=True)


def _no_file(url: str, format: tuple[str, bytes]) -> _Unwanted:
    return _Unwanted(
        f"{url}: what comes is no {format[0]} file, perhaps a page of the network or the server; nothing was kept: "
        "open the address in a browser to see"
    )


def _begins_with(path: Path, format: tuple[str, bytes]) -> bool:
    with open(path, "rb") as file:
        return file.read(len(format[1])) == format[1]


def _fetch(
    url: str,
    part: Path,
    note: Path,
    format: tuple[str, bytes],
    most: int,
    report: Callable[[str, int, int], None] | None,
) -> None:
    """Brings `part` to the full length of what `url` names, from what is there of the same version of it."""
    have = part.stat().st_size if part.exists() else 0
    version = None
    if have and note.exists():
        known = json.loads(note.read_text())
        if known.get("url") == url:
            version = known.get("version")
            if version and known.get("length") == have <= most:
                return
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})
    if have and version:
        # The server sends the rest only if it still has the same version, else all of it.
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version)
    too_large = _Unwanted(f"{url}: has more than {most} bytes; nothing was kept: raise max_bytes if that is right")
    with urllib.request.urlopen(request, timeout=60) as answer:
        begins = f"bytes {have}-"
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(begins)
        if answer.status == 206 and not goes_on:
            raise OSError(f"{url}: the server sent another part than was asked for")
        done = have if goes_on else 0
        rest = answer.headers.get("Content-Length")
        length = done + int(rest) if rest is not None else None
        if length is not None and length > most:
            raise too_large
        version = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        note.write_text(json.dumps({"url": url, "version": version, "length": length}))
        with open(part, "ab" if goes_on else "wb") as out:
            while piece := answer.read(_PIECE):
                if done == 0 and not piece.startswith(format[1][: len(piece)]):
                    raise _no_file(url, format)
                done += len(piece)
                if done > most:
                    raise too_large
                out.write(piece)
                if report is not None:
                    report("download", done, length or done)
    if length is not None and done != length:
        raise OSError(f"{url}: ended after {done} of {length} bytes; try again to go on from there")


def _digest(path: Path, kind: str) -> str:
    digest = hashlib.new(kind)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")
