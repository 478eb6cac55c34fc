"""One run: its problem, its solver with parameters, the fold it runs on, and the result that is stored."""
