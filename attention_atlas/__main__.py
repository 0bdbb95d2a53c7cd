"""The command `attention-atlas`: serve the installed app and open it in a browser, or convert weights."""

from __future__ import annotations

import argparse
import os
import runpy
import shlex
import socket
import sys
import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode
from urllib.request import urlopen

from viz_core.runtime.packages import require

_HERE = Path(__file__).resolve().parent


def app_path() -> Path:
    """Path of app.py: in a wheel beside this file, in a checkout one folder up."""
    return next(path for path in (_HERE / "app.py", _HERE.parent / "app.py") if path.is_file())


def main() -> None:
    usage = "%(prog)s [open FOLDER | convert FOLDER [OUT] [--overwrite]] [options of `streamlit run`]"
    parser = argparse.ArgumentParser("attention-atlas", usage, __doc__)
    parser.epilog = (
        "For example: %(prog)s open ./my-model --server.port 8600. `open` shows a model of this computer in the model "
        "lab. `convert` writes a folder's pytorch_model.bin as safetensors, without running code of the file, into the "
        "folder or into OUT. Listens on localhost unless --server.address says otherwise."
    )
    _, options = parser.parse_known_args()
    lab = None
    command = options[0] if options and not options[0].startswith("-") else ""
    if command not in ("", "open", "convert"):
        parser.error(f"expected the command open or convert, or only options, got {command!r}")
    if command:
        if len(options) < 2 or not Path(options[1]).expanduser().is_dir():
            found = repr(options[1]) if len(options) > 1 else "nothing"
            parser.error(f"{command}: expected a folder with a model, got {found}")
        if command == "convert":
            return _convert(parser, Path(options[1]), options[2:])
        lab, options = lab_address(Path(options[1])), options[2:]
    try:
        require("app")
    except ImportError as error:
        sys.exit(f"The app needs more than the library does: {error}")
    # As `make run` does: Streamlit by itself would listen on every network.
    os.environ.setdefault("STREAMLIT_SERVER_ADDRESS", "localhost")
    if lab is not None:
        port = _port(options)
        options = [*options, "--server.port", port, "--server.headless", "true"]
        server = f"http://localhost:{port}"
        Thread(target=_open_when_ready, args=(server, f"{server}/{lab}"), daemon=True).start()
    sys.argv = ["streamlit", "run", str(app_path()), *options]
    runpy.run_module("streamlit", run_name="__main__")


def _convert(parser: argparse.ArgumentParser, folder: Path, rest: list[str]) -> None:
    """Convert the weights of a folder, with a line for each file."""
    overwrite = "--overwrite" in rest
    out = [each for each in rest if each != "--overwrite"]
    if len(out) > 1 or any(each.startswith("-") for each in out):
        parser.error(f"convert: expected at most a folder to write to and --overwrite, got {' '.join(rest)!r}")
    from viz_core.hub.store import HubError
    from viz_core.hub.store.convert import convert

    def progress(file: str, number: int, count: int) -> None:
        print(f"{number} of {count}: {file}", flush=True)

    try:
        written = convert(folder, Path(out[0]) if out else None, overwrite=overwrite, progress=progress)
    except HubError as error:
        sys.exit(f"attention-atlas convert: {error}")
    print(f"The safetensors are in {written}. See the model: attention-atlas open {shlex.quote(str(written))}")


def lab_address(folder: Path) -> str:
    """Address of the model lab, below that of the server, with the model of a folder open."""
    return f"model-lab?{urlencode({'ml-source': 'folder', 'ml-folder': str(folder.expanduser().resolve())})}"


def _port(options: list[str]) -> str:
    """The port that the options name, or a free one."""
    for i, option in enumerate(options):
        name, _, value = option.partition("=")
        if name == "--server.port":
            return value or options[i + 1]
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return str(probe.getsockname()[1])


def _open_when_ready(server: str, address: str) -> None:
    """Open the address in a browser once the server answers, within a minute."""
    print(f"The model opens at {address}")
    for _ in range(120):
        with suppress(OSError), urlopen(f"{server}/_stcore/health", timeout=1):
            webbrowser.open(address)
            return
        time.sleep(0.5)


if __name__ == "__main__":
    main()
