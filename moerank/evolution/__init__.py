"""What the evolutionary search needs beyond pymoo: operators for long bit strings and a loop that can resume."""
