//! Half-precision floats in `.npy` and HDF5 files are read as 32-bit floats.

use crate::common::{file, folder, npy};
use garlic_data::{DataError, Element, read_vectors, vectors_shape};
use hdf5_pure::{Datatype, DatatypeByteOrder, FileBuilder, FloatingPointLayout};

/// Values that half precision holds, and their bits.
const VALUES: [(f32, u16); 6] = [
    (0.0, 0),
    (1.0, 0x3c00),
    (-2.5, 0xc100),
    (65_504.0, 0x7bff),
    (5.960_464_5e-8, 1),
    (-0.333_251_95, 0xb555),
];

fn bytes(halves: impl Iterator<Item = u16>) -> Vec<u8> {
    halves.flat_map(u16::to_le_bytes).collect()
}

fn floats() -> Vec<f32> {
    VALUES.iter().map(|(v, _)| *v).collect()
}

/// A floating-point type of two bytes.
fn sixteen_bits(exponent_size: u8, exponent_bias: u32) -> Datatype {
    Datatype::FloatingPoint {
        size: 2,
        byte_order: DatatypeByteOrder::LittleEndian,
        layout: FloatingPointLayout {
            bit_offset: 0,
            bit_precision: 16,
            exponent_location: 15 - exponent_size,
            exponent_size,
            mantissa_location: 0,
            mantissa_size: 15 - exponent_size,
            exponent_bias,
        },
    }
}

#[test]
fn arrays_of_halves_are_read() {
    let folder = folder();
    let data = bytes(VALUES.iter().map(|(_, half)| *half));
    let path = file(&folder, "a.npy", &npy("'<f2'", false, "(3, 2)", &data));
    let vectors = read_vectors(&path).unwrap();
    assert_eq!((vectors.rows(), vectors.dim()), (3, 2));
    assert_eq!(vectors.to_f32(), floats());
    assert_eq!(vectors.element(), Element::F32);
    assert_eq!(vectors_shape(&path).unwrap(), vectors.shape());

    let short = npy("'<f2'", false, "(3, 2)", &data[..11]);
    let path = file(&folder, "short.npy", &short);
    assert!(matches!(
        read_vectors(&path),
        Err(DataError::Truncated { .. })
    ));
    // Infinity.
    let data = bytes([0x3c00, 0x7c00].into_iter());
    let path = file(&folder, "b.npy", &npy("'<f2'", false, "(1, 2)", &data));
    assert!(matches!(
        read_vectors(&path),
        Err(DataError::NotFinite { column: 1, .. })
    ));
}

/// More rows than are converted at a time, in one piece and in pieces.
#[test]
fn sets_of_halves_are_read() {
    let folder = folder();
    let rows = 2500;
    let halves = || (0..rows).flat_map(|_| VALUES.iter().map(|(_, half)| *half));
    for chunked in [false, true] {
        let mut builder = FileBuilder::new();
        let train = builder.create_dataset("train");
        let count = (rows * VALUES.len()) as u64;
        train.with_raw_data(sixteen_bits(5, 15), bytes(halves()), count);
        train.with_shape(&[rows as u64, VALUES.len() as u64]);
        if chunked {
            train.with_chunks(&[700, 4]);
        }
        let path = file(&folder, "a.hdf5", &builder.finish().unwrap());
        let vectors = read_vectors(&path).unwrap();
        assert_eq!((vectors.rows(), vectors.dim()), (rows, VALUES.len()));
        assert_eq!(vectors.to_f32(), floats().repeat(rows));
        assert_eq!(vectors_shape(&path).unwrap(), vectors.shape());
    }
}

/// Two bytes with another split between exponent and mantissa are no halves.
#[test]
fn other_floats_of_two_bytes_are_refused() {
    let folder = folder();
    let mut builder = FileBuilder::new();
    let train = builder.create_dataset("train");
    train.with_raw_data(sixteen_bits(8, 127), vec![0; 12], 6);
    train.with_shape(&[3, 2]);
    let path = file(&folder, "a.hdf5", &builder.finish().unwrap());
    let error = read_vectors(&path).unwrap_err();
    assert!(
        matches!(error, DataError::UnsupportedType { .. }),
        "{error}"
    );
}
