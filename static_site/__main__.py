"""Build the site without a server: python -m static_site [--out DIR] [--app ADDRESS]."""

import argparse
from pathlib import Path

from static_site.build import ROOT, build_site

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m static_site", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="the folder; it is emptied first")
    parser.add_argument("--app", default="", help="address of the app, to which the pages link")
    options = parser.parse_args()
    files = build_site(options.out, options.app)
    size = sum(len(data) for data in files.contents.values())
    print(f"{options.out}: {len(files.contents)} files, {size / 1e6:.1f} MB")
