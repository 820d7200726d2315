"""What the harness asks of a rival."""


class Base:
    """One built variant of one library, answering on one thread.

    `variants` names what to build, `grid` the search settings worth trying; the harness screens all of them and
    measures the good ones. Settings are numbers that do not lower recall when they grow.
    """

    package = ""

    def __init__(self, train, variant):
        self.train, self.variant = train, variant

    @staticmethod
    def variants(points, dim):
        """Names of the variants to build for so many points of this dimension."""
        raise NotImplementedError

    def build(self, threads):
        """Builds the variant from `self.train`."""
        raise NotImplementedError

    def save(self, path):
        """Writes the built index to a file or folder."""
        raise NotImplementedError

    def load(self, path):
        """Reads what `save` wrote, ready to answer on one thread."""
        raise NotImplementedError

    def grid(self, k):
        """Values of each search setting, ascending; every combination is a setting."""
        raise NotImplementedError

    def set(self, params, k):
        """Makes `params` the setting of the searches that follow."""
        raise NotImplementedError

    def batch(self, queries, k):
        """Ids of the neighbours of all queries, one call of the library."""
        raise NotImplementedError

    def single(self, queries, k):
        """The same with one call of the library for each query."""
        raise NotImplementedError

    def count(self, queries, k):
        """Distance equivalents per query at the present setting, or None where the library does not tell."""
        return None


def steps(low, high, factor=1.15):
    """Whole numbers from low to high, each about `factor` times the one before."""
    found, value = [], float(low)
    while value <= high * 1.0001:
        if not found or round(value) > found[-1]:
            found.append(round(value))
        value = max(value * factor, value + 1)
    return found


def power_of_two(value):
    """The power of two nearest to `value` on a logarithmic scale."""
    power = 1
    while power * 2 ** 0.5 < value:
        power *= 2
    return power
