"""What a reader must know before the first number: how the results were made, and what the words mean."""

from __future__ import annotations

from typing import Any

from paper.report.load import Results, number


def duration(seconds: float) -> str:
    """A time as hours and minutes, or as seconds when it is short."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def command(results: Results) -> str:
    """The command that makes the report."""
    return str(results.run_info.get("command") or "make paper")


def machine_text(machine: dict[str, Any]) -> str:
    """A machine in words: what does not change from minute to minute."""
    parts = [str(machine["cpu"])] if machine.get("cpu") else []
    cores = machine.get("cores_allowed") or machine.get("cores")
    parts += [f"{cores} cores"] if cores else []
    memory = number(machine.get("memory_bytes"))
    parts += [f"{memory / 2**30:.0f} GiB"] if memory else []
    return ", ".join(parts)


def made(results: Results) -> list[str]:
    """How, where, when and how long."""
    lines = [f"Made by {command(results)} from {len(results.runs)} builds and their searches."]
    seconds = results.run_info.get("seconds")
    if isinstance(seconds, (int, float)):
        lines[0] += f" The run took {duration(float(seconds))}, interruptions left out, the times of processes added up."
    if results.quick:
        lines.append(
            "A quick run, on parts of the data sets and with short trainings: a look, and no basis for verdicts."
        )
    notes = results.run_info.get("notes")
    lines += map(str, notes) if isinstance(notes, list) else []
    missing = results.run_info.get("missing")
    if isinstance(missing, list) and missing:
        lines.append(f"Planned, but not run: {'; '.join(map(str, missing))}.")
    given = results.run_info.get("machine")
    found = [given] if isinstance(given, dict) and given else [run.machine for run in results.runs]
    machines = list(dict.fromkeys(filter(None, map(machine_text, found))))
    if machines:
        lines.append(f"Machine: {'; '.join(machines)}.")
    dates = results.dates()
    if dates:
        lines.append(f"Results of {dates[0]}." if len(dates) == 1 else f"Results of {dates[0]} to {dates[-1]}.")
    return lines


WORDS = (
    "Candidates are distinct points whose exact distance was computed. Work is everything a query multiplies and adds "
    "(hashing, routing, projection, tables, codes, exact distances) divided by the dimension: distance equivalents. "
    "Recall@1 is the share of queries whose nearest neighbour was found, 10-recall@10 the share of the ten nearest; a "
    "distance within a millionth of the true one counts as found. QPS of our presets and of Faiss is that of their own "
    "search, of the other methods that of array code in Python: compare it within a kind only."
)


READING = (
    "Tables are read off each line's frontier, the settings that no other setting of its sweep beats, linearly in (log "
    "cost, recall) between measured settings. ≥ and ≤ mark what lies beyond the ends of a sweep, – what was not "
    "reached or not measured; ± is the standard deviation over seeds."
)


def about(results: Results) -> list[str]:
    """The opening paragraphs."""
    return [*made(results), WORDS, READING]
