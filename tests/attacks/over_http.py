"""Requests that no browser sends by itself."""

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


def handshake(path: str, host: str, headers: str = "") -> bytes:
    """The request that opens a socket."""
    start = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    return f"{start}{key}{headers}\r\n".encode()


BINARY, PING, PONG = 2, 9, 10


def frame(opcode: int, data: bytes = b"", last: bool = True) -> bytes:
    """A frame of a client, masked with zeros."""
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 127]) + size.to_bytes(8, "big")
    return bytes([opcode | (0x80 if last else 0)]) + length + bytes(4) + data
