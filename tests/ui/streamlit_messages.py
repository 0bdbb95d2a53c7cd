"""Messages as a browser and a session send them, for the tests of what stands between the two."""

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState


def request(page: str = "", fragment: str = "", *widgets: WidgetState) -> BackMsg:
    """A request to run a page or a fragment."""
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    message.rerun_script.widget_states.widgets.extend(widgets)
    return message


def run_begins(page: str = "", run: str = "run") -> bytes:
    message = ForwardMsg()
    message.new_session.page_script_hash = page
    message.new_session.initialize.session_id = "session"
    message.metadata.run.script_run_id = run
    return message.SerializeToString()


def run_ends(run: str = "run", early: bool = False) -> bytes:
    message = ForwardMsg()
    message.script_finished = ForwardMsg.FINISHED_EARLY_FOR_RERUN if early else ForwardMsg.FINISHED_SUCCESSFULLY
    message.metadata.run.script_run_id = run
    return message.SerializeToString()
