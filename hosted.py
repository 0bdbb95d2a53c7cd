"""The entry point of a public server, with the hosted profile: `python hosted.py`, or `make host`."""

import os

import streamlit as st
from streamlit import config

from serving.http import static_scripts as scripts
from serving.logs import configure_logging
from serving.process.home_folder import replace_unusable_home
from serving.process.lifecycle import ServerLifecycle
from serving.process.streamlit_options import profile
from serving.settings import validated_settings
from serving.uvicorn_internals.connection_limits import be_impatient
from ui.app import index_page as first_page
from ui.app.error_page import tell
from ui.app.middleware import guards, tidying
from ui.compute.slots import metrics, slots
from ui.streamlit_internals.run_end import hear_out
from ui.streamlit_internals.sessions import session_bytes, sessions
from ui.streamlit_internals.widget_messages import take_what_moved

os.environ.setdefault("ATLAS_HOSTED", "1")


def warm_up() -> None:
    """Imported once Streamlit runs: caches want to know of it, and a health check need not wait for libraries."""
    from ui.app.warm_up import warm_up

    warm_up()


def end() -> None:
    from ui.compute.models import end_workers

    end_workers()


configure_logging()
replace_unusable_home()
hear_out()
take_what_moved()
allowed = validated_settings()
be_impatient(allowed.max_message_kb * 2**10, allowed.slow_seconds, lambda why: metrics().count_rejection(why))
operations = ServerLifecycle(
    warm_up, slots, metrics, allowed.stop_seconds, metrics_address=allowed.metrics, clean_up=tidying(allowed), end=end
)
metrics().watch_sessions(sessions, session_bytes)
app = st.App(
    "ui/app/main.py",
    routes=[*operations.routes(), *scripts.routes(), *first_page.routes()],
    middleware=guards(allowed),
    lifespan=operations.lifespan,
    on_script_error=tell,
)

if __name__ == "__main__":
    # Secrets are left to Streamlit, which reads them from the environment itself.
    options = {name: option for name, option in config.get_config_options().items() if not option.sensitive}
    variables = {name: option.env_var for name, option in options.items()}
    app.run(config=profile(variables, kinds={name: option.type for name, option in options.items()}))
