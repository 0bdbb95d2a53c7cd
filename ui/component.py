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

from viz_core.view.components import read_component

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


def component(name: str) -> Callable[..., Any]:
    """Declare the component in assets/components/NAME; what comes back mounts it under a `key`. Once, at import.

    Raises:
        ModuleError: if its scripts do not fit together.
    """
    files = read_component(name)
    code = st.components.v2.component(
        f"{name}_code",
        html="<div></div>",
        js=_CODE.format(name=json.dumps(name), markup=json.dumps(f"<style>{files.style}</style>{files.markup}")),
    )
    packed = gzip.compress(f"export default {files.show};".encode(), mtime=0)
    stub = st.components.v2.component(name, html='<div class="here"></div>', js=_STUB.format(name=json.dumps(name)))

    def mount(*, key: str, **arguments: Any) -> Any:
        code(key=f"component-code-{key}", data=packed)  # takes no room: see house.css
        return stub(key=key, **arguments)

    return mount
