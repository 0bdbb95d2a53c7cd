"""Components of our own: plain HTML, CSS and JavaScript from assets/components, no build step.

Streamlit sends a component's markup, style and scripts again with every change of its data. So
each component comes as two: its code, whose message never changes and therefore crosses the wire
once a session, and a stub that hands the data to it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import streamlit as st

from viz_core.runtime.assets import ASSETS

_HOME = ASSETS / "components"

# The scripts come packed, as bytes, which takes a quarter of their size.
_CODE = """
const load = async (bytes) => {{
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = new Response(unpacked, {{ headers: {{ "Content-Type": "text/javascript" }} }});
  const address = URL.createObjectURL(await script.blob());
  const {{ default: show }} = await import(address);
  URL.revokeObjectURL(address);
  const all = globalThis.atlasComponents;
  const {{ waiting }} = all[{name}];
  all[{name}] = {{ show, markup: {markup} }};
  waiting.forEach((start) => start());
}};
export default function ({{ data }}) {{
  const own = ((globalThis.atlasComponents ??= {{}})[{name}] ??= {{ waiting: [] }});
  if (!own.show && !own.loading) own.loading = load(data);
}}
"""

_STUB = """
export default function (component) {{
  const all = (globalThis.atlasComponents ??= {{}});
  const own = (all[{name}] ??= {{ waiting: [] }});
  const {{ parentElement }} = component;
  let end;
  const start = () => {{
    const {{ show, markup }} = all[{name}];
    const here = parentElement.querySelector(".here");
    if (here && !here.firstChild) here.innerHTML = markup;
    end = here && show(component);
  }};
  if (own.show) start();
  else own.waiting.push(start);
  return () => end?.();
}}
"""


def component(name: str, *scripts: str) -> Callable[..., Any]:
    """Declare the component in assets/components/NAME; what comes back mounts it under a `key`. Once, at import.

    Args:
        scripts: files without ".js", of NAME or, as "shared/FILE", of all components. Each holds one
            idea; they are joined into the one module Streamlit takes, so what is used comes first.
    """
    folder = _HOME / name
    files = [(_HOME if script.startswith("shared/") else folder) / f"{script}.js" for script in scripts]
    joined = "\n".join(file.read_text(encoding="utf-8") for file in files)
    markup = (folder / "view.html").read_text(encoding="utf-8")
    style = (folder / "style.css").read_text(encoding="utf-8")
    code = st.components.v2.component(
        f"{name}_code",
        html="<div></div>",
        js=_CODE.format(name=json.dumps(name), markup=json.dumps(f"<style>{style}</style>{markup}")),
    )
    packed = gzip.compress(joined.encode(), mtime=0)
    stub = st.components.v2.component(name, html='<div class="here"></div>', js=_STUB.format(name=json.dumps(name)))

    def mount(*, key: str, **arguments: Any) -> Any:
        code(key=f"component-code-{key}", data=packed)  # takes no room: see house.css
        return stub(key=key, **arguments)

    return mount
