"""Results read back: tables, comparisons, tests between solvers."""
