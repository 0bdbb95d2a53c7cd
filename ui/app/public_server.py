"""The public server: the same app as at home, under the hosted profile; in several processes where HAProxy is there."""

import gc
import logging
import os
import signal
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit import config as streamlit_config

from serving.environment import profile, replace_unusable_home
from serving.http import static_scripts
from serving.logs import configure_logging, log
from serving.process.front import TRUSTED, configuration, find_haproxy, trusted_proxies
from serving.process.lifecycle import ServerLifecycle
from serving.process.supervisor import divided, reserve_ports, supervise
from serving.public_settings import hosted_settings, unknown_settings
from serving.settings import Settings
from serving.uvicorn_internals.limits import install_limits
from serving.uvicorn_internals.self_test import missing as missing_in_uvicorn
from serving.uvicorn_internals.self_test import require_names
from ui.app import index_page
from ui.app.middleware import announce_restart, hosted_middleware, session_cleanup, show_error
from ui.compute.slots import metrics, slots
from ui.streamlit_internals.script_run import build_theme_once, forbid_address_lookup, read_options_without_lock
from ui.streamlit_internals.self_test import missing as missing_in_streamlit
from ui.streamlit_internals.sessions import session_bytes, session_count


def run() -> None:
    """Serve until the process is told to stop."""
    configure_logging()
    replace_unusable_home()
    require_names([*missing_in_streamlit(), *missing_in_uvicorn()])
    forbid_address_lookup()
    read_options_without_lock()
    build_theme_once()
    for name in unknown_settings():
        log.warning("unknown setting", name=name)
    allowed = hosted_settings(_option("server.port"), _option("server.enableXsrfProtection"))
    haproxy = find_haproxy()
    if allowed.processes == 1:
        _serve(allowed)
    elif haproxy is None:
        log.warning("HAProxy is not installed: one process serves all pages, on one core")
        _serve(allowed)
    elif _option("server.sslCertFile"):
        log.warning("with server.sslCertFile one process serves all pages, on one core: leave TLS to a proxy")
        _serve(allowed)
    else:
        _serve_in_processes(allowed, haproxy)


def _profile() -> dict[str, Any]:
    """Return the options of the hosted profile and the environment."""
    # Secrets are left to Streamlit, which reads them from the environment itself.
    options = {name: option for name, option in streamlit_config.get_config_options().items() if not option.sensitive}
    variables = {name: option.env_var for name, option in options.items()}
    return profile(variables, kinds={name: option.type for name, option in options.items()})


def _option(name: str) -> Any:
    """Return what an option will be once Streamlit runs with the profile."""
    return _profile().get(name, streamlit_config.get_option(name))


def _serve(allowed: Settings) -> None:
    """Serve pages from this process."""
    install_limits(
        allowed.max_message_kb * 2**10,
        allowed.max_messages,
        allowed.max_address_messages,
        allowed.slow_seconds,
        lambda why: metrics().count_rejection(why),
    )
    operations = ServerLifecycle(
        _warm_up,
        slots,
        metrics,
        allowed.stop_seconds,
        metrics_address=allowed.metrics,
        clean_up=session_cleanup(allowed),
        end=_end,
        announce_stop=announce_restart,
    )
    metrics().watch_sessions(session_count, session_bytes)
    app = st.App(
        "ui/app/main.py",
        routes=[*operations.routes(), *static_scripts.routes(), *index_page.routes()],
        middleware=hosted_middleware(allowed),
        lifespan=operations.lifespan,
        on_script_error=show_error,
    )
    app.run(config=_profile())


def _warm_up() -> None:
    """Load the models; imported here, once Streamlit runs, so that a health check need not wait for libraries."""
    from ui.app.warm_up import warm_up

    warm_up()


def _end() -> None:
    from ui.compute.models import end_workers

    end_workers()


def _serve_in_processes(allowed: Settings, haproxy: str) -> None:
    """Serve pages from several processes behind HAProxy, and end with the signal that stopped them."""
    _share_libraries(allowed.workers > 0)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as until:
        ports = reserve_ports(allowed.processes, until)
        front, pool = Path(folder, "haproxy.cfg"), str(Path(folder, "pool"))
        visitors = _option("server.address"), _option("server.port")
        text = configuration(allowed, *visitors, ports, _option("server.xsrfCookieSameSite"))
        front.write_text(text, encoding="utf-8")
        own_pool = allowed.workers > 0 and allowed.runner == "here"
        environment = divided(allowed, allowed.processes) | {
            TRUSTED: f"{trusted_proxies()},127.0.0.1",
            "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
            "STREAMLIT_SERVER_COOKIE_SECRET": streamlit_config.get_option("server.cookieSecret"),
        }
        stopped_by = supervise(
            partial(os.execv, haproxy, [haproxy, "-db", "-f", str(front)]),
            [
                partial(_serve_as_one, _address(allowed, number), port, environment, pool if own_pool else "")
                for number, port in enumerate(ports)
            ],
            {"models": partial(_serve_models, pool, allowed)} if own_pool else {},
            allowed.stop_seconds,
            ports,
        )
    signal.signal(stopped_by, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [stopped_by])
    signal.raise_signal(stopped_by)


def _share_libraries(has_workers: bool) -> None:
    """Import what pages need and load models: forks share both until they write to them."""
    logging.disable(logging.WARNING)  # Streamlit says of each cache that no server runs yet
    import torch

    import ui.app.warm_up  # noqa: F401
    from serving.runners.worker import can_fork, load_shipped
    from ui.compute.models import registry, translator_or_none

    logging.disable(logging.NOTSET)
    torch.set_num_threads(1)  # the library of its threads survives no fork once it has started them
    if can_fork() and has_workers:
        translator_or_none("transformer-en-fr")  # whose parameters pages read; all other models are the workers'
    elif can_fork():
        load_shipped(registry())
    gc.collect()
    gc.freeze()


def _address(allowed: Settings, number: int) -> str:
    """Return where one of several processes serves its metrics."""
    host, _, first = allowed.metrics.rpartition(":")
    return f"{host}:{int(first) + number}" if first else ""


def _serve_as_one(metrics_address: str, port: int, environment: dict[str, str], pool: str) -> None:
    """Serve pages from this process, one of several, with its share of the limits."""
    from ui.compute.models import share_pool

    os.environ.update(environment)
    os.environ["STREAMLIT_SERVER_PORT"] = str(port)
    os.environ["ATLAS_METRICS"] = metrics_address
    if pool:
        share_pool(pool)
    _serve(hosted_settings(port))


def _serve_models(address: str, allowed: Settings) -> None:
    from serving.runners.shared_pool import serve_pool

    serve_pool(address, allowed.workers, _address(allowed, allowed.processes))
