"""Reports of a study: the same tables as a web page, as LaTeX and as CSV."""
