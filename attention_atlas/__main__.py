"""Open Attention Atlas in a browser, from wherever it is installed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from viz_core.runtime.extras import require

_HERE = Path(__file__).resolve().parent


def door() -> Path:
    """app.py: in a wheel beside this file, in a checkout one folder up."""
    return next(path for path in (_HERE / "app.py", _HERE.parent / "app.py") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser("attention-atlas", "%(prog)s [options of `streamlit run`]", __doc__)
    parser.epilog = (
        "For example: %(prog)s --server.port 8600. Heard by this machine alone unless --server.address says more."
    )
    _, options = parser.parse_known_args()
    try:
        require("app")
    except ImportError as error:
        sys.exit(f"The app needs more than the library does: {error}")
    # Heard by this machine alone, as `make run` is: Streamlit would let in whoever is on the network.
    os.environ.setdefault("STREAMLIT_SERVER_ADDRESS", "localhost")
    from streamlit.web.cli import main as streamlit

    streamlit(["run", str(door()), *options])


if __name__ == "__main__":
    main()
