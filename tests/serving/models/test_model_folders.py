"""Folders of models as users type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.requests.hub import find_folder
from viz_core.hub import HubError


def test_folders_the_host_allows(tmp_path: Path) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "models" / "way-out").symlink_to(tmp_path / "secret")
    roots = [tmp_path / "models"]
    assert find_folder("mine", roots) == tmp_path / "models" / "mine"
    assert find_folder(str(tmp_path / "models" / "mine"), roots) == tmp_path / "models" / "mine"
    refused = [
        "",
        "missing",
        str(tmp_path / "secret"),
        "../secret",
        "way-out",
        "mine/../../secret",
        "/",
        "a\0b",
        "x" * 5000,
        "~nobody-of-this-name/x",
    ]
    for typed in refused:
        with pytest.raises(HubError, match="not among the folders"):
            find_folder(typed, roots)
    with pytest.raises(HubError):
        find_folder("mine", [])
