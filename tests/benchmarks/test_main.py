"""Every part of the benchmarks can be run, and a target is counted as the report says."""

import asyncio
import importlib
import inspect
from typing import Any, cast

import pytest
from streamlit.proto.BidiComponent_pb2 import BidiComponent
from streamlit.proto.Button_pb2 import Button
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.TextInput_pb2 import TextInput

from benchmarks import __main__ as command
from benchmarks import load, report
from benchmarks.report import Row
from benchmarks.visitors import VIEW, Visitor


@pytest.mark.parametrize("name", command.PARTS)
def test_every_part_can_be_measured_and_tried_out(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert set(module.QUICK) <= set(inspect.signature(module.measure).parameters)


def test_a_target_counts_in_units_or_in_the_peers_and_what_has_no_number_missed_it() -> None:
    some, none = (2.0,), ()
    rows = {
        "| look | 2 s (1 to 4) |  |  |  |  |": Row("look", "s", (1.0, 2.0, 4.0)),
        "| look | 2 s |  |  | <= 1 s | NO |": Row("look", "s", (2.0,), target=1),
        "| look | 2 s | it: 1,234 s | 617 | <= 1.5 x it | yes |": Row("look", "s", some, "it", (1234.0,), 1.5, True),
        "| look | too long | it: 2 s |  | <= 1 x it | NO |": Row("look", "s", none, "it", some, 1, True, "too long"),
        "| look | 2 s | it: 16 GB |  | <= 1 x it | NO |": Row("look", "s", some, "it", none, 1, True, "16 GB"),
    }
    assert report.table(list(rows.values())).splitlines()[2:] == list(rows)


class Replies:
    """A server's side of a web socket: for each request the messages of a run. Raises IndexError after the last."""

    def __init__(self, *runs: list[ForwardMsg]) -> None:
        self._runs = list(runs)
        self._sent: list[ForwardMsg] = []

    async def send(self, _request: bytes) -> None:
        self._sent += self._runs.pop(0)

    async def recv(self) -> bytes:
        return self._sent.pop(0).SerializeToString()


def run_of(*elements: Element, part: str = "") -> list[ForwardMsg]:
    """The messages of a run that draws these in the part "card": of the whole page, or of a part."""
    begun, over = ForwardMsg(), ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY)
    begun.new_session.initialize.session_id = "session"
    begun.metadata.run.fragment_ids.extend([part] if part else [])
    drawn = [ForwardMsg(delta=Delta(new_element=one, fragment_id="card")) for one in elements]
    return [begun, *drawn, over]


def test_a_visitor_tries_again_until_there_is_an_answer() -> None:
    """And no longer: a button that is gone must not be clicked for ever."""
    line = Element(text_input=TextInput(id="line", label=load.LINE))
    again = Element(button=Button(id="again", label="Try again"))
    view = Element(bidi_component=BidiComponent(id="view", component_name=VIEW, bytes=b"maps"))
    shown = (line, again), (line, again), (line, view)
    runs = [run_of(line), *(run_of(*each, part="card") for each in shown)]

    async def conversation() -> load.Answer:
        visitor = Visitor(cast(Any, Replies(*runs)))
        await visitor.open("transformer")
        return await load.converse(visitor, "I lost my way.")

    answer = asyncio.run(conversation())
    assert (answer.error, answer.retries, answer.view) == (None, 2, b"maps")
