"""The entry point on your own machine: `streamlit run app.py`, or `make run`."""

import streamlit as st
from starlette.middleware import Middleware

from serving.http import static_scripts as scripts
from serving.process.background import background_lifespan
from serving.process.home_folder import replace_unusable_home
from ui.app import index_page as first_page
from ui.streamlit_internals.run_end import hear_out
from ui.streamlit_internals.stale_fragments import LeftPages
from ui.streamlit_internals.widget_messages import take_what_moved


def prepare() -> None:
    """Once the first page has gone out, import what the next needs, load the model most of them use; then the rest."""
    from ui.app.warm_up import load_first, load_later

    load_first()
    load_later()


replace_unusable_home()
hear_out()
take_what_moved()
app = st.App(
    "ui/app/main.py",
    routes=[*scripts.routes(), *first_page.routes()],
    middleware=[Middleware(LeftPages)],
    lifespan=background_lifespan(prepare),
)
