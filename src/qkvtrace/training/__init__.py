"""Training: the objective, the schedule, the optimiser's step and the loop over epochs."""
