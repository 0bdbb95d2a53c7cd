"""The attention view as one HTML file that holds its markup, style, scripts and data."""

import base64
import html

from viz_core.view.components import read_component
from viz_core.view.figure_caption import made_lines
from viz_core.view.payload import View, encode_view
from viz_core.view.preload import every_request
from viz_core.view.state import ViewState
from viz_core.view.theme import DARK, LIGHT

PAGE_BYTES = 8 * 2**20
"""A file holds all thumbnails, and exact maps up to so many bytes."""

_THEME = f"""
:root {{ color-scheme: light dark; {LIGHT}}}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK}}} }}
body {{ margin: 0; padding: 1rem; background: var(--st-background-color); }}
header {{ margin-bottom: 1rem; color: var(--st-text-color); font: 0.9rem sans-serif; overflow-wrap: anywhere; }}
h1 {{ margin: 0; font-size: 1.2rem; }}
header p {{ margin: 0.25rem 0 0; }}
footer {{ margin-top: 1rem; font: 0.8rem sans-serif; overflow-wrap: anywhere; }}
footer a {{ color: var(--st-primary-color); }}
"""

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>{canonical}
<style>{theme}{style}</style>
</head>
<body>{head}
<main id="here">{markup}</main>{foot}
<script type="application/octet-stream" id="data">{data}</script>
<script type="module">
const show = {show};
const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (c) => c.charCodeAt(0));
const redraw = () => show({{ data: bytes, parentElement: document.getElementById("here") }});
redraw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
</script>
</body>
</html>
"""


def view_page(view: View, state: ViewState, title: str = "", most_bytes: int = PAGE_BYTES, link: str = "") -> str:
    """Return an HTML page that shows the view and loads nothing from elsewhere.

    Args:
        view: what there is.
        state: what it opens with.
        title: stands above the view with the model and the text of each input; without it the page has no heading. The
            browser's tab shows it with the model's name.
        most_bytes: so many bytes of exact maps go in; the other heads stay thumbnails.
        link: where the same view opens, if it does; told at the foot and by what is saved from the page.
    """
    if link and not link.startswith(("https://", "http://")):
        raise ValueError(f"link: expected an address that begins with https:// or http://, got {link[:80]!r}")
    address = html.escape(link, quote=True)
    wants = every_request(view.groups, view.second, most_bytes)
    data = encode_view(view, state, wants=wants, most_wants=len(wants), offline=True)
    component = read_component("attention_view")
    names = dict.fromkeys((title or "Attention", *(group.made.model for group in view.groups)))
    made = "".join(f"<p>{html.escape(line)}</p>" for line in made_lines(view, state, range(2 if view.second else 1)))
    return _PAGE.format(
        language=html.escape(view.language, quote=True),
        title=html.escape(" · ".join(filter(None, names))),
        head=f"\n<header><h1>{html.escape(title)}</h1>{made}</header>" if title else "",
        canonical=f'<link rel="canonical" href="{address}">' if link else "",
        foot=f'<footer><a href="{address}">{address}</a></footer>' if link else "",
        theme=_THEME,
        style=component.style,
        markup=component.markup,
        data=base64.b64encode(data).decode("ascii"),
        show=component.show,
    )
