"""Messages that no browser sends: values of wrong types, ids of nothing, pages that are paths."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

DEEP = "[" * 5000 + "]" * 5000
FLOATS = (float("nan"), float("inf"), float("-inf"), 1e308, -0.0, 5e-324)
WHOLE = (0, -1, 2**63 - 1, -(2**63))
TEXTS = (
    "",
    "\0",
    "\u202e\ufeff",
    "../../etc/passwd",
    '"><script>alert(1)</script>',
    "=cmd|' /C calc'!A0",
    "x" * 100_000,
)
JSON = ("", "{", "null", "NaN", "[]", '{"picked": {"site": -1}}', '{"__proto__": {"x": 1}}', "1e999", DEEP)
PAGES = (
    "../../etc/passwd",
    "/etc/passwd",
    "transformer/../../x",
    "\0",
    "x" * 10_000,
    "<script>",
    "pages/transformer/page",
)


def state(key: str, **value: object) -> WidgetState:
    return WidgetState(id=key, **value)  # type: ignore[arg-type]


def wrong_values() -> dict[str, Callable[[str], WidgetState]]:
    """By name, a state of the control with this id."""
    made: dict[str, Callable[[str], WidgetState]] = {}
    for number in FLOATS:
        made[f"the number {number}"] = lambda key, number=number: state(key, double_value=number)
        made[f"a range of {number}"] = lambda key, number=number: _array(key, "double_array_value", [number, number])
    for whole in WHOLE:
        made[f"the whole number {whole}"] = lambda key, whole=whole: state(key, int_value=whole)
        made[f"choices {whole}"] = lambda key, whole=whole: _array(key, "int_array_value", [whole] * 3)
    for text in TEXTS:
        name = f"{text[:30]!r}" if len(text) < 1000 else f"{len(text):,} letters"
        made[f"the text {name}"] = lambda key, text=text: state(key, string_value=text)
        made[f"the choices {name}"] = lambda key, text=text: _array(key, "string_array_value", [text] * 3)
    for text in JSON:
        name = f"`{text}`" if len(text) < 1000 else f"{len(text):,} brackets"
        made[f"the component value {name}"] = lambda key, text=text: state(key, json_value=text)
        made[f"the component's event {name}"] = lambda key, text=text: state(key, json_trigger_value=text)
    made["true"] = lambda key: state(key, bool_value=True)
    made["a click"] = lambda key: state(key, trigger_value=True)
    made["bytes"] = lambda key: state(key, bytes_value=bytes(range(256)))
    made["a table that is none"] = _broken_table
    made["somebody else's file"] = _foreign_file
    made["a chat"] = _chat
    made["no value"] = state
    return made


def _array(key: str, kind: str, values: list[object]) -> WidgetState:
    made = state(key)
    getattr(made, kind).data.extend(values)
    return made


def _broken_table(key: str) -> WidgetState:
    made = state(key)
    made.arrow_value.data = b"\xff" * 100
    return made


def _foreign_file(key: str) -> WidgetState:
    made = state(key)
    made.file_uploader_state_value.uploaded_file_info.add(file_id="not-mine", name="../x.png", size=2**40)
    return made


def _chat(key: str) -> WidgetState:
    made = state(key)
    made.chat_input_value.data = "hello"
    return made


def page_run(page: str, *states: WidgetState, fragment: str = "", script: str = "", query: str = "") -> BackMsg:
    """A message that asks for a page."""
    message = BackMsg()
    run = message.rerun_script
    run.page_name, run.fragment_id, run.page_script_hash, run.query_string = page, fragment, script, query
    run.widget_states.widgets.extend(states)
    return message


def odd_runs(page: str) -> dict[str, BackMsg]:
    """Runs of what is not there, by name."""
    twice = page_run(page, state("x", int_value=1), state("x", string_value="1"))
    made = {f"the page {name[:30]!r}": page_run(name) for name in PAGES}
    made["a fragment that is not there"] = page_run(page, fragment="0123456789abcdef")
    made["a page's digest that is none"] = page_run(page, script="0" * 32)
    made["the same control twice"] = twice
    made["900 controls that are none"] = page_run(page, *[state(f"$$ID-{n}-None", int_value=n) for n in range(900)])
    made["an address of 100,000 letters"] = page_run(page, query="s-d=" + "9" * 100_000)
    made["an address of broken percent signs"] = page_run(page, query="%&%%=%ff%fe&=&;&&[]=1")
    return made


def typed(page: str, ids: list[str], text: str) -> BackMsg:
    """What a reader sends, in all lines of a page that take a text: nothing odd, but something is kept of it."""
    return page_run(page, *[state(key, string_value=text) for key in ids if key.endswith("-text")])


def values(key: str) -> st.SearchStrategy[WidgetState]:
    """Any value at all for the control with this id."""
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=10,
    )
    return st.one_of(
        st.builds(lambda value: state(key, json_value=json.dumps(value)), anything),
        st.builds(lambda value: state(key, json_trigger_value=json.dumps(value)), anything),
        st.builds(lambda value: state(key, double_value=value), st.floats()),
        st.builds(lambda value: state(key, int_value=value), st.integers(-(2**63), 2**63 - 1)),
        st.builds(lambda value: state(key, string_value=value), st.text(max_size=50)),
        st.builds(lambda value: _array(key, "double_array_value", value), st.lists(st.floats(), max_size=4)),
        st.builds(lambda value: _array(key, "string_array_value", value), st.lists(st.text(max_size=8), max_size=4)),
        st.sampled_from([make(key) for make in wrong_values().values()]),
    )
