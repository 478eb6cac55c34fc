"""The optimisation problems behind the rankers, and how a population of them is solved."""
