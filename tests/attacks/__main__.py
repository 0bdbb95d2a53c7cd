"""Try every attack with many cases, flood a server, open costly links: `make attacks` writes docs/security.md."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.serving import HOSTED, free_port, running
from tests.attacks import floods, links
from tests.attacks.over_http import send_request

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"
START, END = "<!-- floods: written by `make attacks` -->", "<!-- end of floods -->"


def main() -> int:
    """Return the exit status of pytest, or 1 if others waited or a link cost too much; tables are written anyway."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "attack"]
    command += ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder", *sys.argv[1:]]
    ended = subprocess.run(command, env=os.environ | {"ATTACK_CASES": "40"}, check=False).returncode
    operations = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as name:
        floods.write_folders(folders := Path(name) / "folders")
        settings = {"ATLAS_PROCESSES": "1", "ATLAS_WORKERS": "2", "ATLAS_METRICS": operations}
        with running(Path(name), HOSTED, settings | {"ATLAS_MODEL_FOLDERS": str(folders)}) as server:
            while send_request(server.url, "GET", "/readyz")[0] != 200:
                time.sleep(0.5)
            costs, cheap = links.main(server)
            waits, prompt = floods.main(server, f"http://{operations}")
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{before}{START}\n{waits}\n\n{costs}\n{END}{after}", encoding="utf-8")
    return ended or int(not (prompt and cheap))


if __name__ == "__main__":
    sys.exit(main())
