//! Arrays of any type and order, archives, text, folders and streams give the same vectors.

use crate::common::written::{VALUES, npz};
use crate::common::{assert_error, file, floats, folder, npy};
use garlic_data::{
    Columns, DataError, Element, Format, Identifiers, Metric, ReadOptions, Reader, RecordBatch,
    read_ids, read_vectors, vectors_shape, write_parquet,
};
use zip::CompressionMethod;

fn options(change: impl FnOnce(&mut ReadOptions)) -> ReadOptions {
    let mut options = ReadOptions::default();
    change(&mut options);
    options
}

fn bytes_of<const N: usize>(convert: impl Fn(f32) -> [u8; N]) -> Vec<u8> {
    VALUES.iter().flat_map(|v| convert(*v)).collect()
}

#[test]
fn arrays_of_every_type_and_order_are_converted() {
    let folder = folder();
    let half = |v: f32| [0x3c00_u16, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600][v as usize - 1];
    let kinds: [(&str, Vec<u8>); 12] = [
        ("'|u1'", bytes_of(|v| [v as u8])),
        ("'|i1'", bytes_of(|v| (v as i8).to_le_bytes())),
        ("'<u2'", bytes_of(|v| (v as u16).to_le_bytes())),
        ("'<i2'", bytes_of(|v| (v as i16).to_le_bytes())),
        ("'<f2'", bytes_of(|v| half(v).to_le_bytes())),
        ("'<u4'", bytes_of(|v| (v as u32).to_le_bytes())),
        ("'<i4'", bytes_of(|v| (v as i32).to_le_bytes())),
        ("'<f4'", bytes_of(f32::to_le_bytes)),
        ("'<u8'", bytes_of(|v| (v as u64).to_le_bytes())),
        ("'<i8'", bytes_of(|v| (v as i64).to_le_bytes())),
        ("'<f8'", bytes_of(|v| f64::from(v).to_le_bytes())),
        ("'=f4'", bytes_of(f32::to_le_bytes)),
    ];
    for (descr, data) in &kinds {
        let rows = file(&folder, "c.npy", &npy(descr, false, "(2, 3)", data));
        let read = read_vectors(&rows).unwrap();
        assert_eq!(read.to_f32()[..], VALUES, "{descr}");
        assert_eq!(vectors_shape(&rows).unwrap(), read.shape());
        let is_byte = read.element() == Element::U8;
        assert_eq!(is_byte, *descr == "'|u1'");

        // The same bytes column after column: 1 3 5, 2 4 6.
        let columns = file(&folder, "f.npy", &npy(descr, true, "(2, 3)", data));
        let read = read_vectors(&columns).unwrap();
        assert_eq!(read.to_f32()[..], [1.0, 3.0, 5.0, 2.0, 4.0, 6.0], "{descr}");
        assert_eq!((read.rows(), read.dim()), (2, 3));
    }
    let wide = 1e300_f64.to_le_bytes();
    let path = file(&folder, "w.npy", &npy("'<f8'", false, "(1, 1)", &wide));
    assert_error(
        read_vectors(&path),
        kind!(DataError::NotFinite { .. }),
        &["row 0, column 0 is inf"],
    );
}

/// More than one block of the conversion, in both orders.
#[test]
fn large_arrays_are_converted_whole() {
    let folder = folder();
    let (rows, cols) = (40_000, 5);
    let data: Vec<u8> = (0..rows * cols)
        .flat_map(|i| f64::from(i).to_le_bytes())
        .collect();
    let shape = format!("({rows}, {cols})");
    let c = file(&folder, "c.npy", &npy("'<f8'", false, &shape, &data));
    let f = file(&folder, "f.npy", &npy("'<f8'", true, &shape, &data));
    let (c, f) = (read_vectors(c).unwrap(), read_vectors(f).unwrap());
    let (c, f) = (c.to_f32(), f.to_f32());
    let (rows, cols) = (rows as usize, cols as usize);
    assert!((0..rows * cols).all(|i| c[i] == i as f32));
    assert!((0..rows * cols).all(|i| f[i] == (i % cols * rows + i / cols) as f32));
}

#[test]
fn a_list_of_ids_is_one_column() {
    let folder = folder();
    let data: Vec<u8> = [7_i64, 8, 9].iter().flat_map(|i| i.to_le_bytes()).collect();
    let path = file(&folder, "ids.npy", &npy("'<i8'", false, "(3,)", &data));
    let ids = read_ids(path).unwrap();
    assert_eq!((ids.data, ids.cols), (vec![7, 8, 9], 1));
}

#[test]
fn archives_of_arrays() {
    let folder = folder();
    let vectors = || {
        npy(
            "'<f8'",
            false,
            "(2, 3)",
            &bytes_of(|v| f64::from(v).to_le_bytes()),
        )
    };
    let ids = || {
        npy(
            "'<i8'",
            false,
            "(2,)",
            &[5_i64, 9].map(i64::to_le_bytes).concat(),
        )
    };
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let path = file(&folder, "one.npz", &npz(method, &[("x.npy", vectors())]));
        assert_eq!(read_vectors(&path).unwrap().to_f32()[..], VALUES);
        assert_eq!(vectors_shape(&path).unwrap().rows, 2);

        let arrays = [("x.npy", vectors()), ("ids.npy", ids()), ("y.npy", ids())];
        let path = file(&folder, "two.npz", &npz(method, &arrays));
        assert_error(
            read_vectors(&path),
            kind!(DataError::Selection { .. }),
            &["two.npz", "x, ids, y", "--vectors"],
        );
        let open = |vectors: &str, ids: Option<&str>| {
            let options = options(|o| {
                o.vectors = Some(vectors.into());
                o.ids = ids.map(str::to_owned);
            });
            Reader::open(&path, &options).unwrap()
        };
        let reader = open("x", Some("ids"));
        assert_eq!(reader.names().unwrap(), ["x", "ids", "y"]);
        let read = reader.read().unwrap();
        assert_eq!(read.vectors.to_f32()[..], VALUES);
        assert_eq!(read.ids, Some(Identifiers::Numbers(vec![5, 9])));
        let batches: Vec<_> = reader.batches(1).map(Result::unwrap).collect();
        assert_eq!(batches.len(), 2);
        assert_eq!(batches[1].ids, Some(Identifiers::Numbers(vec![9])));
        assert_error(
            open("z", None).read(),
            kind!(DataError::MissingSet { .. }),
            &["two.npz", "'z'", "x, ids, y"],
        );
        assert_error(
            open("ids", None).read(),
            kind!(DataError::BadRank { .. }),
            &["'ids'", "1 axes"],
        );
    }
    // Text of one width, filled up with zeros.
    let utf32: Vec<u8> = "é\0bc"
        .chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect();
    for (descr, data, found) in [
        ("'<U2'", &utf32[..], Some(["é", "bc"])),
        ("'|S3'", b"a\0\0b c".as_slice(), Some(["a", "b c"])),
        ("'|S3'", b"a\xff\0b c".as_slice(), None),
        ("'<U1'", &[0xff; 8], None),
        ("'<U0'", &[], None),
        ("'>U1'", &[0; 8], None),
        ("'|O'", &[0; 16], None),
    ] {
        let names = npy(descr, false, "(2,)", data);
        let archive = npz(
            CompressionMethod::Stored,
            &[("x.npy", vectors()), ("n.npy", names)],
        );
        let options = options(|o| o.ids = Some("n".into()));
        let read = Reader::open(file(&folder, "names.npz", &archive), &options)
            .unwrap()
            .read();
        match found {
            Some(names) => assert_eq!(
                read.unwrap().ids,
                Some(Identifiers::Strings(names.map(str::to_owned).to_vec()))
            ),
            None => assert!(read.is_err(), "{descr}"),
        }
    }
    // A changed byte of a compressed array is found by its checksum or by the decoder.
    let mut damaged = npz(CompressionMethod::Deflated, &[("x.npy", vectors())]);
    let place = 60;
    damaged[place] ^= 0x55;
    assert!(read_vectors(file(&folder, "bad.npz", &damaged)).is_err());
}

#[test]
fn text_with_and_without_a_header() {
    let folder = folder();
    for (name, content) in [
        ("a.csv", "1,2,3\n4,5,6\n"),
        ("b.csv", "x,y,z\n1,2.0,3e0\n\n4, 5 ,6"),
        ("c.csv", "# x y z\n1 2 3\n4 5 6\n"),
        ("d.csv", "1;2;3\r\n4;5;6\r\n"),
        ("e.tsv", "a\tb\tc\n1\t2\t3\n4\t5\t6\n"),
        ("f.csv", "\"x\",\"y\",\"z\"\n\"1\",2,3\n4,5,6\n"),
    ] {
        let path = file(&folder, name, content.as_bytes());
        let read = read_vectors(&path).unwrap();
        assert_eq!(read.to_f32()[..], VALUES, "{name}");
        assert_eq!(vectors_shape(&path).unwrap(), read.shape());
    }
    let path = file(&folder, "g.csv", b"1|2|3\n4|5|6\n");
    let reader = Reader::open(&path, &options(|o| o.delimiter = Some(b'|'))).unwrap();
    assert_eq!(reader.read().unwrap().vectors.to_f32()[..], VALUES);

    let by = |name: &str| options(|o| o.ids = Some(name.to_owned()));
    let path = file(&folder, "h.csv", b"x,id,y\n1,17,2\n3,4,4\n");
    let read = Reader::open(&path, &by("id")).unwrap().read().unwrap();
    assert_eq!(read.vectors.to_f32()[..], [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read.ids, Some(Identifiers::Numbers(vec![17, 4])));
    let path = file(&folder, "i.csv", b"id,x\na,1\nb,2\n");
    let read = Reader::open(&path, &by("id")).unwrap().read().unwrap();
    let names = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(read.ids, Some(Identifiers::Strings(names)));
    assert_error(
        Reader::open(&path, &by("key")).unwrap().read(),
        kind!(DataError::Selection { .. }),
        &["i.csv", "`key`", "id, x"],
    );
}

#[test]
fn lines_that_are_no_vectors() {
    let folder = folder();
    for (content, parts) in [
        ("x,y\n1,2\n3\n", ["line 3", "1 fields"]),
        ("1,2\n3,4,5\n", ["line 2", "3 fields"]),
        ("x,y\n1,two\n", ["line 2", "field 2 is `two`"]),
        ("x,y\n1,\n", ["line 2", "field 2 is ``"]),
    ] {
        let path = file(&folder, "a.csv", content.as_bytes());
        assert_error(
            read_vectors(&path),
            kind!(DataError::BadRow { .. }),
            &["a.csv", parts[0], parts[1]],
        );
    }
    let path = file(&folder, "a.csv", b"1,2\n3,nan\n");
    assert_error(
        read_vectors(&path),
        kind!(DataError::NotFinite { .. }),
        &["row 1, column 1"],
    );
    for content in ["", "x,y\n", "\n\n"] {
        let path = file(&folder, "a.csv", content.as_bytes());
        assert_error(read_vectors(&path), kind!(DataError::ZeroRows { .. }), &[]);
    }
}

#[test]
fn folders_are_read_in_the_order_of_names() {
    let folder = folder();
    let array = |values: &[f32]| {
        npy(
            "'<f4'",
            false,
            &format!("({}, 2)", values.len() / 2),
            &floats(values),
        )
    };
    file(&folder, "b.npy", &array(&[3.0, 4.0, 5.0, 6.0]));
    file(&folder, "a.npy", &array(&[1.0, 2.0]));
    file(&folder, "_SUCCESS", b"");
    file(&folder, ".hidden.fvecs", b"");
    file(&folder, "README.md", b"what these are");
    let read = read_vectors(folder.path()).unwrap();
    assert_eq!((read.to_f32().to_vec(), read.dim()), (VALUES.to_vec(), 2));
    assert_eq!(vectors_shape(folder.path()).unwrap().rows, 3);
    let reader = Reader::open(folder.path(), &ReadOptions::default()).unwrap();
    let rows: Vec<usize> = reader
        .batches(2)
        .map(|b| b.unwrap().vectors.rows())
        .collect();
    assert_eq!(rows, [1, 2]);

    file(
        &folder,
        "c.npy",
        &npy("'<f4'", false, "(1, 3)", &floats(&[1.0; 3])),
    );
    for result in [
        read_vectors(folder.path()).map(drop),
        vectors_shape(folder.path()).map(drop),
    ] {
        assert_error(
            result,
            kind!(DataError::BadRow { .. }),
            &["c.npy", "row 0", "dimension 3", "have 2"],
        );
    }
    file(&folder, "d.csv", b"1,2");
    assert_error(
        read_vectors(folder.path()),
        kind!(DataError::Selection { .. }),
        &["npy files and", "d.csv"],
    );
}

#[test]
fn streams_tell_their_format() {
    let array = npy("'<f4'", false, "(2, 3)", &floats(&VALUES));
    let plain = ReadOptions::default();
    let archive = npz(CompressionMethod::Deflated, &[("x.npy", array.clone())]);
    let fbin = [2_u32.to_le_bytes(), 3_u32.to_le_bytes()].concat();
    let fbin = [fbin, floats(&VALUES)].concat();
    let named = options(|o| o.format = Some(Format::Fbin));
    for (mut bytes, options, format) in [
        (&array[..], &plain, Format::Npy),
        (&archive[..], &plain, Format::Npz),
        (&b"1,2,3\n4,5,6\n"[..], &plain, Format::Csv),
        (&fbin[..], &named, Format::Fbin),
    ] {
        let reader = Reader::from_stream(&mut bytes, "standard input", options).unwrap();
        assert_eq!(reader.format(), format);
        assert_eq!(reader.read().unwrap().vectors.to_f32()[..], VALUES);
    }
    for (mut bytes, told) in [
        (&fbin[..], "--format"),
        (&b""[..], "nothing to read"),
        (&b"\x1f\x8b\x08\x00"[..], "gzip"),
    ] {
        assert_error(
            Reader::from_stream(&mut bytes, "standard input", &plain),
            kind!(DataError::Selection { .. }),
            &["standard input", told],
        );
    }
    let mut short = &array[..array.len() - 1];
    let reader = Reader::from_stream(&mut short, "standard input", &plain).unwrap();
    assert_error(
        reader.read(),
        kind!(DataError::Truncated { .. }),
        &["standard input"],
    );
}

#[test]
fn names_of_what_has_none() {
    let folder = folder();
    let path = file(
        &folder,
        "a.npy",
        &npy("'<f4'", false, "(2, 3)", &floats(&VALUES)),
    );
    for options in [
        options(|o| o.vectors = Some("x".into())),
        options(|o| o.ids = Some("x".into())),
    ] {
        assert_error(
            Reader::open(&path, &options),
            kind!(DataError::Selection { .. }),
            &["a.npy", "no column `x`"],
        );
    }
    let path = file(
        &folder,
        "a.hdf5",
        &crate::common::Benchmark::default().bytes(),
    );
    let test = options(|o| o.vectors = Some("test".into()));
    let read = Reader::open(&path, &test).unwrap().read().unwrap();
    assert_eq!(read.vectors.to_f32()[..], [0.0, 0.0, 5.0, 5.0]);
    let reader = Reader::open(&path, &test).unwrap();
    assert_eq!(reader.metric().unwrap(), Some(Metric::Euclidean));
}

#[test]
fn tables_that_are_written_are_read() {
    let folder = folder();
    let path = folder.path().join("t.parquet");
    let years: arrow_array::ArrayRef =
        std::sync::Arc::new(arrow_array::Int64Array::from(vec![Some(5), None]));
    let columns = RecordBatch::try_from_iter_with_nullable([("year", years, true)]).unwrap();
    for ids in [
        Identifiers::Numbers(vec![7, 3]),
        Identifiers::Strings(vec!["a".into(), "é".into()]),
    ] {
        write_parquet(&path, &VALUES, 3, Some(&ids), Some(&columns)).unwrap();
        let options = options(|o| {
            o.ids = Some("id".into());
            o.columns = Columns::All;
        });
        let read = Reader::open(&path, &options).unwrap().read().unwrap();
        assert_eq!(read.vectors.to_f32()[..], VALUES);
        assert_eq!(read.ids.as_ref(), Some(&ids));
        assert_eq!(read.columns, std::slice::from_ref(&columns));
    }
    let before = std::fs::read(&path).unwrap();
    let one = Identifiers::Numbers(vec![1]);
    assert_error(
        write_parquet(&path, &VALUES, 3, Some(&one), None),
        kind!(DataError::CountMismatch { .. }),
        &["t.parquet", "identifiers"],
    );
    assert_error(
        write_parquet(&path, &[f32::NAN], 1, None, None),
        kind!(DataError::NotFinite { .. }),
        &["row 0"],
    );
    let named =
        RecordBatch::try_from_iter([("vector", std::sync::Arc::clone(columns.column(0)))]).unwrap();
    assert_error(
        write_parquet(&path, &VALUES, 3, None, Some(&named)),
        kind!(DataError::Selection { .. }),
        &["`vector` is a column of its own"],
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
