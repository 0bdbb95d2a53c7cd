"""Types and errors of Streamlit's that it has no public name for."""

from streamlit.elements.lib.mutable_tab_container import TabContainer
from streamlit.errors import StreamlitInvalidLayoutContextError
from streamlit.navigation.page import StreamlitPage

__all__ = ["StreamlitInvalidLayoutContextError", "StreamlitPage", "TabContainer"]
