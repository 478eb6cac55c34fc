"""The command line, as ``python -m moerank``."""

from moerank.cli import main

if __name__ == "__main__":
    main()
