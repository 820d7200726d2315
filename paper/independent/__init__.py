"""A second implementation of the published method, from its text alone, for arrays on a graphics card or on the processor.

It shares no code with the crate and has none of its shortcuts, so that a verdict both give is not a bug of one. `python -m paper.independent`
trains it, searches it and writes a JSON file.
"""
