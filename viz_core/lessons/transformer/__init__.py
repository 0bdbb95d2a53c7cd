"""Properties of a translation by the Transformer, measured."""
