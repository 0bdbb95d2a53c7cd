"""Types of Streamlit's that it has no public name for."""

from streamlit.elements.lib.mutable_tab_container import TabContainer
from streamlit.navigation.page import StreamlitPage

__all__ = ["StreamlitPage", "TabContainer"]
