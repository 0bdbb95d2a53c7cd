"""Private names of transformers: all are there, a missing one is named, and none is used elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import transformers

from viz_core.hub.transformers_internals import private_names as self_test

HUB = Path(__file__).resolve().parents[3] / "viz_core" / "hub"
PRIVATE = re.compile(r"\._(attn|supports)_|MAPPING_NAMES|transformers\.(models|masking_utils|vision_utils|image_)")


def test_the_installed_version_has_every_name() -> None:
    assert self_test.missing() == []


@pytest.mark.parametrize(
    ("owner", "name", "lost"),
    [
        (transformers.PreTrainedModel, "_supports_sdpa", "no attention of a model of the hub is recorded"),
        (transformers.PreTrainedConfig, "_attn_implementation", "instrument() and restore() fail"),
    ],
)
def test_a_missing_name_is_said_with_what_does_not_work(
    owner: type, name: str, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(owner, name)
    self_test.warn_of_missing.cache_clear()
    with pytest.warns(RuntimeWarning, match=re.escape(lost)) as warned:
        self_test.warn_of_missing()
    assert any(f".{name}" in str(warning.message) for warning in warned)


def test_no_other_file_of_the_hub_uses_one() -> None:
    found = {
        str(path.relative_to(HUB))
        for path in HUB.rglob("*.py")
        if path.parent.name != "transformers_internals" and PRIVATE.search(path.read_text(encoding="utf-8"))
    }
    assert found == set()
