"""What the site makes from the code: the pages of the reference, formulas, and links between neighbours."""
