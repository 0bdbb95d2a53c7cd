"""What a page says, read by its tests."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def texts(app: AppTest) -> str:
    """All it says, without the backslashes that keep Markdown from reading more into it."""
    elements = [*app.markdown, *app.caption, *app.warning, *app.error, *app.info]
    return "\n".join(element.value for element in elements).replace("\\", "")


def claims(app: AppTest) -> list[str]:
    """The claims, each with its badge: green where it holds."""
    return [m.value for m in app.markdown if m.value.startswith((":green[", ":orange["))]
