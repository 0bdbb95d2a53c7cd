"""Requests that no browser sends by itself."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

FOREIGN = "https://elsewhere.example"
FORM = {"Content-Type": "multipart/form-data; boundary=boundary"}


def send_request(
    url: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body; the path goes out as it is."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def multipart(size: int) -> bytes:
    """A form with one file of this size, whose name would climb."""
    head = b'--boundary\r\nContent-Disposition: form-data; name="f"; filename="../../f.png"\r\n\r\n'
    return head + bytes(size) + b"\r\n--boundary--\r\n"
