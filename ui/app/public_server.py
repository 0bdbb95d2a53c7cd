"""The public server: the same app as at home, under the hosted profile."""

import streamlit as st
from streamlit import config as streamlit_config

from serving.environment import profile, replace_unusable_home
from serving.http import static_scripts
from serving.logs import configure_logging, log
from serving.process.lifecycle import ServerLifecycle
from serving.public_settings import hosted_settings, unknown_settings
from serving.uvicorn_internals.limits import install_limits
from serving.uvicorn_internals.self_test import missing as missing_in_uvicorn
from serving.uvicorn_internals.self_test import require_names
from ui.app import index_page
from ui.app.middleware import hosted_middleware, session_cleanup, show_error
from ui.compute.slots import metrics, slots
from ui.streamlit_internals.script_run import forbid_address_lookup, read_options_without_lock
from ui.streamlit_internals.self_test import missing as missing_in_streamlit
from ui.streamlit_internals.sessions import session_bytes, session_count


def warm_up() -> None:
    """Load the models; imported here, once Streamlit runs, so that a health check need not wait for libraries."""
    from ui.app.warm_up import warm_up

    warm_up()


def end() -> None:
    from ui.compute.models import end_workers

    end_workers()


configure_logging()
replace_unusable_home()
require_names([*missing_in_streamlit(), *missing_in_uvicorn()])
forbid_address_lookup()
read_options_without_lock()
for name in unknown_settings():
    log.warning("unknown setting", name=name)
allowed = hosted_settings(
    streamlit_config.get_option("server.port"), streamlit_config.get_option("server.enableXsrfProtection")
)
install_limits(
    allowed.max_message_kb * 2**10,
    allowed.max_messages,
    allowed.max_address_messages,
    allowed.slow_seconds,
    lambda why: metrics().count_rejection(why),
)
operations = ServerLifecycle(
    warm_up,
    slots,
    metrics,
    allowed.stop_seconds,
    metrics_address=allowed.metrics,
    clean_up=session_cleanup(allowed),
    end=end,
)
metrics().watch_sessions(session_count, session_bytes)
app = st.App(
    "ui/app/main.py",
    routes=[*operations.routes(), *static_scripts.routes(), *index_page.routes()],
    middleware=hosted_middleware(allowed),
    lifespan=operations.lifespan,
    on_script_error=show_error,
)


def run() -> None:
    """Serve until the process is told to stop."""
    # Secrets are left to Streamlit, which reads them from the environment itself.
    options = {name: option for name, option in streamlit_config.get_config_options().items() if not option.sensitive}
    variables = {name: option.env_var for name, option in options.items()}
    app.run(config=profile(variables, kinds={name: option.type for name, option in options.items()}))
