"""Where the points of a build come from: blocks of rows, each read by one task and checked as it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._inputs import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

# The library takes no larger numbers.
_MAX_VALUE = 1e15
# Rows that one task reads, unless a row group of a file has more.
BLOCK_ROWS = 65_536
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")


def pyarrow() -> Any:
    """The package, which builds need and searches do not."""
    try:
        import pyarrow
        import pyarrow.compute  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError("sharded indexes are built with pyarrow; install it with `pip install garlic-ann[ray]`") from None
    return pyarrow


@dataclass(frozen=True)
class Block:
    """Some rows of the data: parts of a file, or a table."""

    name: str
    """What errors call it."""
    first: int
    """Number of its first row in what ``name`` names."""
    start: int
    """Number of its first row in all data."""
    rows: int
    parts: tuple[int, ...] | None = None
    """Row groups of a Parquet file or batches of an Arrow file."""

    def read(self, table: pa.Table | None) -> pa.Table:
        """The rows; those of a file from there."""
        return table if self.parts is None else _read_file(self.name, self.parts)


@dataclass(frozen=True)
class Layout:
    """What the columns of the data are."""

    vectors: str
    ids: str | None
    dim: int
    named: bool
    columns: pa.Schema
    """The other columns."""
    origin: str
    """Where dimension and types were found."""


@dataclass(frozen=True)
class Points:
    """Checked rows of a block."""

    ids: pa.Array
    vectors: NDArray[np.float32]
    columns: pa.Table


def blocks_of(data: Any) -> list[tuple[Block, Any]]:
    """Blocks of a file, a folder, a list of files, a table of pyarrow or an array, with their tables if they have some."""
    pa = pyarrow()
    if isinstance(data, (str, os.PathLike)):
        return [(block, None) for block in _file_blocks(_files(os.fspath(data)))]
    if isinstance(data, (list, tuple)) and data and all(isinstance(d, (str, os.PathLike)) for d in data):
        files = [file for place in data for file in _files(os.fspath(place))]
        return [(block, None) for block in _file_blocks(files)]
    if isinstance(data, np.ndarray) and data.ndim == 2:
        flat = pa.array(np.ascontiguousarray(data, np.float32).reshape(-1))
        data = pa.table({"vector": pa.FixedSizeListArray.from_arrays(flat, data.shape[1])})
    if not isinstance(data, pa.Table):
        raise TypeError(f"data: a path, a list of paths, a table of pyarrow or rows of NumPy are needed, not {type(data)}")
    starts = range(0, max(data.num_rows, 1), BLOCK_ROWS)
    parts = [(start, data.slice(start, BLOCK_ROWS)) for start in starts]
    return [(Block("data", start, start, part.num_rows), part) for start, part in parts]


def _files(place: str) -> list[str]:
    if not os.path.isdir(place):
        if not os.path.exists(place):
            raise FileNotFoundError(f"{place}: no such file or folder")
        if not place.endswith(_PARQUET + _ARROW):
            raise ValueError(f"{place}: the name must end in {', '.join(_PARQUET + _ARROW)}")
        return [place]
    # A folder that cannot be listed is an error, not an empty one.
    walk = os.walk(place, onerror=_raise)
    found = [os.path.join(folder, name) for folder, _, names in walk for name in names if not name.startswith((".", "_"))]
    files = sorted(file for file in found if file.endswith(_PARQUET + _ARROW))
    if not files:
        raise ValueError(f"{place}: the folder has no file that ends in {', '.join(_PARQUET + _ARROW)}")
    return files


def _raise(error: OSError) -> None:
    raise error


def _file_blocks(files: Sequence[str]) -> Iterator[Block]:
    start = 0
    for file in files:
        first, parts, rows = 0, list[int](), 0
        sizes = _part_sizes(file)
        for number, size in enumerate(sizes):
            if parts and rows + size > BLOCK_ROWS:
                yield Block(file, first, start, rows, tuple(parts))
                first, start, parts, rows = first + rows, start + rows, [], 0
            parts.append(number)
            rows += size
        yield Block(file, first, start, rows, tuple(parts))
        start += rows


def _part_sizes(file: str) -> list[int]:
    """Rows of each row group or batch."""
    pa = pyarrow()
    with _named(file):
        if file.endswith(_PARQUET):
            metadata = pa.parquet.read_metadata(file)
            return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        with pa.memory_map(file) as source:
            reader = pa.ipc.open_file(source)
            return [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]


def _read_file(file: str, parts: tuple[int, ...]) -> pa.Table:
    pa = pyarrow()
    with _named(file):
        if file.endswith(_PARQUET):
            return pa.parquet.ParquetFile(file).read_row_groups(list(parts))
        with pa.memory_map(file) as source:
            reader = pa.ipc.open_file(source)
            batches = [reader.get_batch(i) for i in parts]
            return pa.Table.from_batches(batches, reader.schema)


class _named:
    """Names the file in errors of pyarrow."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError) and self._file not in str(error):
            raise type(error)(f"{self._file}: {error}") from None
        if isinstance(error, pyarrow().ArrowException) and not isinstance(error, OSError):
            raise ValueError(f"{self._file}: cannot be read ({error})") from None


def layout_of(block: Block, table: pa.Table, vectors: str | None, ids: str | None, columns: Sequence[str] | None) -> Layout:
    """Finds out which column has the vectors, and the dimension, from the first block."""
    pa = pyarrow()
    schema = table.schema
    if vectors is None:
        found = [field.name for field in schema if _holds_vectors(field.type)]
        if len(found) != 1:
            what = f"the columns {', '.join(found)} do" if found else f"none of its columns ({', '.join(schema.names)}) does"
            raise ValueError(f"{block.name}: one column must hold lists of numbers, {what}; name one with vectors=")
        vectors = found[0]
    others = [name for name in schema.names if name not in (vectors, ids)]
    others = others if columns is None else list(columns)
    for name in [vectors, *([] if ids is None else [ids]), *others]:
        if name not in schema.names:
            raise ValueError(f"{block.name}: has no column `{name}`; it has {', '.join(schema.names)}")
    if table.num_rows == 0:
        raise ValueError(f"{block.name}: has no rows")
    first = _vectors(table.slice(0, 1), vectors, block)
    named = ids is not None and not pa.types.is_integer(plain_type(schema.field(ids).type))
    fields = [schema.field(name).remove_metadata() for name in others]
    picked = pa.schema([field.with_type(plain_type(field.type)) for field in fields])
    return Layout(vectors, ids, first.shape[1], named, picked, block.name)


def plain_type(kind: Any) -> Any:
    """The type of values; those of a dictionary are what it encodes."""
    return kind.value_type if pyarrow().types.is_dictionary(kind) else kind


def is_text(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _holds_vectors(kind: Any) -> bool:
    types = pyarrow().types
    kind = getattr(kind, "storage_type", kind)
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def read_points(block: Block, table: pa.Table | None, layout: Layout) -> Points:
    """Reads and checks a block."""
    table = block.read(table)
    vectors = _vectors(table, layout.vectors, block)
    if len(vectors) and vectors.shape[1] != layout.dim:
        raise ValueError(
            f"{block.name}: row {block.first}: the vectors have dimension {vectors.shape[1]},"
            f" those of {layout.origin} have {layout.dim}"
        )
    vectors = vectors.reshape(-1, layout.dim)
    # Comparisons with what is not a number are false.
    good = (vectors.min(axis=1) >= -_MAX_VALUE) & (vectors.max(axis=1) <= _MAX_VALUE)
    if not good.all():
        row = block.first + int(good.argmin())
        raise ValueError(
            f"{block.name}: row {row}: the vector has a number that is infinite, not a number, or larger than {_MAX_VALUE:g}"
        )
    return Points(_ids(table, block, layout), vectors, _columns(table, block, layout))


def _vectors(table: pa.Table, name: str, block: Block) -> NDArray[np.float32]:
    what = f"{block.name}: column `{name}`"
    if name not in table.column_names:
        raise ValueError(f"{block.name}: has no column `{name}`; it has {', '.join(table.column_names)}")
    column = table.column(name)
    if not _holds_vectors(column.type):
        raise ValueError(f"{what}: lists of numbers are needed, these are of type {column.type}")
    found = arrow_rows(column, what, block.first)
    with np.errstate(over="ignore"):
        return np.require(found.reshape(len(column), -1) if len(column) else found, np.float32, ["C_CONTIGUOUS"])


def _ids(table: pa.Table, block: Block, layout: Layout) -> pa.Array:
    pa = pyarrow()
    if layout.ids is None:
        return pa.array(np.arange(block.start, block.start + table.num_rows, dtype=np.int64))
    what = f"{block.name}: column `{layout.ids}`"
    if layout.ids not in table.column_names:
        raise ValueError(f"{block.name}: has no column `{layout.ids}`; it has {', '.join(table.column_names)}")
    column = table.column(layout.ids)
    kind = plain_type(column.type)
    if not (pa.types.is_integer(kind) or is_text(kind)):
        raise ValueError(f"{what}: identifiers are whole numbers or text, these are of type {kind}")
    if is_text(kind) != layout.named:
        raise ValueError(f"{what}: these identifiers are of type {kind}, unlike those of {layout.origin}; give all of one type")
    # The values of a dictionary may be missing, too.
    column = column.cast(kind).combine_chunks()
    if column.null_count:
        row = block.first + int(np.asarray(column.is_null()).argmax())
        raise ValueError(f"{what}: row {row} has no identifier")
    if layout.named:
        names = column.cast(pa.large_string())
        empty = np.asarray(pa.compute.binary_length(names)) == 0
        if empty.any():
            raise ValueError(f"{what}: row {block.first + int(empty.argmax())} has an empty identifier")
        return names
    numbers = np.asarray(column)
    wrong = numbers > np.uint64(2**63 - 1) if numbers.dtype == np.uint64 else numbers < 0
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{what}: row {block.first + row}: the identifier {numbers[row]} is not from 0 to 2^63 - 1")
    return pa.array(numbers.astype(np.int64))


def _columns(table: pa.Table, block: Block, layout: Layout) -> pa.Table:
    pa = pyarrow()
    found = {}
    for field in layout.columns:
        if field.name not in table.column_names:
            raise ValueError(f"{block.name}: has no column `{field.name}`, which {layout.origin} has")
        column = table.column(field.name)
        kind, why = plain_type(column.type), "give all of one type"
        if _fits(kind, field.type):
            try:
                found[field.name] = column.cast(kind).cast(field.type)
                continue
            except pa.ArrowException as error:
                why = str(error)
        raise ValueError(
            f"{block.name}: column `{field.name}` is of type {column.type}, that of {layout.origin} of {field.type} ({why})"
        )
    return pa.table(found, schema=layout.columns) if found else pa.table({})


def _fits(kind: Any, wanted: Any) -> bool:
    """Whether a cast keeps values as they are, or fails. Arrow would also make text of numbers, and round floats."""
    types = pyarrow().types
    if types.is_floating(kind) and types.is_floating(wanted):
        return bool(kind.bit_width <= wanted.bit_width)
    if types.is_timestamp(kind) and types.is_timestamp(wanted):
        return bool(kind.tz == wanted.tz)
    alike = types.is_null(kind) or (types.is_integer(kind) and types.is_integer(wanted)) or (is_text(kind) and is_text(wanted))
    return bool(alike or kind == wanted)
