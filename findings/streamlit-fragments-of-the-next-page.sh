#!/usr/bin/env bash
# A page that was left, and whose script still sleeps after its last element, takes the next page's fragments at its end.
#
# Versions: streamlit 1.67.0, CPU. Run 2026-11-30.
# Guess: the run of a page that another run has replaced (fast reruns) is over: what it draws or ends changes nothing.
# Seen: its messages are dropped, but its end is not. A run that draws nothing more is not interrupted, reaches its end,
# and clears the session's fragment storage of all that it has not registered itself: the fragments of the page that is
# shown. A button in one of these then does nothing, without an error in the browser, until the whole page runs again.
# Output: next page shown: True; its fragment runs before the first page's end: True, after it: False.
source "$(dirname "$0")/environment.bash"
in_environment streamlit==1.67.0 websockets==15.0.1 <<'PY'
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidMessage, InvalidStatus
from websockets.sync.client import connect

APP = """
import time
import streamlit as st

def first():
    st.write("first")
    time.sleep(3)  # closes a file, writes a log: draws nothing

@st.fragment
def part():
    st.write("part")

def second():
    part()

st.navigation([st.Page(first), st.Page(second)]).run()
"""
path = Path(tempfile.mkdtemp()) / "app.py"
path.write_text(APP)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
command = [sys.executable, "-m", "streamlit", "run", str(path), "--server.port", str(port), "--server.headless", "true"]
command += ["--server.address", "127.0.0.1"]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
server = subprocess.Popen(command, env=os.environ | {"HOME": str(path.parent)}, **quiet)


def open_socket():
    for _ in range(120):
        try:
            return connect(f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=["streamlit"], max_size=None)
        except (OSError, InvalidMessage, InvalidStatus):  # it is not there yet
            time.sleep(0.5)
    raise SystemExit("no server")


def ask(line, page="", fragment=""):
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    line.send(message.SerializeToString())


def texts(line, seconds):
    """What is drawn until nothing comes for so long: (text, fragment), and the pages by name."""
    drawn, pages = [], {}
    while True:
        try:
            message = ForwardMsg.FromString(line.recv(timeout=seconds))
        except TimeoutError:
            return drawn, pages
        if message.WhichOneof("type") == "navigation":
            pages = {page.page_name: page.page_script_hash for page in message.navigation.app_pages}
        element = message.delta.new_element
        if element.WhichOneof("type") == "markdown":
            drawn.append((element.markdown.body, message.delta.fragment_id))


try:
    with open_socket() as line:
        ask(line)
        began = time.monotonic()
        _, pages = texts(line, 0.5)
        ask(line, pages["second"])
        drawn, _ = texts(line, 0.5)
        shown = "part" in dict(drawn)
        fragment = dict(drawn)["part"]
        ask(line, pages["second"], fragment)
        before = "part" in dict(texts(line, 0.5)[0])
        in_time = time.monotonic() - began < 2.8
        time.sleep(max(0.0, began + 5 - time.monotonic()))
        ask(line, pages["second"], fragment)
        after = "part" in dict(texts(line, 2)[0])
finally:
    server.terminate()
assert in_time, "this machine was too slow: run it again"
print(f"next page shown: {shown}; its fragment runs before the first page's end: {before}, after it: {after}")
assert (shown, before, after) == (True, True, False)
PY
