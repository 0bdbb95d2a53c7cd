"""Pages that compute in slots, and models and their results in caches."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from serving.compute.slots import BusyError, Job, OutOfTimeError, in_slot, reset_singletons
from serving.compute.turns import NOBODY, Client, page_turns
from serving.requests.models import NoModel
from serving.requests.request import Picture
from serving.runners.runner import Runner
from ui.compute import slots as compute
from ui.compute.models import local_models
from viz_core.pretrained import shipped

TIMEOUT = 60.0


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """host(slots=1, queue=0): a server with these settings; after the test all is as before."""

    def set_up(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"ATLAS_{name.upper()}", str(value))
        reset_singletons()

    yield set_up
    compute.slots().close(TIMEOUT)
    reset_singletons()


class Occupied:
    """Work that holds a slot until it is let go, looked at all the time."""

    def __init__(self, client: Client = NOBODY) -> None:
        self.go, begun = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            assert self.go.wait(TIMEOUT)

        self.job: Job = compute.slots().submit("occupied", work, client=client)
        assert begun.wait(TIMEOUT)

    def free(self) -> None:
        self.go.set()
        assert self.job.wait(TIMEOUT)


def page() -> None:
    """A chapter that computes one thing, with words before and after it."""
    import streamlit as st

    from ui.compute.slots import run_in_slot

    text = st.text_input("Text", "He is calm.", key="text")
    answer = run_in_slot(lambda: text.upper(), "shout")
    st.write(answer)


def test_who_holds_all_that_one_may_have_waits_for_its_own_windows(
    host: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    host(slots=4, queue=2)
    monkeypatch.setattr("serving.compute.slots.LEASE", 10 * TIMEOUT)
    monkeypatch.setattr(compute, "this_client", lambda: Client("2001:db8::/64", "third"))
    occupied = [Occupied(Client("2001:db8::/64", window)) for window in range(3)]
    waiting = compute.slots().submit("waits", lambda: None, client=Client("2001:db8::/64", "fourth"))
    app = AppTest.from_function(page, default_timeout=TIMEOUT).run()
    assert "Your other windows are waiting" in app.warning[0].value
    monkeypatch.setattr(compute, "this_client", lambda: Client("192.0.2.1", "newcomer"))
    app = AppTest.from_function(page, default_timeout=TIMEOUT).run()
    assert [element.value for element in app.markdown] == ["HE IS CALM."]
    for each in occupied:
        each.free()
    assert waiting.wait(TIMEOUT)


def taking_its_turn() -> None:
    import streamlit as st

    from serving.compute.turns import page_turns
    from ui.compute.slots import run_in_slot
    from ui.streamlit_internals.script_run import network

    with page_turns.turn(network()):
        st.write(run_in_slot(lambda: "computed", "late"))


def test_a_page_that_waits_for_a_slot_lets_another_of_its_address_run(
    host: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    host(slots=1, queue=5)
    monkeypatch.setattr(type(st.context), "ip_address", property(lambda _context: "2001:db8::7"))
    occupied, over = Occupied(), threading.Event()
    app = AppTest.from_function(taking_its_turn, default_timeout=TIMEOUT)
    waiting = threading.Thread(target=app.run)
    waiting.start()
    while compute.slots().count() != (1, 1):
        over.wait(0.01)

    def other_page() -> None:
        with page_turns.turn("2001:db8::/64"):
            over.set()

    threading.Thread(target=other_page, daemon=True).start()
    assert over.wait(TIMEOUT / 3), "the page that waits has kept its turn"
    occupied.free()
    waiting.join(TIMEOUT)
    assert [element.value for element in app.markdown] == ["computed"]


def test_where_too_many_ask_one_is_told_to_try_again_and_loses_nothing(host: Callable[..., None]) -> None:
    host(slots=1, queue=0)
    occupied = Occupied()
    app = AppTest.from_function(page).run()
    app.text_input[0].set_value("She is late.").run()
    assert "The server is busy" in app.warning[0].value
    assert not app.markdown
    assert app.text_input[0].value == "She is late."
    occupied.free()
    app.button(key="try-again").click().run()
    assert [element.value for element in app.markdown] == ["SHE IS LATE."]
    assert not app.warning
    assert not app.button
    counted = compute.metrics().text().decode()
    assert 'atlas_refusals_total{kind="shout"} 2.0' in counted
    assert 'atlas_computations_total{kind="shout",outcome="done"} 1.0' in counted


@pytest.mark.parametrize(
    ("message", "limits", "reason"),
    [
        ("computing", {"max_seconds": "0.01"}, "This took longer than 0.01 seconds"),
        ("computing", {"max_seconds": 5, "cpu_seconds": "0.05"}, "more than 0.05 s of computation"),
    ],
)
def test_work_past_its_time_ends_and_says_so(
    host: Callable[..., None], message: str, limits: dict[str, object], reason: str
) -> None:
    def endless(message: str) -> None:
        from ui.compute.slots import run_in_slot
        from viz_core.runtime.hooks import may_end

        def work() -> None:
            while True:
                may_end()

        run_in_slot(work, "endless", message=message)

    host(slots=1, **limits)
    app = AppTest.from_function(endless, default_timeout=TIMEOUT, args=(message,)).run()
    assert reason in app.warning[0].value
    assert app.button[0].key == "try-again"
    assert compute.slots().count() == (0, 0)


@pytest.mark.attack("downloads")
def test_a_file_is_made_in_its_turn_and_in_time(host: Callable[..., None]) -> None:
    """Streamlit makes a file that is asked for in a thread of its own, where no page runs."""
    host(slots=1, queue=1, max_seconds=0.1)
    go = threading.Event()
    try:
        with pytest.raises(OutOfTimeError):
            compute.run_in_slot(lambda: go.wait(TIMEOUT), "download")  # never looks at the time
        waiting = compute.slots().submit("download", bytes)
        with pytest.raises(BusyError):
            compute.run_in_slot(bytes, "download")
    finally:
        go.set()
    assert waiting.wait(TIMEOUT)
    assert 'atlas_refusals_total{kind="download"} 1.0' in compute.metrics().text().decode()


def test_the_same_is_computed_once_for_everybody_and_an_error_is_not_kept(host: Callable[..., None]) -> None:
    """With one slot and no queue, a result that is made of another would wait for itself."""
    host(slots=1, queue=0)
    calls: list[str] = []

    @compute.cached()
    def shout(text: str) -> str:
        calls.append(text)
        if text == "bad":
            raise ValueError(f"no {text}")
        return text.upper()

    @compute.cached()
    def louder(text: str) -> str:
        return shout(text) + "!"

    assert (shout("a"), shout(text="a"), shout("b")) == ("A", "A", "B")
    assert (calls, len(compute.results())) == (["a", "b"], 2)
    assert (louder("c"), len(compute.results())) == ("C!", 4)
    for _ in range(2):
        with pytest.raises(ValueError, match="no bad"):
            shout("bad")
    assert calls == ["a", "b", "c", "bad", "bad"]


def test_a_photo_is_no_part_of_what_is_kept_about_it(host: Callable[..., None]) -> None:
    """Each answer about a photo of 12 MB would else push all others out."""
    host(slots=1, cache_mb=1)
    calls: list[str] = []

    @compute.cached()
    def about(picture: Picture, question: str) -> str:
        calls.append(question)
        return f"{question}: {picture.open().width}"

    photo = Image.new("RGB", (2000, 2000))
    for question in ("a", "b", "a", "b"):
        assert about(Picture("digest", photo), question) == f"{question}: 2000"
    assert about(Picture("digest", None), "a") == "a: 2000"
    assert calls == ["a", "b"]
    assert compute.results().nbytes < 10_000


TEXT = "The dog is in the house."


@pytest.fixture(autouse=True)
def fresh(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shipped, "CHECKPOINTS", checkpoints)
    reset_singletons()
    yield
    reset_singletons()


@pytest.mark.attack("models")
def test_models_on_the_machine_are_listed_in_a_slot_beside_the_models_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed: list[bool] = []

    def evaluate_model(_runner: Runner, _model: NoModel, _function: object) -> tuple[str, ...]:
        listed.append(in_slot())
        return (f"model {len(listed)}",)

    monkeypatch.setattr(Runner, "evaluate_model", evaluate_model)
    found = [local_models((tmp_path,)), local_models((tmp_path,)), local_models((tmp_path,), 0), local_models(())]
    assert found == [("model 1",), ("model 1",), ("model 2",), ("model 3",)]
    assert listed == [True] * 3
