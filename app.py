"""The door for yourself: `streamlit run app.py`, or `make run`."""

import streamlit as st
from starlette.middleware import Middleware

from hosting import scripts
from hosting.background import in_background
from hosting.home import leave_no_home
from ui import first_page
from ui.heard import hear_out
from ui.left_pages import LeftPages
from ui.moved import take_what_moved


def prepare() -> None:
    """Once the first page has gone out, import what the next needs, load the model most of them use; then the rest."""
    from ui.warm import load_first, load_later

    load_first()
    load_later()


leave_no_home()
hear_out()
take_what_moved()
app = st.App(
    "ui/door.py",
    routes=[*scripts.routes(), *first_page.routes()],
    middleware=[Middleware(LeftPages)],
    lifespan=in_background(prepare),
)
