"""Dockerfile, compose file and cluster objects: linted, agreeing with each other, and the server they start."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.serving import free_port, wait_until_healthy

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
GUIDE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
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
    (port,) = re.findall(r"STREAMLIT_SERVER_PORT=(\d+)", FINAL)
    assert re.findall(r"EXPOSE (\d+)", FINAL) == [port]
    pod = container()
    assert {pod[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness")} == {"/healthz"}
    assert pod["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert f":{pod['livenessProbe']['httpGet']['port']}" in environment_of_a_pod()["ATLAS_METRICS"]
    assert str(pod["ports"][0]["containerPort"]) == port
    services = compose()["services"]
    proxy = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    ((places, target),) = re.findall(r"server-template atlas (\d+) atlas:(\d+)", proxy)
    assert target == port
    assert services["atlas"]["deploy"]["replicas"] <= int(places)
    assert "GET /readyz" in proxy


def objects(kind: str) -> list[dict[str, Any]]:
    """The Kubernetes objects of a kind."""
    written = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    return [one for one in yaml.safe_load_all(written) if one["kind"] == kind]


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8")))


def container() -> dict[str, Any]:
    return dict(objects("Deployment")[0]["spec"]["template"]["spec"]["containers"][0])


def environment_of_a_pod() -> dict[str, Any]:
    return {one["name"]: one.get("value") for one in container()["env"]}


def limits() -> dict[str, int]:
    """The limits for one address that docs/deploy.md promises."""
    rows = re.findall(r"^\| ([a-z0-9 ]+) \| ([\d,]+) \|$", GUIDE, re.M)
    return {name: int(most.replace(",", "")) for name, most in rows}


@pytest.mark.attack("deployment")
def test_images_are_named_by_digest() -> None:
    others = [service["image"] for service in compose()["services"].values() if "build" not in service]
    for image in (*re.findall(r"^FROM (\S+)", DOCKERFILE, re.M), *others, container()["image"]):
        assert re.search(r"@sha256:[0-9a-f]{64}$", image), image


@pytest.mark.attack("deployment")
def test_only_a_known_proxy_is_believed() -> None:
    services, network = compose()["services"], compose()["networks"]["inside"]
    trusted = services["atlas"]["environment"]["FORWARDED_ALLOW_IPS"]
    assert trusted == services["proxy"]["networks"]["inside"]["ipv4_address"]
    assert ip_address(trusted) in ip_network(network["ipam"]["config"][0]["subnet"])
    assert network["internal"] is True
    pods = ip_network(environment_of_a_pod()["FORWARDED_ALLOW_IPS"])
    assert pods.is_private
    assert "FORWARDED_ALLOW_IPS" in GUIDE


@pytest.mark.attack("deployment")
def test_nothing_but_the_proxy_has_a_port_of_the_host() -> None:
    services = compose()["services"]
    assert "ports" not in services["atlas"]
    assert services["atlas"]["networks"] == ["inside"]
    assert [port.rpartition(":")[2] for port in services["proxy"]["ports"]] == ["8443", "8080"]
    assert not [one for one in objects("Service") if one["spec"].get("type", "ClusterIP") != "ClusterIP"]
    assert [port["port"] for one in objects("Service") for port in one["spec"]["ports"]] == [80]


@pytest.mark.attack("deployment")
def test_pods_are_reached_by_the_ingress_and_metrics_by_monitoring() -> None:
    (policy,) = (one["spec"] for one in objects("NetworkPolicy"))
    assert policy["podSelector"] == objects("Deployment")[0]["spec"]["selector"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert policy["egress"] == []
    admitted = {
        rule["ports"][0]["port"]: rule["from"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for rule in policy["ingress"]
    }
    assert all(len(rule["ports"]) == len(rule["from"]) == 1 for rule in policy["ingress"])
    assert admitted == {8501: "ingress-nginx", 9501: "monitoring"}
    assert all(f"`{namespace}`" in GUIDE for namespace in admitted.values())
    assert environment_of_a_pod()["ATLAS_METRICS"] == "$(POD_IP):9501"


@pytest.mark.attack("deployment")
def test_the_ingress_and_the_proxy_have_tls_and_the_limits_of_the_guide() -> None:
    proxy = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    promised = limits()
    measures = {
        "connections open": "sc0_conn_cur",
        "connections in 10 seconds": "sc0_conn_rate",
        "requests in 10 seconds": "sc0_http_req_rate",
        "pages opened in 10 seconds": "sc1_http_req_rate",
        "uploads in 10 seconds": "sc2_http_req_rate",
    }
    assert promised.keys() == measures.keys()
    for name, measure in measures.items():
        assert re.findall(rf"{measure} gt (\d+)", proxy) == [str(promised[name])], name
    assert set(re.findall(r"store .*|rate\((\w+)\)", proxy)) <= {"", "10s"}
    assert proxy.count(" ssl crt /certs/") == 2
    assert "ssl-min-ver TLSv1.2" in proxy
    (ingress,) = objects("Ingress")
    notes = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert int(notes["limit-connections"]) == promised["connections open"]
    assert int(notes["limit-rps"]) * 10 == promised["requests in 10 seconds"]
    assert notes["force-ssl-redirect"] == notes["session-cookie-secure"] == "true"
    hosts = [rule["host"] for rule in ingress["spec"]["rules"]]
    assert [entry["hosts"] for entry in ingress["spec"]["tls"]] == [hosts]
    assert f"secret tls {ingress['spec']['tls'][0]['secretName']} " in GUIDE


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
            assert subprocess.run(check, env=environment, check=False).returncode == 0
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
                assert b'<div id="root">' in answer.read()
        finally:
            server.terminate()
            assert server.wait(timeout=120) in (0, -15), log.read_text()
