"""The command `attention-atlas`: serve the installed app and open it in a browser."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

from viz_core.runtime.extras import require

_HERE = Path(__file__).resolve().parent


def app_path() -> Path:
    """Path of app.py: in a wheel beside this file, in a checkout one folder up."""
    return next(path for path in (_HERE / "app.py", _HERE.parent / "app.py") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser("attention-atlas", "%(prog)s [options of `streamlit run`]", __doc__)
    parser.epilog = (
        "For example: %(prog)s --server.port 8600. Listens on localhost unless --server.address says otherwise."
    )
    _, options = parser.parse_known_args()
    try:
        require("app")
    except ImportError as error:
        sys.exit(f"The app needs more than the library does: {error}")
    # As `make run` does: Streamlit by itself would listen on every network.
    os.environ.setdefault("STREAMLIT_SERVER_ADDRESS", "localhost")
    sys.argv = ["streamlit", "run", str(app_path()), *options]
    runpy.run_module("streamlit", run_name="__main__")


if __name__ == "__main__":
    main()
