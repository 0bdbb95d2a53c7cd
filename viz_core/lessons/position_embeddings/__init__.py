"""Position schemes tried: proofs, costs, experiments."""
