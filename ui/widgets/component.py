"""Components of our own: plain HTML, CSS and JavaScript from assets/components, no build step.

Streamlit sends a component's markup, style and scripts again with every change of its data. So what it is told is a
stub, which imports the component's script (serving/http/static_scripts.py) and hands the data to it. The browser
caches that script.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import streamlit as st

from serving.http.static_scripts import script
from ui.text.words import ENGLISH, languages, load_words

# Data that comes while the script is on its way waits for it, in turn. One that never comes leaves a sentence.
_STUB = """
let script;
export default async function (component) {{
  const here = () => component.parentElement.querySelector(".here");
  try {{
    script ??= await import(new URL({address}, document.baseURI));
  }} catch {{
    const said = {sentences}, language = navigator.language;
    if (here()) here().textContent = said[language] ?? said[language.split("-")[0]] ?? said.{english};
    return undefined;
  }}
  if (!here()) return undefined;
  if (!here().firstElementChild) here().innerHTML = script.markup;
  return script.show(component);
}}
"""


def component(name: str, *, in_page: bool = False) -> Callable[..., Any]:
    """Declare the component in assets/components/NAME; what comes back mounts it under a `key`. Once, at import.

    Args:
        in_page: it stands in the page itself, and not in a shadow that keeps styles of the page out and its own in.

    Raises:
        AssetError: if a file of it is missing.
    """
    said = {language: load_words("common", language)("no-script") for language in languages()}
    js = _STUB.format(
        address=json.dumps(script(name).address), sentences=json.dumps(said, ensure_ascii=False), english=ENGLISH
    )
    return st.components.v2.component(name, html='<div class="here"></div>', js=js, isolate_styles=not in_page)
