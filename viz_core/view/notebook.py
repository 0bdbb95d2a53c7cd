"""The attention view outside the app: what is shown, what of it is open, and the frame that shows it in a notebook."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from viz_core.view.components import view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.save import require_figures, saved_view
from viz_core.view.state import DisplayOptions, ViewState, reopened, site_of_state
from viz_core.view.static_pictures import static_forms
from viz_core.view.visible_map import Positions

if TYPE_CHECKING:
    from viz_core.view.matplotlib_figure import PaperFigure


class ViewHandle:
    """Base of the frame and the widget: groups of maps and the state of what is open."""

    view: View  # the kinds of maps, each a tab, and the words around them
    state: ViewState

    def __init__(
        self,
        groups: Sequence[MapGroup],
        state: ViewState | None = None,
        second: Sequence[MapGroup] = (),
        inputs: tuple[str, str] = ("A", "B"),
        language: str = "en",
    ) -> None:
        """`groups`, `second`, `inputs` and `language` are as in `View`; without a `state` the first head opens."""
        self.view = View(groups, view_words(language), second, inputs, language)
        self.state = state or ViewState(groups[0].id, 0, 0)

    @property
    def groups(self) -> Sequence[MapGroup]:
        """The kinds of maps, each a tab."""
        return self.view.groups

    def open_head(
        self,
        site: str | None = None,
        head: int | None = None,
        pins: Sequence[str] | str | None = None,
        display: DisplayOptions | Mapping[str, str] | None = None,
    ) -> None:
        """Open another head (counted from 0), pin other tokens ("q3", "k0") or change display options; the rest stays.

        Raises:
            ValueError: if there is no such site, head, token or look.
        """
        self._show_state(reopened(self.groups, self.state, site=site, head=head, pins=pins, display=display))

    def _show_state(self, state: ViewState) -> None:
        self.state = state

    @property
    def site(self) -> str:
        """The site of the call whose head is open."""
        return site_of_state(self.groups, self.state)

    @site.setter
    def site(self, site: str) -> None:
        self.open_head(site=site)

    @property
    def head(self) -> int:
        """The open head, counted from 0."""
        return self.state.head

    @head.setter
    def head(self, head: int) -> None:
        self.open_head(head=head)

    @property
    def pins(self) -> tuple[str, ...]:
        """The pinned tokens, queries ("q3") or keys ("k0")."""
        return tuple(map(str, self.state.pins))

    @pins.setter
    def pins(self, pins: Sequence[str] | str) -> None:
        self.open_head(pins=pins)

    @property
    def display(self) -> DisplayOptions:
        """How the open head is displayed."""
        return self.state.display

    @display.setter
    def display(self, display: DisplayOptions | Mapping[str, str]) -> None:
        self.open_head(display=display)

    def page(self) -> str:
        """The view as one HTML page that needs nothing else."""
        return saved_view(self.view, self.state, ".html").decode("utf-8", errors="surrogatepass")

    def save(
        self, path: str | Path, *, grid: bool = False, link: str = "", live: bool | str = False, map_only: bool = False
    ) -> None:
        """Write the view to a file, by the ending of its name.

        ".html" is the whole view as a page that needs no Python; ".ipynb" is a notebook that carries the recording and
        opens the same head, pins and look, from any folder; ".svg", ".pdf" and ".png" are the open map as a figure
        for a paper, with its tokens, in the colours it is looked at (the extra "notebook").

        Args:
            grid: the figure shows every head of the open kind, each a thumbnail.
            link: where the same view opens, for who has only the file: the address the app has for it, say.
            live: a ".html" whose model runs in the browser: a frame of the site without a server (docs/site.md) at this
                address; True means in the folder "site" beside the file. A web server must serve both.
            map_only: this frame shows the open map and its words, without the other heads and the controls.

        Raises:
            ValueError: if nothing is written with this ending, the message names what is; or if the recording is too
                large for a notebook.
            ImportError: if figures are not installed.
        """
        path, site = Path(path), "site" if live is True else live or ""
        ending = path.suffix.lower()
        content = saved_view(
            self.view, self.state, ending, title="Attention", link=link, live=site, map_only=map_only, grid=grid
        )
        path.write_bytes(content)

    def figure(
        self,
        *,
        width_mm: float | None = None,
        font: str | None = None,
        rows: Positions = None,
        keys: Positions = None,
        labels: Mapping[str, Sequence[str]] | None = None,
        title: str | None = None,
        grid: bool = False,
    ) -> "PaperFigure":
        """Return the open map as a figure of matplotlib, to be changed and saved: `figure.savefig("map.pdf")`.

        Its text is 7 points at every width, and text also in PDF and SVG, where a font that the reader lacks is
        replaced by another. Needs the extra "notebook".

        Args:
            width_mm: width of the figure in mm, such as 84 for a column; a token has 7 mm unless given.
            font: the family of the text, one that is installed.
            rows: a block of the map: positions of queries from 0, a slice or a list, in the order they are drawn. The
                weights stay what they are: a row sums to 1 over all keys, also those that are left out.
            keys: the same for the keys.
            labels: names of one's own in place of tokens, for each that is drawn: {"queries": [...], "keys": [...]}.
            title: above the map; "" leaves it out.
            grid: every head of the open kind, each a thumbnail.

        Raises:
            ValueError: if there are no such positions, as many labels or such a font.
            ImportError: if figures are not installed.
        """
        require_figures()
        from viz_core.view.matplotlib_figure import grid_figure, map_figure

        if not grid:
            return map_figure(
                self.view, self.state, width_mm=width_mm, font=font, block=(rows, keys), labels=labels, title=title
            )
        if (rows, keys, labels) != (None, None, None):
            raise ValueError("grid: expected neither rows, keys nor labels")
        return grid_figure(self.view, self.state, width_mm=width_mm, font=font, title=title)

    def __repr__(self) -> str:
        """What is open and how much there is, in a line."""
        heads = sum(len(group.heads) for group in self.groups)
        site = site_of_state(self.groups, self.state)
        return f"{type(self).__name__}({site}, head {self.state.head}, one of {heads})"


class AttentionView(ViewHandle):
    """Maps in a self-contained frame that a notebook displays as the value of a cell."""

    height = 900  # of the frame in a notebook, in pixels

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        # A frame of its own keeps the notebook's styles and the view's apart.
        page = html.escape(self.page(), quote=True)
        style = f"width: 100%; height: {self.height}px; border: 0"
        frame = f'<iframe srcdoc="{page}" onload="this.nextElementSibling.hidden = true" style="{style}"></iframe>'
        forms = static_forms(self.view, self.state)
        return {**forms, "text/html": f"{frame}<div>{forms['text/html']}</div>", "text/plain": repr(self)}
