"""Every private name of transformers that the hub uses, and a self-test that says which the installed version lacks."""
