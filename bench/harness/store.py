"""The cache of built indexes: for each variant a folder, with what its build cost beside it."""

import json
import re
import shutil

from harness.dataset import cache_dir


class Slot:
    """The place of one built variant of one rival on one data set."""

    def __init__(self, data_set, data_file, rival, variant, version):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{rival}-{variant}")
        self.folder = cache_dir() / data_set / name
        stat = data_file.stat()
        self.identity = {"data": str(data_file), "bytes": stat.st_size, "modified": stat.st_mtime_ns,
                         "variant": variant, "version": version}

    @property
    def index(self):
        """Where the rival writes; a file or a folder, as it likes."""
        return self.folder / "index"

    def built(self):
        """What is known of the build, or None when there is none for this data, variant and version."""
        try:
            note = json.loads((self.folder / "build.json").read_text())
        except (OSError, ValueError):
            return None
        return note if note.get("identity") == self.identity else None

    def clear(self):
        """Makes an empty folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def finish(self, **facts):
        """Records a finished build; only after this it counts as built."""
        note = {"identity": self.identity, **facts, "bytes": self.bytes()}
        (self.folder / "build.json").write_text(json.dumps(note, indent=1) + "\n")
        return note

    def bytes(self):
        """Size of what the rival wrote."""
        if self.index.is_dir():
            return sum(p.stat().st_size for p in self.index.rglob("*") if p.is_file())
        return self.index.stat().st_size
