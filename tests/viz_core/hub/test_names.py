"""Names people type, and folders hosts allow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz_core.hub import HubError, check_name, check_revision, load_hub


@pytest.mark.parametrize(
    "name", ["gpt2", "google-bert/bert-base-uncased", "Helsinki-NLP/opus-mt-en-fr", "a/b", "x/y_1.5", " gpt2 "]
)
def test_names_as_the_hub_gives_them(name: str) -> None:
    assert check_name(name) == name.strip()


@pytest.mark.attack("names of models")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "Type the name"),
        ("   ", "Type the name"),
        ("https://huggingface.co/gpt2", "is an address"),
        ("huggingface.co/gpt2", "is an address"),
        ("file:///etc/passwd", "is an address"),
        ("/etc/passwd", "is a path"),
        ("../secret", "is a path"),
        ("a/../b", "is a path"),
        ("./model", "is a path"),
        ("~/model", "is a path"),
        ("C:\\models", "is a path"),
        ("C:/models", "is a path"),
        ("a\\b", "is a path"),
        ("a/b/c", "is a path"),
        ("a b", "is not a model's name"),
        ("-rf", "is not a model's name"),
        ("a--b", "is not a model's name"),
        ("owner/model.git", "is not a model's name"),
        ("models\0/x", "is not a model's name"),
        ("<script>alert(1)</script>", "is not a model's name"),
        ("a" * 200, "is not a model's name"),
        ("مرحبا", "is not a model's name"),
        ("😀", "is not a model's name"),
    ],
)
def test_what_is_no_name_is_one_sentence(name: str, why: str) -> None:
    with pytest.raises(HubError, match=why) as error:
        load_hub(name)
    assert len(str(error.value)) < 300
    assert "\0" not in str(error.value)
    assert "\n" not in str(error.value)


def test_who_has_a_folder_is_told_how_to_give_it() -> None:
    with pytest.raises(HubError, match=r"“/a/folder” is a path, .*a folder is given as a Path: load_hub\(Path"):
        load_hub("/a/folder")


@pytest.mark.attack("names of models")
@given(st.text(max_size=60))
def test_whatever_is_typed_is_a_plain_name_or_an_error(typed: str) -> None:
    try:
        name = check_name(typed)
    except HubError:
        return
    assert ".." not in name
    assert not Path(name).is_absolute()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./")


@pytest.mark.parametrize("revision", [None, "", "  "])
def test_no_revision_is_the_newest(revision: str | None) -> None:
    assert check_revision(revision) is None


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/3", "0123456789abcdef0123456789abcdef01234567"])
def test_revisions(revision: str) -> None:
    assert check_revision(revision) == revision


@pytest.mark.attack("names of models")
@pytest.mark.parametrize("revision", ["../main", "a b", "-x", "main\n", "a//b", "x" * 200, "?ref=1"])
def test_what_is_no_revision(revision: str) -> None:
    if revision.strip() == "main":
        assert check_revision(revision) == "main"
        return
    with pytest.raises(HubError, match="is not a revision"):
        check_revision(revision)
