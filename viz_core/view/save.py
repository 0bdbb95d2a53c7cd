"""Writers of a view to a file, by the ending of its name."""

from importlib.util import find_spec
from pathlib import Path

from viz_core.view.notebook_file import recorded_notebook
from viz_core.view.page import view_page
from viz_core.view.payload import View
from viz_core.view.state import ViewState

_FIGURES = (".svg", ".pdf", ".png")


def write_view(view: View, state: ViewState, path: Path, grid: bool = False, link: str = "", live: str = "") -> None:
    """Write a view: the whole as a page that opens without a server, or as a notebook, or the open map, or every head,
    as a figure.
    """
    ending = path.suffix.lower()
    if ending not in (".html", ".ipynb", *_FIGURES):
        raise ValueError(f"path: expected a name that ends in .html, .ipynb, {', '.join(_FIGURES)}, got {path.name!r}")
    if grid and ending not in _FIGURES:
        raise ValueError(f"grid: a page or notebook holds every head as it is; expected a figure, got {path.name!r}")
    if live and (link or ending != ".html"):
        raise ValueError(f"live: expected a name that ends in .html, and no link, got {path.name!r}")
    if live:
        from viz_core.view.live import live_page  # loads the models

        path.write_text(live_page(view, state, live), encoding="utf-8")
    elif ending == ".html":
        path.write_text(view_page(view, state, "Attention", link=link), encoding="utf-8", errors="surrogatepass")
    elif ending == ".ipynb":
        path.write_bytes(recorded_notebook(view, state))
    elif find_spec("matplotlib") is None:
        raise ImportError("figures are drawn by matplotlib: pip install 'attention-atlas[notebook]'")
    else:
        from viz_core.view.matplotlib_figure import write_figure  # the extra "notebook"

        write_figure(view, state, path, grid, link)
