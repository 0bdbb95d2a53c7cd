"""Dockerfile, compose file and cluster objects: linted, agreeing with each other, and the server they start."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from benchmarks.serving import free_port, wait_until_healthy

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
FINAL = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


@pytest.mark.parametrize(
    "command",
    [
        ["hadolint", "Dockerfile"],
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml"],
        ["kubernetes-validate", "--strict", "deploy/kubernetes.yaml"],
    ],
    ids=lambda command: command[0],
)
def test_linters_find_nothing(command: list[str]) -> None:
    tool = Path(sys.executable).with_name(command[0])
    found = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_image_copies_what_its_context_holds() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    copied = {source for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.M) for source in line.split()[:-1]}
    assert "*" in ignore
    assert copied == allowed
    assert all((ROOT / source).exists() for source in copied)


def test_ports_probes_and_replicas_agree() -> None:
    port = re.search(r"STREAMLIT_SERVER_PORT=(\d+)", FINAL)
    exposed = re.search(r"EXPOSE (\d+)", FINAL)
    assert port
    assert exposed
    assert port[1] == exposed[1]
    objects = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    container = objects[0]["spec"]["template"]["spec"]["containers"][0]
    assert {container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness")} == {"/healthz"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert str(container["ports"][0]["containerPort"]) == port[1]
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    proxy = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    places = re.search(r"server-template atlas (\d+) atlas:(\d+)", proxy)
    assert places
    assert places[2] == port[1]
    assert services["atlas"]["deploy"]["replicas"] <= int(places[1])
    assert "GET /readyz" in proxy


def test_the_images_command_serves_from_what_the_image_holds(tmp_path: Path) -> None:
    """The same files, the same command and a home that is not even a folder: ready, with its health check content."""
    home = tmp_path / "home"
    home.touch()
    for line in re.findall(r"^COPY (?!--from)(.+)$", FINAL, re.M):
        *sources, target = line.split()
        for source in sources:
            place = tmp_path / "app" / (source if target == "./" else target)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)
    command = json.loads(re.findall(r"^CMD (\[.+\])$", FINAL, re.M)[-1])
    check = json.loads(re.findall(r"^HEALTHCHECK .*CMD (\[.+\])$", FINAL, re.M)[-1])
    port = str(free_port())
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)}
    environment |= {
        "STREAMLIT_SERVER_PORT": port,
        "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=tmp_path / "app", env=environment, stdout=output, stderr=output)
        try:
            wait_until_healthy(f"http://127.0.0.1:{port}", server, log, route="/readyz")
            assert (
                subprocess.run([part.replace("8501", port) for part in check], env=environment, check=False).returncode
                == 0
            )
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
                assert b'<div id="root">' in answer.read()
        finally:
            server.terminate()
            assert server.wait(timeout=120) in (0, -15), log.read_text()
