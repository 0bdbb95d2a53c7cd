"""Requests and messages that no browser sends: values of wrong types, ids of nothing, pages that are paths."""

import http.client
import json
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

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


DEEP = "[" * 5000 + "]" * 5000
FLOATS = (float("nan"), float("inf"), float("-inf"), 1e308, -0.0, 5e-324)
FILE = {"file_id": "not-mine", "name": "../x.png", "size": 2**40}
WHOLE = (0, -1, 2**63 - 1, -(2**63))
TEXTS = ("", "\0", "\u202e\ufeff", "../etc/passwd", '"><script>alert(1)</script>', "=cmd|' /C calc'!A0", "x" * 100_000)
JSON = ("", "{", "null", "NaN", "[]", '{"picked": {"site": -1}}', '{"__proto__": {"x": 1}}', "1e999", DEEP)
PAGES = "../../etc/passwd /etc/passwd transformer/../../x \0 <script> pages/transformer/page".split(" ")


def state(key: str, **value: object) -> WidgetState:
    """The state of the control with this id; messages within it are given as dicts."""
    return WidgetState(id=key, **value)  # type: ignore[arg-type]


def wrong_values() -> dict[str, Callable[[str], WidgetState]]:
    """By name, a state of the control with this id."""
    made: dict[str, dict[str, object]] = {
        "true": {"bool_value": True},
        "a click": {"trigger_value": True},
        "bytes": {"bytes_value": bytes(range(256))},
        "a table that is none": {"arrow_value": {"data": b"\xff" * 100}},
        "somebody else's file": {"file_uploader_state_value": {"uploaded_file_info": [FILE]}},
        "a chat": {"chat_input_value": {"data": "hello"}},
        "no value": {},
    }
    for kind, some in (("double", FLOATS), ("int", WHOLE), ("string", TEXTS)):
        for value in some:
            made[f"the {kind} {str(value)[:30]!r}"] = {f"{kind}_value": value}
            made[f"the {kind}s {str(value)[:30]!r}"] = {f"{kind}_array_value": {"data": [value] * 3}}
    for text in JSON:
        made[f"the component value {text[:30]}"] = {"json_value": text}
        made[f"the component's event {text[:30]}"] = {"json_trigger_value": text}
    return {name: partial(state, **value) for name, value in made.items()}


def page_run(page: str, *states: WidgetState, fragment: str = "", script: str = "", query: str = "") -> BackMsg:
    """A message that asks for a page."""
    message = BackMsg()
    run = message.rerun_script
    run.page_name, run.fragment_id, run.page_script_hash, run.query_string = page, fragment, script, query
    run.widget_states.widgets.extend(states)
    return message


def odd_runs(page: str) -> dict[str, BackMsg]:
    """Runs of what is not there, by name."""
    made = {f"the page {name[:30]!r}": page_run(name) for name in (*PAGES, "x" * 10_000)}
    made["a fragment that is not there"] = page_run(page, fragment="0123456789abcdef")
    made["a page's digest that is none"] = page_run(page, script="0" * 32)
    made["the same control twice"] = page_run(page, state("x", int_value=1), state("x", string_value="1"))
    made["900 controls that are none"] = page_run(page, *[state(f"$$ID-{n}-None", int_value=n) for n in range(900)])
    made["an address of 100,000 letters"] = page_run(page, query="s-d=" + "9" * 100_000)
    made["an address of broken percent signs"] = page_run(page, query="%&%%=%ff%fe&=&;&&[]=1")
    return made


def values(key: str) -> st.SearchStrategy[WidgetState]:
    """Any value at all for the control with this id."""
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=10,
    )
    kinds: dict[str, st.SearchStrategy[object]] = {
        "json_value": st.builds(json.dumps, anything),
        "json_trigger_value": st.builds(json.dumps, anything),
        "double_value": st.floats(),
        "int_value": st.integers(-(2**63), 2**63 - 1),
        "string_value": st.text(max_size=50),
        "double_array_value": st.builds(lambda data: {"data": data}, st.lists(st.floats(), max_size=4)),
        "string_array_value": st.builds(lambda data: {"data": data}, st.lists(st.text(max_size=8), max_size=4)),
    }
    wrong = st.sampled_from([make(key) for make in wrong_values().values()])
    return st.one_of(wrong, *(st.builds(state, st.just(key), **{kind: value}) for kind, value in kinds.items()))
