"""The shipped proxy before a server, without TLS and with both on this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.serving import ROOT, Server, free_port, wait_until_healthy


@contextmanager
def behind_proxy(server: Server, folder: Path) -> Iterator[Server]:
    """The same server at the proxy's address."""
    address = f"127.0.0.1:{free_port()}"
    written = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
    place = f"    server one {server.url.removeprefix('http://')}"
    for shipped, changed in (
        (r"^ +server-template.*$", place),
        (r"^frontend unencrypted\n(?: .*\n)+", ""),
        (r"(?:^ +bind .*\n)+", f"    bind {address}\n"),
        (r"X-Forwarded-Proto https", "X-Forwarded-Proto http"),
        (r" secure ", " "),
    ):
        written = re.sub(shipped, changed, written, flags=re.M)
    (folder / "haproxy.cfg").write_text(written, encoding="utf-8")
    log = folder / "haproxy.log"
    with log.open("wb") as output:
        command = ["haproxy", "-f", str(folder / "haproxy.cfg")]
        proxy = subprocess.Popen(command, env=os.environ | {"HOSTNAME": "proxy"}, stdout=output, stderr=output)
    try:
        wait_until_healthy(f"http://{address}", proxy, log, "/readyz")
        yield replace(server, url=f"http://{address}")
    finally:
        proxy.terminate()
        proxy.wait(timeout=30)
