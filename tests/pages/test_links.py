"""What an address costs before a click: every page with every control at its extremes, and the click that waits."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from serving.compute.slots import Slots, in_slot, reset_singletons
from tests.pages.extremes import WORD, links
from tests.pages.reading import elements
from tests.visits import open_chapter
from ui.chapter.contents import all_pages
from ui.compute import slots as page_slots
from ui.text.words import ENGLISH, load_words

_LARGE = 1_200_000
"""Parameters from which a model is no example of a lesson, which a page may compute by itself."""

COMMON = load_words("common", ENGLISH)


def controls(app: AppTest) -> Iterator[tuple[str, Any]]:
    """The controls of a page, by their kind."""
    return ((child.type, child.proto) for child in elements(app._tree) if not hasattr(child, "children"))


@pytest.fixture
def only_in_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training, and models that are no small example, run in a slot alone, where a link's seconds are counted."""

    def guarded(original: Callable[..., Any], guards: Callable[..., bool]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            assert in_slot() or not guards(*args), "this computes outside of a slot, where no limit holds"
            return original(*args, **kwargs)

        return call

    def is_large(module: torch.nn.Module, *_: Any) -> bool:
        is_table = isinstance(module, torch.nn.Embedding)  # whose rows are looked up
        return not is_table and sum(each.numel() for each in module.parameters()) >= _LARGE

    monkeypatch.setattr(torch.Tensor, "backward", guarded(torch.Tensor.backward, lambda *_: True))
    monkeypatch.setattr(torch.nn.Module, "__call__", guarded(torch.nn.Module.__call__, is_large))


@pytest.mark.slow
@pytest.mark.attack("computations")
@pytest.mark.parametrize("page", all_pages())
@pytest.mark.usefixtures("only_in_slots")
def test_no_address_computes_outside_of_the_slots(page: str) -> None:
    def read(address: Mapping[str, str]) -> Iterable[tuple[str, Any]]:
        return controls(open_chapter(page, **address))

    assert [*links(read, largest=True)]


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A public server whose links may cost nothing: whatever is computed waits for a click."""
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_WORKERS", "0")
    monkeypatch.setattr(page_slots, "LINK_SECONDS", 0.0)
    reset_singletons()
    yield
    reset_singletons()


@pytest.mark.attack("computations")
@pytest.mark.usefixtures("hosted")
@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        ("transformer", {"t-text": WORD * 10, "t-search": "beam 4", "t-tree": "own"}),
        ("bahdanau", {"b-text": WORD * 20}),
        ("walk", {"w-start": WORD * 4}),
        ("scoring-functions", {}),
        ("learning", {"l-source": "own"}),
    ],
)
def test_what_a_link_cannot_pay_for_waits_for_a_click(
    page: str, parameters: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address stays as it is, and the click computes what it shows."""
    begun: list[str] = []
    submit = Slots.submit

    def counted(self: Slots, kind: str, *args: Any, **kwargs: Any) -> Any:
        begun.append(kind)
        return submit(self, kind, *args, **kwargs)

    monkeypatch.setattr(Slots, "submit", counted)
    app = open_chapter(page, **parameters)
    assert begun == []
    assert COMMON("link-waits", seconds="0") in [warning.value for warning in app.warning]
    address = {**app.query_params}
    app.button(key="compute").click().run()
    assert not app.exception
    assert begun
    assert not [button for button in app.button if button.key == "compute"]
    assert {**app.query_params} == address
