"""Reports of a study: the same tables as a web page and as LaTeX."""
