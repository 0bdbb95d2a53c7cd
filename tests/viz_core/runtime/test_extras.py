"""What is asked of an installation before what an extra brings is used."""

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from viz_core import instrument, load_hub
from viz_core.hub.load import import_transformers
from viz_core.runtime.packages import require

THERE = {"streamlit": "1.67.2", "transformers": "4.57.1", "huggingface-hub": "2.4.0"}
REQUIRES = [
    "torch>=2.7",
    "transformers<6,>=5.20; extra == 'hub'",
    "huggingface-hub<3,>=2; extra == 'hub'",
    "tqdm>=4.66; extra == 'hub'",
    "streamlit<2,>=1.67; extra == 'app'",
    "colorama; (sys_platform == 'abacus') and extra == 'app'",
]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installation by somebody who has an older transformers."""

    def version(name: str) -> str:
        if name not in THERE:
            raise importlib.metadata.PackageNotFoundError(name)
        return THERE[name]

    monkeypatch.setattr("viz_core.runtime.packages.requires", lambda _: REQUIRES)
    monkeypatch.setattr("viz_core.runtime.packages.version", version)
    require.cache_clear()
    yield
    require.cache_clear()


@pytest.mark.usefixtures("installed")
def test_what_is_missing_or_too_old_is_named() -> None:
    require("app")
    require("hub", "huggingface-hub")
    with pytest.raises(ImportError) as refused:
        require("hub")
    assert str(refused.value) == (
        "expected transformers<6,>=5.20 (4.57.1 is installed), tqdm>=4.66 (none is installed): "
        "pip install 'attention-atlas[hub]'"
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("use", [lambda: load_hub("org/model"), lambda: instrument(torch.nn.Linear(2, 2))])
def test_whoever_needs_transformers_is_told_how_to_get_it(use: Any) -> None:
    with pytest.raises(
        ImportError, match=r"expected transformers<6,>=5.20 \(4.57.1 is.*pip install 'attention-atlas\[hub\]'"
    ):
        use()


def test_a_checkout_was_not_installed_and_is_not_asked() -> None:
    import_transformers()
