"""Feature logs of search engines and relevance judgments, which become tables."""
