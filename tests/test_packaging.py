"""The wheel: everything in it, installed into an environment of its own, used from another folder."""

import os
import re
import socket
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from attention_atlas.__main__ import main
from benchmarks.serving import free_port, wait_until_healthy
from viz_core.runtime.packages import require

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built offline, by the backend that requirements-dev.txt pins."""
    out = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(ROOT))
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with the wheel in it; what the wheel depends on is lent by this environment."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, symlinks=True)
    programs = home / "bin"
    pip("--python", str(programs / "python"), "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
    (site,) = home.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return programs


def pip(*arguments: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_the_wheel_carries_the_house_and_nothing_loose(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"viz_core", "attention_atlas"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    app = ("app.py", "hosted.py", ".streamlit/", "serving/", "pages/", "ui/")
    expected = {name for name in tracked if name.startswith(("viz_core/", "attention_atlas/"))}
    expected |= {f"attention_atlas/{name}" for name in tracked if name.startswith(app)}
    expected |= {f"viz_core/{name}" for name in tracked if name.startswith("assets/") and "/readme/" not in name}
    assert {name for name in names if ".dist-info/" not in name} >= expected
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]


def test_every_asset_has_a_licence() -> None:
    table = (ROOT / "assets" / "LICENSES.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([^`]+)`", table))
    assets = {path for path in (ROOT / "assets").iterdir() if path.name not in ("samples", "LICENSES.md")}
    assets |= {path for path in (ROOT / "assets" / "samples").iterdir() if "LICENSE" not in path.name}
    assert {path.relative_to(ROOT / "assets").as_posix() for path in assets} <= named
    assert all(list(folder.glob("*LICENSE*")) for folder in (ROOT / "assets" / "vendor").iterdir())


def test_versions_agree_and_links_of_the_repository_lead_somewhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    dead = [
        (page.relative_to(ROOT).as_posix(), target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s:?]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert dead == []


def test_library_and_app_work_from_another_folder(installed: Path, tmp_path: Path) -> None:
    """One process for both: most of its time goes into importing what they depend on."""
    program = """
import viz_core
assert "site-packages" in viz_core.__file__
print(viz_core.load("transformer-en-fr", device="cpu").translate("He is calm.").text)
print(*sorted(card.name for card in viz_core.available()))

import sys
from attention_atlas.__main__ import app_path
sys.path.insert(0, str(app_path().parent))  # as `streamlit run` does
from streamlit.testing.v1 import AppTest
home = AppTest.from_file(str(app_path().parent / "ui" / "app" / "main.py"), default_timeout=60).run()
from ui.chapter.contents import ROOT, all_pages
print(len(home.exception), len(home.header) > 1, ROOT == app_path().parent, len(all_pages()))
"""
    run = subprocess.run([installed / "python", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    text, models, app = run.stdout.splitlines()
    assert text == "Il est calme."
    assert models.split() == sorted(path.parent.name for path in (ROOT / "assets/checkpoints").glob("*/config.json"))
    assert app == f"0 True True {len(list((ROOT / 'pages').glob('*/page.py')))}"


def test_the_command_starts_the_app(installed: Path, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    command = [installed / "attention-atlas", "--server.port", str(port), "--server.headless", "true"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
    try:
        wait_until_healthy(f"http://localhost:{port}", server, log)
        with socket.socket() as outside:  # an address of this machine that is not localhost's own
            outside.settimeout(5)
            assert outside.connect_ex(("127.0.0.2", port)) != 0, "heard beyond what `make run` hears"
    finally:
        server.terminate()
        server.wait(20)


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where streamlit alone is there, as somebody else's."""
    requirements = [
        "streamlit>=1.67; extra == 'app'",
        "plotly>=7; extra == 'app'",
        "nowhere-to-be-found; extra == 'app'",
    ]
    monkeypatch.setattr(sys, "argv", ["attention-atlas", "--server.port", "8600"])
    monkeypatch.setattr("viz_core.runtime.packages.requires", lambda _: requirements)
    require.cache_clear()
    with pytest.raises(SystemExit, match=r"nowhere-to-be-found .*pip install 'attention-atlas\[app\]'"):
        main()
