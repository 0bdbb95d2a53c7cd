"""The entry point for yourself: `streamlit run app.py`, or `make run`."""

import streamlit as st

from serving.environment import replace_unusable_home
from serving.http import static_scripts
from serving.logs import log
from serving.process.background import background_lifespan
from ui.app import index_page
from ui.app.local_middleware import local_middleware
from ui.streamlit_internals import self_test
from ui.streamlit_internals.script_run import build_theme_once, forbid_address_lookup, read_options_without_lock


def prepare() -> None:
    """Once the first page is sent, import what the next needs, load the model most of them use; then the rest."""
    from ui.app.warm_up import load_first, load_later

    load_first()
    load_later()


replace_unusable_home()
forbid_address_lookup()
read_options_without_lock()
build_theme_once()
for name in self_test.missing():
    log.warning("this version of Streamlit lacks a private name", name=name.path, without_it=name.without)
app = st.App(
    "ui/app/main.py",
    routes=[*static_scripts.routes(), *index_page.routes()],
    middleware=[index_page.front_end_files(), *local_middleware()],
    lifespan=background_lifespan(prepare),
)
