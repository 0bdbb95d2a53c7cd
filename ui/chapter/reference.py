"""Where the documentation site describes the code that a chapter shows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from serving.settings import settings


def reference_address(function: Callable[..., Any]) -> str | None:
    """Return the address of a public name's reference; None if no site is set or the name is not public.

    A name is described on the page of the innermost package around its module that lists it in `__all__`.
    """
    site, module, name = settings().docs, function.__module__, function.__name__
    parts = module.split(".")
    packages = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    package = next((each for each in packages if name in getattr(sys.modules.get(each), "__all__", ())), None)
    if not site or package is None or module.startswith("viz_core.lessons."):  # these are a chapter's own
        return None
    page = package.partition(".")[2] or "index"
    return f"{site.rstrip('/')}/reference/{page}.html#{module}.{name}"
