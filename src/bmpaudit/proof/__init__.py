"""Proofs: what an attack shows beyond doubt, how many nodes it can name, and whether its probabilities can be trusted."""
