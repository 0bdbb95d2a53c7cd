"""The widget in a kernel, spoken to over its wire as a notebook's page does: what it sends arrives as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

from benchmarks.view_bytes import DecodedView, decode_view

ROOT = Path(__file__).resolve().parents[3]
SHOW = """
import torch
from viz_core import view
shown = view(torch.arange(1.0, 33).reshape(2, 4, 4) / 32, "a b c d".split())
shown
"""
WAIT = 120


@pytest.fixture(scope="module")
def kernel() -> Iterator[BlockingKernelClient]:
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=WAIT, cwd=str(ROOT))
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def messages(kernel: BlockingKernelClient, kind: str) -> Iterator[dict[str, Any]]:
    while True:
        message = kernel.get_iopub_msg(timeout=WAIT)
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == kind:
            yield message


def request(kernel: BlockingKernelClient, comm: str, message: dict[str, Any]) -> DecodedView:
    """What the widget answers to a message of its script."""
    content = {"comm_id": comm, "data": {"method": "custom", "content": message}}
    kernel.shell_channel.send(kernel.session.msg("comm_msg", content))
    for found in messages(kernel, "comm_msg"):
        if found["content"]["data"].get("method") == "custom":
            assert found["content"]["data"]["content"] == {"problem": None}
            return decode_view(bytes(found["buffers"][0]))
    raise AssertionError("no answer")


def test_what_a_page_asks_for_comes_over_the_wire(kernel: BlockingKernelClient) -> None:
    kernel.execute(SHOW)
    opened = [m["content"] for m in _until_shown(kernel)]
    (comm,) = [m["comm_id"] for m in opened if "_esm" in m["data"].get("state", {})]
    first = request(kernel, comm, {})
    assert first.header["base"]["groups"][0][0]["query_tokens"] == ["a", "b", "c", "d"]
    place = {"group": "0-attention", "layer": 0, "head": 1, "pins": ["q2"], "display": {}}
    wants = ["token 0 0-attention 0 q2"]
    reply = request(kernel, comm, {"turn": 1, "id": "a.1", "have": first.header["stamp"], "wants": wants} | place)
    assert reply.parts[wants[0]].tolist() == [
        [9 / 32, 10 / 32, 11 / 32, 12 / 32],
        [25 / 32, 26 / 32, 27 / 32, 28 / 32],
    ]
    kernel.execute("print(shown.site, shown.head, shown.pins)")
    printed = next(messages(kernel, "stream"))["content"]["text"]
    assert printed == "attention.0 1 ('q2',)\n"


def _until_shown(kernel: BlockingKernelClient) -> Iterator[dict[str, Any]]:
    """The comms that open until the cell has its output."""
    while True:
        message = kernel.get_iopub_msg(timeout=WAIT)
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == "comm_open":
            yield message
        if message["msg_type"] in ("execute_result", "display_data"):
            return
