"""The version of the package: here alone, so that nothing has to import the package's face for it."""

__all__ = ["VERSION"]

VERSION = "0.2.0"
