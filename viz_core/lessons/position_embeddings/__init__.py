"""Every position scheme on the same tokens: a register of them, what they cost, proofs, experiments."""
