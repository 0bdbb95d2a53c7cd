"""Writers of a view to a file, by the ending of its name."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from viz_core.view.notebook_file import recorded_notebook
from viz_core.view.page import view_page
from viz_core.view.payload import View
from viz_core.view.state import ViewState


def write_view(view: View, state: ViewState, path: Path, grid: bool = False, link: str = "", live: str = "") -> None:
    """Write a view: the whole as a page that opens without a server, or as a notebook, or the open map, or every head,
    as a figure.
    """
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ValueError(f"path: expected a name that ends in {', '.join(WRITERS)}, got {path.name!r}")
    if grid and writer is not _write_figure:
        raise ValueError(f"grid: a page or notebook holds every head as it is; expected a figure, got {path.name!r}")
    if not live:
        writer(view, state, path, grid, link)
    elif writer is _write_page and not link:
        from viz_core.view.live import live_page  # loads the models

        path.write_text(live_page(view, state, live), encoding="utf-8")
    else:
        raise ValueError(f"live: expected a name that ends in .html, and no link, got {path.name!r}")


def _write_page(view: View, state: ViewState, path: Path, _grid: bool, link: str) -> None:
    path.write_text(view_page(view, state, "Attention", link=link), encoding="utf-8", errors="surrogatepass")


def _write_figure(view: View, state: ViewState, path: Path, grid: bool, link: str) -> None:
    if find_spec("matplotlib") is None:
        raise ImportError("figures are drawn by matplotlib: pip install 'attention-atlas[notebook]'")
    from viz_core.view.matplotlib_figure import write_figure  # the extra "notebook"

    write_figure(view, state, path, grid, link)


def _write_notebook(view: View, state: ViewState, path: Path, _grid: bool, _link: str) -> None:
    path.write_bytes(recorded_notebook(view, state))


WRITERS: dict[str, Callable[[View, ViewState, Path, bool, str], None]] = {
    ".html": _write_page,
    ".ipynb": _write_notebook,
    ".svg": _write_figure,
    ".pdf": _write_figure,
    ".png": _write_figure,
}
"""What writes files of each ending."""
