"""Messages of a run in batches: when they go out, in which order, and that none is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg, ForwardMsgMetadata
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.testing.v1 import AppTest

from ui.streamlit_internals.batched_messages import MessageBatch


class Line:
    """Where messages go; a run that shall end raises."""

    def __init__(self) -> None:
        self.now, self.sent, self.ends = 0.0, [], False

    def send(self, message: ForwardMsg) -> None:
        self.sent.append(message.hash)

    def check(self) -> None:
        if self.ends:
            raise InterruptedError

    def batch(self) -> MessageBatch:
        return MessageBatch(self.send, self.check, lambda: self.now)


def test_what_comes_within_a_moment_goes_out_together_and_in_order() -> None:
    line = Line()
    batch = line.batch()
    for line.now, name in ((0.01, "a"), (0.02, "b"), (0.049, "c")):
        batch(ForwardMsg(hash=name))
    assert line.sent == []
    line.now = 0.05
    batch(ForwardMsg(hash="d"))
    assert line.sent == list("abcd")
    line.now = 0.09
    batch(ForwardMsg(hash="e"))
    assert line.sent == list("abcd")
    batch.flush()
    batch.flush()
    assert line.sent == list("abcde")


def test_what_follows_a_picture_waits_for_a_pause() -> None:
    line = Line()
    batch = line.batch()
    batch(ForwardMsg(hash="a"))
    batch.flush(0.25)
    assert batch.seconds_left() == 0, "nothing waits"
    line.now = 0.125
    batch(ForwardMsg(hash="b"))
    assert (line.sent, batch.seconds_left()) == (["a"], 0.125)
    line.now = 0.25
    assert batch.seconds_left() == 0
    batch(ForwardMsg(hash="c"))
    assert line.sent == list("abc")


def test_the_sidebar_and_invisible_components_follow_the_first_picture() -> None:
    def message(name: str, *path: int) -> ForwardMsg:
        return ForwardMsg(hash=name, metadata=ForwardMsgMetadata(delta_path=path))

    line = Line()
    batch = line.batch()
    for each in (message("a", 0, 0), message("x", 0, 0, 0), message("y", 1, 0), message("b", 0, 1), message("c")):
        batch(each)
    batch.flush()
    assert line.sent == list("abc")
    batch(message("picture", 0, 2))
    batch.flush(0.25)
    batch(message("z", 1, 1))
    line.now = 0.25
    batch(message("d", 0, 3))
    assert line.sent == [*"abc", "picture", *"xyd"]
    assert len(batch) == 1
    line.now = 0.5  # a page without a picture shows its sidebar all the same
    batch.flush()
    batch(message("e", 1, 0))
    batch.flush(everything=True)
    assert line.sent == [*"abc", "picture", *"xydze"]


def test_a_run_that_shall_end_ends_at_its_next_message_though_nothing_is_sent() -> None:
    line = Line()
    batch = line.batch()
    batch(ForwardMsg(hash="a"))
    line.ends = True
    with pytest.raises(InterruptedError):
        batch(ForwardMsg(hash="b"))
    batch.flush()
    assert line.sent == ["a"]  # what came before it is not lost


def page() -> None:
    """Says what had been sent when it began, waited, stopped; and that a page sends by itself again afterwards."""
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from ui.streamlit_internals.batched_messages import MessageBatch, batched_messages, flush_messages

    run = get_script_run_ctx()
    assert run is not None
    sizes = []
    try:
        with batched_messages():
            assert isinstance(run._enqueue, MessageBatch) is not st.session_state.get("unbatched", False)
            if isinstance(run._enqueue, MessageBatch):
                run._enqueue._clock = lambda: 0.0
            st.write("first")
            if isinstance(run._enqueue, MessageBatch):
                sizes.append(len(run._enqueue))
                flush_messages()
                sizes.append(len(run._enqueue))
            st.write("second")
            st.session_state.sizes = sizes
            if st.session_state.get("stops"):
                st.stop()
    finally:
        assert not isinstance(run._enqueue, MessageBatch)
    st.write("third")


@pytest.mark.parametrize("batches", [True, False])
@pytest.mark.parametrize("stops", [False, True])
def test_a_page_sends_all_of_it_by_its_end_whichever_way_it_ends(
    stops: bool, batches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.streamlit_internals.batched_messages.works", lambda _feature: batches)
    app = AppTest.from_function(page)
    app.session_state.stops, app.session_state.unbatched = stops, not batches
    app.run()
    assert not app.exception
    assert [element.value for element in app.markdown] == ["first", "second", *(() if stops else ("third",))]
    assert app.session_state.sizes == ([1, 0] if batches else [])


def paused_page() -> None:
    """Pauses after its first message."""
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from ui.streamlit_internals.batched_messages import MessageBatch, batched_messages, flush_messages

    run = get_script_run_ctx()
    assert run is not None
    with batched_messages():
        assert isinstance(run._enqueue, MessageBatch)
        run._enqueue._clock = lambda: 0.0
        st.write("first")
        flush_messages(0.02)
        st.write("second")


def test_a_page_sends_all_of_it_before_it_waits_for_its_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = []

    @contextmanager
    def pause() -> Iterator[None]:
        yield
        run = get_script_run_ctx()
        assert run is not None
        assert isinstance(run._enqueue, MessageBatch)
        waiting.append(len(run._enqueue))

    monkeypatch.setattr("ui.streamlit_internals.batched_messages.page_turns", SimpleNamespace(pause=pause))
    app = AppTest.from_function(paused_page).run()
    assert [element.value for element in app.markdown] == ["first", "second"]
    assert waiting == [0]
