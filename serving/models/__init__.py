"""Which models can be loaded, and the models that are loaded."""
