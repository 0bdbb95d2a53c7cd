"""Several visitors open their first models at the same moment, in a process that has not imported transformers yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.viz_core.hub.tiny_models import build_all

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys, threading
from pathlib import Path
from viz_core.hub import load_hub

sys.setswitchinterval(1e-5)
loaded = []
def visit(path):
    loaded.append(load_hub(path, device="cpu").card.name)
visitors = [threading.Thread(target=visit, args=(Path(path),)) for path in sys.argv[1:] * 2]
for visitor in visitors: visitor.start()
for visitor in visitors: visitor.join()
print(*sorted(loaded))
"""


def test_all_get_their_models(tmp_path: Path) -> None:
    folder = build_all(("gpt2", "t5"), tmp_path)
    command = [sys.executable, "-c", PROGRAM, str(folder / "gpt2"), str(folder / "t5")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["gpt2", "gpt2", "t5", "t5"], run.stderr
