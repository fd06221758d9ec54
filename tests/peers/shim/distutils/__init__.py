"""The one name of distutils that a test file imports; Python 3.12 has no such package."""
