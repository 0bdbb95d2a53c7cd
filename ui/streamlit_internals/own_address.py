"""No outgoing request for the server's own address."""

from streamlit import net_util


def forbid_address_lookup() -> None:
    """Have Streamlit refuse a foreign origin without asking a site of the internet, which blocks the event loop."""
    net_util.get_external_ip = lambda: None
