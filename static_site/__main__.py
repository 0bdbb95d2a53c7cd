"""Build the site without a server: python -m static_site [--out DIR] [--app ADDRESS]."""

from __future__ import annotations

import argparse
from pathlib import Path

from static_site.build import build_site

BUILD = Path(__file__).resolve().parents[1] / "build"


def main() -> None:
    """Build the site and print where it is and how large."""
    parser = argparse.ArgumentParser(prog="python -m static_site", description=__doc__)
    parser.add_argument("--out", type=Path, default=BUILD / "site", help="the folder; it is emptied first")
    parser.add_argument("--cache", type=Path, default=BUILD / "cache", help="where downloaded packages are kept")
    parser.add_argument("--app", default="", help="address of the app, to which the pages link")
    options = parser.parse_args()
    files = build_site(options.out, options.cache, options.app)
    size = sum(len(data) for data in files.contents.values())
    print(f"{options.out}: {len(files.contents)} files, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
