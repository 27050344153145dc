"""What tutorials claim of Q, K and V, each claim a measure over many seeds: one file a claim."""
