"""What the comparison is made of, apart from the rivals: data, timing, recall, cache, report."""
