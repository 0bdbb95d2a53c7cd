"""Our own components: plain HTML, CSS and JavaScript from assets/components, without a build step.

Streamlit sends a component's markup, style and scripts again with every change of its data. So it is given a stub that
imports the component's script (serving/http/static_scripts.py), which the browser caches, and passes the data to it.
"""

import json
from collections.abc import Callable
from typing import Any

import streamlit as st

from serving.http.static_scripts import script
from ui.text.words import ENGLISH, languages, load_words

# Data that arrives while the script loads waits for it. If it cannot be loaded, a sentence says so.
_STUB = """
let script;
export default async function (component) {{
  const parent = component.parentElement;
  const here = () => parent.querySelector(".here");
  const mount = (parent.host ?? parent).closest('[data-testid^="stBidiComponent"]');
  const settle = () => mount?.setAttribute("data-settled", ""); // what is below it may be shown
  try {{
    script ??= await import(new URL({address}, document.baseURI));
  }} catch {{
    const messages = {sentences}, language = navigator.language;
    if (here()) here().textContent = messages[language] ?? messages[language.split("-")[0]] ?? messages.{english};
    settle();
    return undefined;
  }}
  if (!here()) return undefined;
  if (!here().firstElementChild) here().innerHTML = script.markup;
  const shown = script.show(component);
  settle();
  return shown;
}}
"""


def component(name: str, *, in_page: bool = False) -> Callable[..., Any]:
    """Declare the component in assets/components/NAME; return the function that mounts it. Call it at import.

    Args:
        in_page: put it in the page itself instead of a shadow root, which separates its styles from the page's.

    Raises:
        AssetError: if a file of it is missing.
    """
    messages = {language: load_words("common", language)("no-script") for language in languages()}
    js = _STUB.format(
        address=json.dumps(script(name).address), sentences=json.dumps(messages, ensure_ascii=False), english=ENGLISH
    )
    return st.components.v2.component(name, html='<div class="here"></div>', js=js, isolate_styles=not in_page)
