"""A Hub of our own on this machine: the few answers that a download needs."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from huggingface_hub import constants

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.errors: dict[str, tuple[int, str]] = {}
        self.requests: list[str] = []
        self.tokens: set[str | None] = set()
        self.open = threading.Event()  # weights are held back until it is set
        self.open.set()

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        self.requests.append(path)
        path = path.split("?")[0]
        for name, (status, code) in self.errors.items():
            if f"/{name}/" in f"{path}/":
                return status, {"X-Error-Code": code, "X-Error-Message": "no"}, b"{}"
        for name, files in self.repos.items():
            if path.startswith(f"/api/models/{name}/tree/"):
                return 200, {}, json.dumps([self._entry(f, c) for f, c in files.items()]).encode()
            if path.startswith(f"/api/models/{name}"):
                revision = path.partition("/revision/")[2]
                if revision not in ("", "main", "v1", COMMIT):
                    return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
                siblings = [{"rfilename": file, "size": len(content)} for file, content in files.items()]
                info = {"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0}
                return 200, {}, json.dumps(info).encode()
            if path.startswith(f"/{name}/resolve/{COMMIT}/"):
                file = path.partition(COMMIT + "/")[2]
                if file in files:
                    etag = f'"{hashlib.sha256(files[file]).hexdigest()}"'
                    return 200, {"ETag": etag, "X-Repo-Commit": COMMIT}, files[file]
                return 404, {"X-Error-Code": "EntryNotFound"}, b""
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"

    def _entry(self, file: str, content: bytes) -> dict[str, Any]:
        return {"type": "file", "path": file, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}

    def downloads(self) -> set[str]:
        return {path.partition(COMMIT + "/")[2] for path in self.requests if "/resolve/" in path}


@contextmanager
def serving(fake: FakeHub) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self, with_body: bool = True) -> None:
            fake.tokens.add(self.headers.get("Authorization"))
            status, headers, body = fake.answer(self.path)
            if with_body and self.path.endswith(".safetensors"):
                fake.open.wait(timeout=300)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET(with_body=False)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def use_only(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
