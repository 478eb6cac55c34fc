"""The version of the package, in a module of its own, so that reading it does not import the public names."""

VERSION = "0.2.0"
