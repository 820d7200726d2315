"""`python -m paper.report OUT [--docs DIR]`: makes the report of the results under OUT."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from paper.report.build import make_report


def publish(out: Path, docs: Path) -> None:
    """Copies the report and what it links to, so that the copy stands by itself."""
    if docs.resolve() == out.resolve():
        return
    docs.mkdir(parents=True, exist_ok=True)
    for name in ("report.html", "summary.md", "report.json"):
        shutil.copyfile(out / name, docs / name)
    for folder in ("figures", "pictures", "results/diagnostics"):
        if (docs / folder).is_dir():
            shutil.rmtree(docs / folder)
        if (out / folder).is_dir():
            shutil.copytree(out / folder, docs / folder)


def main(arguments: list[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m paper.report", description=__doc__)
    parser.add_argument("out", type=Path, help="folder of a run: results/, pictures/, run.json")
    parser.add_argument("--docs", type=Path, help="folder to copy the finished report to")
    chosen = parser.parse_args(arguments)
    if not chosen.out.is_dir():
        print(f"{chosen.out} is not a folder: run the experiments first", file=sys.stderr)
        return 1
    written = make_report(chosen.out)
    if chosen.docs:
        publish(chosen.out, chosen.docs)
    print(f"{chosen.out / 'report.html'}, {len(written) - 3} figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
