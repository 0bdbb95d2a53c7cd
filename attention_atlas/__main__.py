"""Open Attention Atlas in a browser, from wherever it is installed."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def door() -> Path:
    """app.py: in a wheel beside this file, in a checkout one folder up."""
    return next(path for path in (_HERE / "app.py", _HERE.parent / "app.py") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser("attention-atlas", "%(prog)s [options of `streamlit run`]", __doc__)
    parser.epilog = "For example: %(prog)s --server.port 8600 --server.headless true"
    _, options = parser.parse_known_args()
    if importlib.util.find_spec("streamlit") is None:
        sys.exit("The app needs more than the library does: pip install 'attention-atlas[app]'")
    from streamlit.web.cli import main as streamlit

    streamlit(["run", str(door()), *options])


if __name__ == "__main__":
    main()
