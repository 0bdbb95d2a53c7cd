"""Every private name of torch that the library uses, and a self-test that says which one is missing."""
