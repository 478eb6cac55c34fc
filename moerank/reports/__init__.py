"""Reports of a study: the same tables as a web page, as Markdown, LaTeX and CSV."""
