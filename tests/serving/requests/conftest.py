"""Tiny models of every family, as the library's tests have them."""

from tests.viz_core.hub.conftest import no_network, tiny, tiny_model

__all__ = ["no_network", "tiny", "tiny_model"]
