"""Names of models as users type them."""

import re

from viz_core.hub.store.errors import HubError

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_PART}(?:/{_PART})?")
_PATH = re.compile(r"[./~]|.:|.*(\\|\.\.|/.*/)", re.DOTALL)
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,127}")
_SHOWN = 60


def check_name(name: str) -> str:
    """A name as the Hub gives them, "owner/model" or "model", without spaces around it."""
    name = name.strip()
    if not name:
        raise HubError("Type the name of a model, like google-bert/bert-base-uncased.")
    if "://" in name or name.lower().startswith(("www.", "huggingface.co", "hf.co")):
        raise HubError(
            "{typed} is an address. Type only the model's name, like google-bert/bert-base-uncased: the last "
            "two parts of its address on the Hub.",
            typed=shown(name),
        )
    if _PATH.match(name):
        raise HubError(
            "{typed} is a path, not the name of a model. Names look like google-bert/bert-base-uncased; from "
            "Python, a folder is given as a Path: load_hub(Path(...)).",
            typed=shown(name),
        )
    if not _NAME.fullmatch(name) or "--" in name or name.endswith(".git"):
        raise HubError(
            "{typed} is not a model's name. A name has letters, digits, '-', '_' and '.', and at most one '/' "
            "between owner and model.",
            typed=shown(name),
        )
    return name


def check_revision(revision: str | None) -> str | None:
    """A branch, tag or commit; None for the newest."""
    revision = (revision or "").strip()
    if not revision:
        return None
    if not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision:
        raise HubError(
            "{typed} is not a revision. Give a branch, a tag or a commit, or leave it empty.", typed=shown(revision)
        )
    return revision


def shown(text: str) -> str:
    """What was typed, quoted, short enough for a sentence and without what cannot be seen."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.strip())
    return f"“{visible}”" if len(visible) <= _SHOWN else f"“{visible[:_SHOWN]}…”"
