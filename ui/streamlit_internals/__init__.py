"""Every private name of Streamlit that the project uses.

A Streamlit without a module or a class that is imported here ends the start with a sentence; `self_test` names lesser
things that are missing, and the app runs without them.
"""

from importlib import import_module
from importlib.metadata import version

try:
    for _name in ("batched_messages", "mailbox", "script_run", "sessions"):  # and what these import
        import_module(f"{__name__}.{_name}")
except ImportError as error:
    if not (error.name or "").startswith("streamlit"):
        raise
    raise SystemExit(
        f"Streamlit {version('streamlit')} lacks a name that the app needs: {error.msg.partition(' (')[0]}. Install "
        "streamlit==1.67.0, which the app is tested with."
    ) from None
