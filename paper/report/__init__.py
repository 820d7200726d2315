"""The report of `make paper`: figures, tables and claims, all of them computed from the result files alone."""
