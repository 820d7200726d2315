//! Parquet and Arrow: columns of lists, identifiers, other columns, folders, and everything that can be wrong with them.

use std::sync::Arc;

use crate::common::written::{VALUES, arrow, parquet, parquet_with, rows, stream, table};
use crate::common::{assert_error, file, folder};
use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder};
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Int64Array,
    LargeListArray, ListArray, RecordBatch, StringArray, StringViewArray, UInt32Array,
};
use garlic_data::{
    Columns, DataError, Identifiers, ReadOptions, Reader, Table, read_vectors, vectors_shape,
};
use parquet::basic::{Compression, ZstdLevel};
use tempfile::TempDir;

fn options(change: impl FnOnce(&mut ReadOptions)) -> ReadOptions {
    let mut options = ReadOptions::default();
    change(&mut options);
    options
}

/// The table in every format.
fn files(folder: &TempDir, table: &RecordBatch) -> [std::path::PathBuf; 3] {
    [
        file(folder, "a.parquet", &parquet(table)),
        file(folder, "a.arrow", &arrow(table)),
        file(folder, "a.arrows", &stream(table)),
    ]
}

fn read(path: &std::path::Path, options: &ReadOptions) -> Result<Table, DataError> {
    Reader::open(path, options)?.read()
}

#[test]
fn lists_of_every_kind_of_number() {
    let folder = folder();
    macro_rules! lists {
        ($list:ident, $kind:ty, $convert:expr) => {{
            let convert = $convert;
            let rows = VALUES
                .chunks(2)
                .map(|row| Some(row.iter().map(|v| Some(convert(*v))).collect::<Vec<_>>()));
            Arc::new($list::from_iter_primitive::<$kind, _, _>(rows)) as ArrayRef
        }};
    }
    let fixed = |rows: ArrayRef| -> ArrayRef {
        let items = rows
            .as_any()
            .downcast_ref::<ListArray>()
            .unwrap()
            .values()
            .clone();
        let field = Arc::new(arrow_schema::Field::new(
            "item",
            items.data_type().clone(),
            true,
        ));
        Arc::new(FixedSizeListArray::new(field, 2, items, None))
    };
    type Half = <Float16Type as arrow_array::ArrowPrimitiveType>::Native;
    for column in [
        rows(),
        fixed(rows()),
        lists!(LargeListArray, Float32Type, |v: f32| v),
        lists!(ListArray, Float64Type, f64::from),
        fixed(lists!(ListArray, Float64Type, f64::from)),
        lists!(ListArray, Float16Type, Half::from_f32),
        lists!(ListArray, Int64Type, |v: f32| v as i64),
        lists!(LargeListArray, UInt8Type, |v: f32| v as u8),
    ] {
        let table = table(&[
            ("text", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
            ("v", column),
        ]);
        // A part of a table begins in the middle of its buffers.
        for (table, wanted) in [
            (table.clone(), &VALUES[..]),
            (table.slice(1, 2), &VALUES[2..]),
        ] {
            for path in files(&folder, &table) {
                let read = read_vectors(&path).unwrap();
                assert_eq!(read.to_f32()[..], *wanted, "{}", path.display());
                assert_eq!(read.dim(), 2);
                assert_eq!(vectors_shape(&path).unwrap(), read.shape());
            }
        }
    }
}

#[test]
fn every_common_compression() {
    let folder = folder();
    let table = table(&[("v", rows())]);
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(Default::default()),
    ] {
        let path = file(&folder, "a.parquet", &parquet_with(&table, compression));
        assert_eq!(read_vectors(&path).unwrap().to_f32()[..], VALUES);
    }
}

#[test]
fn identifiers_and_other_columns() {
    let folder = folder();
    let text = |ids: &[&str]| {
        Some(Identifiers::Strings(
            ids.iter().map(|s| (*s).into()).collect(),
        ))
    };
    let uuids = [[0x12; 16], [0xab; 16], [0; 16]];
    let uuids = FixedSizeBinaryArray::try_from_iter(uuids.iter()).unwrap();
    let dictionary: DictionaryArray<Int32Type> = vec!["x", "y", "x"].into_iter().collect();
    let cases: [(ArrayRef, Option<Identifiers>); 6] = [
        (
            Arc::new(Int64Array::from(vec![7, 0, 9])),
            Some(Identifiers::Numbers(vec![7, 0, 9])),
        ),
        (
            Arc::new(UInt32Array::from(vec![7, 0, 9])),
            Some(Identifiers::Numbers(vec![7, 0, 9])),
        ),
        (
            Arc::new(StringArray::from(vec!["a", "", "c"])),
            text(&["a", "", "c"]),
        ),
        (
            Arc::new(StringViewArray::from(vec!["a", "b", "c"])),
            text(&["a", "b", "c"]),
        ),
        (Arc::new(dictionary), text(&["x", "y", "x"])),
        (
            Arc::new(uuids),
            text(&[
                "12121212-1212-1212-1212-121212121212",
                "abababab-abab-abab-abab-abababababab",
                "00000000-0000-0000-0000-000000000000",
            ]),
        ),
    ];
    let years: ArrayRef = Arc::new(Int64Array::from(vec![Some(2001), None, Some(2003)]));
    for (ids, wanted) in cases {
        let table = table(&[("year", years.clone()), ("key", ids), ("v", rows())]);
        for path in files(&folder, &table) {
            let chosen = options(|o| {
                o.ids = Some("key".into());
                o.columns = Columns::All;
            });
            let whole = read(&path, &chosen).unwrap();
            assert_eq!(whole.ids, wanted, "{}", path.display());
            let rows: usize = whole.columns.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows, 3);
            let reader = Reader::open(&path, &chosen).unwrap();
            assert_eq!(reader.names().unwrap(), ["year", "key", "v"]);
            let mut row = 0;
            for batch in reader.batches(2) {
                let batch = batch.unwrap();
                let count = batch.vectors.rows();
                assert!(count <= 2);
                assert_eq!(
                    batch.vectors.to_f32()[..],
                    VALUES[row * 2..(row + count) * 2]
                );
                assert_eq!(batch.columns.schema().fields().len(), 1);
                let column = batch.columns.column(0);
                assert_eq!(column, &years.slice(row, count));
                row += count;
            }
            assert_eq!(row, 3);
            let none = read(&path, &ReadOptions::default()).unwrap();
            assert!(none.ids.is_none() && none.columns.is_empty());
        }
    }
}

#[test]
fn columns_that_cannot_be_chosen() {
    let folder = folder();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let floats: ArrayRef = Arc::new(arrow_array::Float32Array::from(vec![1.0, 2.0, 3.0]));
    let none = table(&[("text", text.clone()), ("f", floats.clone())]);
    let two = table(&[("u", rows()), ("text", text), ("v", rows()), ("f", floats)]);
    let refused = |table: &RecordBatch, options: ReadOptions, parts: &[&str]| {
        for path in files(&folder, table) {
            assert_error(
                read(&path, &options),
                kind!(DataError::Selection { .. }),
                parts,
            );
        }
    };
    let by = |name: &str| options(|o| o.vectors = Some(name.into()));
    refused(
        &none,
        ReadOptions::default(),
        &["no column holds lists", "text (Utf8)"],
    );
    refused(
        &two,
        ReadOptions::default(),
        &["several", "--vectors", "u, v"],
    );
    refused(&two, by("w"), &["no column `w`", "text (Utf8)"]);
    refused(&two, by("f"), &["`f` holds Float32"]);
    let ids = |name: &str| {
        options(|o| {
            o.vectors = Some("v".into());
            o.ids = Some(name.into());
        })
    };
    refused(&two, ids("w"), &["no column `w`"]);
    refused(
        &two,
        ids("f"),
        &["`f` holds Float32", "whole numbers or strings"],
    );
    let named = options(|o| {
        o.vectors = Some("v".into());
        o.columns = Columns::Named(vec!["text".into(), "lost".into()]);
    });
    refused(&two, named, &["no column `lost`"]);
    for path in files(&folder, &two) {
        assert_eq!(read(&path, &by("v")).unwrap().vectors.to_f32()[..], VALUES);
    }
}

#[test]
fn rows_that_hold_no_vector() {
    let folder = folder();
    let list = |rows: &[Option<&[Option<f32>]>]| -> ArrayRef {
        let mut builder = ListBuilder::new(Float32Builder::new());
        for row in rows {
            match row {
                Some(row) => builder.append_value(row.iter().copied()),
                None => builder.append_null(),
            }
        }
        Arc::new(builder.finish())
    };
    let mut fixed = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for row in 0..3 {
        fixed.values().append_slice(&[1.0, 2.0]);
        fixed.append(row != 2);
    }
    let (a, b, c) = (Some(1.0), Some(2.0), Some(3.0));
    for (column, parts) in [
        (
            list(&[Some(&[a, b]), Some(&[a]), Some(&[a, b])]),
            ["row 1", "dimension 1"],
        ),
        (
            list(&[Some(&[a, b]), Some(&[a, b]), Some(&[a, b, c])]),
            ["row 2", "dimension 3"],
        ),
        (
            list(&[Some(&[a, b]), Some(&[a, b]), None]),
            ["row 2", "null"],
        ),
        (
            list(&[Some(&[a, b]), Some(&[a, None])]),
            ["row 1", "coordinate 1"],
        ),
        (list(&[Some(&[]), Some(&[])]), ["row 0", "empty"]),
        (Arc::new(fixed.finish()), ["row 2", "null"]),
    ] {
        for path in files(&folder, &table(&[("v", column.clone())])) {
            // Row numbers count from the beginning of the file, whatever the size of a batch.
            let batches = Reader::open(&path, &ReadOptions::default())
                .unwrap()
                .batches(1);
            let last = batches.last().unwrap().map(drop);
            for result in [read_vectors(&path).map(drop), last] {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert_error(
                    result,
                    kind!(DataError::BadRow { .. }),
                    &[name, parts[0], parts[1]],
                );
            }
        }
    }
    let infinite = list(&[Some(&[a, b]), Some(&[a, Some(f32::INFINITY)])]);
    for path in files(&folder, &table(&[("v", infinite)])) {
        assert_error(
            read_vectors(&path),
            kind!(DataError::NotFinite { .. }),
            &["row 1, column 1 is inf"],
        );
    }
    let ids = options(|o| o.ids = Some("id".into()));
    for (column, parts) in [
        (
            Int64Array::from(vec![Some(1), None, Some(2)]),
            ["row 1", "null"],
        ),
        (Int64Array::from(vec![1, 2, -3]), ["row 2", "-3"]),
    ] {
        for path in files(
            &folder,
            &table(&[("v", rows()), ("id", Arc::new(column.clone()))]),
        ) {
            assert_error(read(&path, &ids), kind!(DataError::BadRow { .. }), &parts);
        }
    }
    let empty = table(&[("v", rows())]).slice(0, 0);
    for path in files(&folder, &empty) {
        assert_error(read_vectors(&path), kind!(DataError::ZeroRows { .. }), &[]);
    }
}

#[test]
fn a_folder_of_tables() {
    let folder = folder();
    let ids = |ids: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(ids.to_vec())) };
    let one = table(&[("id", ids(&[1, 2, 3])), ("v", rows())]);
    // The columns of another file may come in another order and be of another type.
    let doubles = VALUES
        .chunks(2)
        .map(|r| Some(r.iter().map(|v| Some(f64::from(*v))).collect::<Vec<_>>()));
    let doubles: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(doubles));
    let two = table(&[("v", doubles), ("id", ids(&[4, 5, 6]))]);
    file(&folder, "part-0.parquet", &parquet(&one));
    file(&folder, "part-1.parquet", &parquet(&two));
    let by_id = options(|o| o.ids = Some("id".into()));
    let whole = read(folder.path(), &by_id).unwrap();
    assert_eq!(whole.vectors.to_f32()[..], VALUES.repeat(2));
    assert_eq!(
        whole.ids,
        Some(Identifiers::Numbers(vec![1, 2, 3, 4, 5, 6]))
    );
    assert_eq!(vectors_shape(folder.path()).unwrap(), whole.vectors.shape());

    let wide = ListArray::from_iter_primitive::<Float32Type, _, _>([Some(vec![Some(1.0); 3])]);
    let wide = table(&[("v", Arc::new(wide)), ("id", ids(&[7]))]);
    let path = file(&folder, "part-2.parquet", &parquet(&wide));
    assert_error(
        read(folder.path(), &by_id),
        kind!(DataError::BadRow { .. }),
        &["part-2.parquet", "row 0", "dimension 3", "have 2"],
    );
    std::fs::write(&path, parquet(&table(&[("v", rows())]))).unwrap();
    assert_error(
        read(folder.path(), &by_id),
        kind!(DataError::Selection { .. }),
        &["part-2.parquet", "no column `id`"],
    );
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    std::fs::write(&path, parquet(&table(&[("v", rows()), ("id", names)]))).unwrap();
    assert_error(
        read(folder.path(), &by_id),
        kind!(DataError::Selection { .. }),
        &["numbers in some files and strings in others"],
    );
}

#[test]
fn tables_from_streams() {
    let table = table(&[("v", rows())]);
    for bytes in [parquet(&table), arrow(&table), stream(&table)] {
        let reader =
            Reader::from_stream(&mut &bytes[..], "standard input", &ReadOptions::default());
        assert_eq!(reader.unwrap().read().unwrap().vectors.to_f32()[..], VALUES);
    }
}

#[test]
fn cut_tables_are_refused() {
    let folder = folder();
    let table = table(&[
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("v", rows()),
    ]);
    for (name, whole) in [("a.parquet", parquet(&table)), ("a.arrow", arrow(&table))] {
        for len in 0..whole.len() {
            let path = file(&folder, name, &whole[..len]);
            assert!(read_vectors(&path).is_err(), "{name} of {len} bytes");
        }
    }
}
