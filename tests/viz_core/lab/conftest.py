"""The tiny models of the hub's tests."""

from tests.viz_core.hub.conftest import no_network, tiny, tiny_model

__all__ = ["no_network", "tiny", "tiny_model"]
