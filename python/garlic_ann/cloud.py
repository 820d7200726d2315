"""Files of buckets: data, index files and sharded indexes in S3, Google Cloud Storage or Azure.

``download`` and ``upload`` copy between a bucket and this machine; everything else works with local files. They need the package
``obstore`` (``pip install garlic-ann[cloud]``), which is the ``object_store`` library of Apache Arrow.

A URL names a bucket and what is in it: ``s3://bucket/folder``, ``gs://...``, ``az://...`` or ``file:///...``. Keys, region and
endpoint come from the usual environment variables (``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``), or are given as
options.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from ._garlic import FormatError
from .sharded import _manifest
from .sharded._manifest import Segment

__all__ = ["download", "upload"]

# Where the manifest of a folder came from, so that an upload knows whether someone else has changed it.
_ORIGIN = ".origin.json"


def download(url: str, path: str | os.PathLike[str], **options: Any) -> list[str]:
    """Copies an object to the file ``path``, or everything below a URL to the folder ``path``. Returns the names of what was copied.

    Files appear under their names when they are complete. Of a sharded index only files that are missing or damaged here are
    copied. Their sums are checked, and the manifest comes last.

    Parameters
    ----------
    url
        An object, such as an index file, or a folder: of data, or of a sharded index.
    path
        The file or the folder.
    options
        Options of the store, such as ``region="eu-central-1"`` or ``skip_signature=True``.
    """
    remote = _Remote(url, options)
    names = remote.names()
    if not names:
        _fetch(remote, "", os.fspath(path))
        return [os.path.basename(remote.url)]
    os.makedirs(path, exist_ok=True)
    if _manifest.NAME in names:
        return _download_sharded(remote, os.path.abspath(path))
    for name in names:
        target = os.path.join(path, *PurePosixPath(name).parts)
        if not os.path.abspath(target).startswith(os.path.abspath(path) + os.sep):
            raise ValueError(f"{remote.url}/{name}: this name leads out of the folder")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _fetch(remote, name, target)
    return names


def upload(path: str | os.PathLike[str], url: str, *, replace: bool = False, **options: Any) -> list[str]:
    """Copies the file ``path``, or everything in the folder ``path``, to a URL. Returns the names of what was copied.

    Of a sharded index only files that the bucket does not have are copied, and the manifest comes last: until then the bucket has
    the old index. If the manifest of the bucket is not the one that this folder was downloaded with or uploaded as, someone else
    has changed the index: that is an error, unless ``replace`` is true. Of two uploads at once the second one fails.
    """
    remote = _Remote(url, options)
    if os.path.isfile(path):
        remote.put("", os.fspath(path))
        return [os.path.basename(remote.url)]
    if os.path.exists(os.path.join(path, _manifest.NAME)):
        return _upload_sharded(os.path.abspath(path), remote, replace)
    found = [os.path.join(folder, name) for folder, _, names in os.walk(path, onerror=_raise) for name in names]
    if not found:
        raise FileNotFoundError(f"{os.fspath(path)}: there is no such file, nor a folder with files")
    names = sorted(os.path.relpath(file, path) for file in found if not os.path.basename(file).startswith("."))
    for name in names:
        remote.put(name.replace(os.sep, "/"), os.path.join(path, name))
    return names


def _download_sharded(remote: _Remote, folder: str) -> list[str]:
    data, tag = remote.manifest()
    manifest, _ = _manifest.parse(data, remote.at(_manifest.NAME))
    copied = []
    for segment in manifest.segments():
        if not _is_here(folder, segment):
            _fetch(remote, segment.file, os.path.join(folder, segment.file), segment)
            copied.append(segment.file)
    _manifest.write(folder, manifest)
    _remember(folder, remote.url, tag)
    return [*copied, _manifest.NAME]


def _is_here(folder: str, segment: Segment) -> bool:
    """Whether a folder has a file, every byte compared."""
    place = os.path.join(folder, segment.file)
    has_size = os.path.exists(place) and os.path.getsize(place) == segment.size
    return has_size and _manifest.describe(folder, segment.file, segment.points) == segment


def _sums(data: bytes, place: str) -> dict[str, str]:
    """The sums of the files that a manifest names; of one that is damaged, or of none, nothing is known."""
    try:
        return {segment.file: segment.sha256 for segment in _manifest.parse(data, place)[0].segments()}
    except FormatError:
        return {}


def _upload_sharded(folder: str, remote: _Remote, replace: bool) -> list[str]:
    manifest, data = _manifest.read(folder)
    _manifest.check_files(folder, manifest)
    there, tag = remote.manifest(missing=True)
    if there == data:
        _remember(folder, remote.url, tag)
        return []
    if tag is not None and not replace and _origin(folder) != {"url": remote.url, "tag": tag}:
        raise RuntimeError(_changed(remote))
    sizes, sums = remote.sizes(), _sums(there, remote.at(_manifest.NAME))
    copied = [
        segment.file
        for segment in manifest.segments()
        # Files that the bucket's manifest does not name are of an upload that was stopped.
        if sizes.get(segment.file) != segment.size or sums.get(segment.file, segment.sha256) != segment.sha256
    ]
    for name in copied:
        remote.put(name, os.path.join(folder, name))
    tag = remote.put_manifest(data, tag)
    _remember(folder, remote.url, tag)
    return [*copied, _manifest.NAME]


def _changed(remote: _Remote) -> str:
    return (
        f"{remote.at(_manifest.NAME)}: the index was changed by someone else; download it and change it again, or use replace=True"
    )


def _origin(folder: str) -> dict[str, str] | None:
    try:
        with open(os.path.join(folder, _ORIGIN), encoding="utf-8") as file:
            origin: dict[str, str] = json.load(file)
            return origin
    except (FileNotFoundError, ValueError):
        return None


def _remember(folder: str, url: str, tag: str | None) -> None:
    _manifest.write_file(os.path.join(folder, _ORIGIN), json.dumps({"url": url, "tag": tag}).encode())


def _fetch(remote: _Remote, name: str, target: str, segment: Segment | None = None) -> None:
    """Copies an object to a file that appears when it is complete and has the sum of ``segment``."""
    folder, base = os.path.split(os.path.abspath(target))
    digest, size = hashlib.sha256(), 0
    descriptor, temporary = tempfile.mkstemp(prefix=f".{base}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in remote.read(name):
                file.write(part)
                digest.update(part)
                size += len(part)
            file.flush()
            os.fsync(file.fileno())
        if segment is not None and (size, digest.hexdigest()) != (segment.size, segment.sha256):
            raise FormatError(f"{remote.at(name)}: this file of the sharded index is damaged: it is not what was uploaded")
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _raise(error: OSError) -> None:
    raise error


class _Remote:
    """A place in a bucket."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise ImportError("buckets are reached with obstore; install it with `pip install garlic-ann[cloud]`") from None
        if "://" not in url:
            raise ValueError(f"{url}: is no URL; one such as s3://bucket/folder is needed")
        self.url = url.rstrip("/")
        self._obstore: Any = obstore
        # The store is that of the parent, so that the URL may name an object or a folder.
        parent, self._base = self.url.rsplit("/", 1) if self.url.count("/") > 2 else (self.url, "")
        self._store: Any = from_url(parent, **options)

    def at(self, name: str) -> str:
        """What errors call an object."""
        return f"{self.url}/{name}" if name else self.url

    def _key(self, name: str) -> str:
        return "/".join(part for part in (self._base, name) if part)

    def sizes(self) -> dict[str, int]:
        """Names and sizes of all objects below."""
        start = self._base + "/" if self._base else ""
        with self._named(""):
            listed = [item for page in self._obstore.list(self._store, prefix=self._base or None) for item in page]
        below = [item for item in listed if item["path"].startswith(start) and item["path"] != start]
        return {item["path"][len(start) :]: item["size"] for item in below}

    def names(self) -> list[str]:
        """Names of all objects below; none if the URL names an object."""
        return sorted(self.sizes())

    def read(self, name: str) -> Iterator[bytes]:
        """The bytes of an object, some at a time."""
        with self._named(name):
            for part in self._obstore.get(self._store, self._key(name)).stream(min_chunk_size=1 << 20):
                yield bytes(part)

    def manifest(self, missing: bool = False) -> tuple[bytes, str | None]:
        """The manifest and its tag; none if it may be missing."""
        try:
            with self._named(_manifest.NAME):
                found = self._obstore.get(self._store, self._key(_manifest.NAME))
                return bytes(found.bytes()), found.meta["e_tag"]
        except FileNotFoundError:
            if missing:
                return b"", None
            raise

    def put(self, name: str, path: str) -> None:
        """Writes an object, in parts if it is large. It appears when it is complete."""
        with open(path, "rb") as file, self._named(name):
            self._obstore.put(self._store, self._key(name), file)

    def put_manifest(self, data: bytes, tag: str | None) -> str | None:
        """Replaces the manifest if it still has this tag, or if there still is none."""
        mode: Any = "create" if tag is None else {"e_tag": tag}
        errors = self._obstore.exceptions
        try:
            with self._named(_manifest.NAME):
                done: dict[str, str | None] = self._obstore.put(self._store, self._key(_manifest.NAME), data, mode=mode)
                return done["e_tag"]
        except (errors.AlreadyExistsError, errors.PreconditionError):
            raise RuntimeError(_changed(self)) from None

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Errors of the store as those of files, with the URL and without the answer's text."""
        errors = self._obstore.exceptions
        try:
            yield
        except (errors.AlreadyExistsError, errors.PreconditionError):
            raise
        except (errors.BaseError, FileNotFoundError, PermissionError) as error:
            text = " ".join(str(error).split())
            # Lists have no kinds of errors of their own.
            if isinstance(error, (errors.NotFoundError, FileNotFoundError)) or " 404 " in text:
                raise FileNotFoundError(f"{self.at(name)}: there is no such object, or no such bucket") from None
            if isinstance(error, (errors.PermissionDeniedError, errors.UnauthenticatedError, PermissionError)) or " 403 " in text:
                raise PermissionError(f"{self.at(name)}: the store does not permit this with these keys") from None
            raise OSError(f"{self.at(name)}: {text[:300]}") from None
