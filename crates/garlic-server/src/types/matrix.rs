//! Vectors in JSON: read into one block of numbers, without a list for each.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};

/// Vectors of one dimension, one behind the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) data: Vec<f32>,
    pub(crate) dim: usize,
}

impl Matrix {
    pub(crate) fn rows(&self) -> usize {
        self.data.len() / self.dim.max(1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

impl JsonSchema for Matrix {
    fn schema_name() -> Cow<'static, str> {
        "Vectors".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let vector = json_schema!({ "type": "array", "items": { "type": "number" } });
        json_schema!({
            "description": "One vector, or a list of vectors of the same dimension.",
            "anyOf": [vector.clone(), { "type": "array", "items": vector }],
        })
    }
}

impl<'de> Deserialize<'de> for Matrix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Outer)
    }
}

struct Outer;

impl<'de> Visitor<'de> for Outer {
    type Value = Matrix;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vector (a list of numbers) or a list of vectors")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Matrix, A::Error> {
        let mut found = Found::default();
        while list.next_element_seed(Element(&mut found))?.is_some() {}
        let Found { data, dim, rows } = found;
        match (rows, dim) {
            // An empty list has no vectors; so has a list of empty ones, which have no dimension.
            (0, _) if data.is_empty() => Ok(Matrix::default()),
            (0, _) => Ok(Matrix {
                dim: data.len(),
                data,
            }),
            (_, Some(dim)) if dim > 0 => Ok(Matrix { data, dim }),
            _ => Err(de::Error::custom("the vectors have no coordinates")),
        }
    }
}

#[derive(Default)]
struct Found {
    data: Vec<f32>,
    dim: Option<usize>,
    rows: usize,
}

/// A number of the one vector, or a vector of the list.
struct Element<'a>(&'a mut Found);

impl Element<'_> {
    fn number<E: de::Error>(self, value: f64) -> Result<(), E> {
        if self.0.rows > 0 {
            return Err(E::custom("a number stands among the vectors"));
        }
        self.0.data.push(value as f32);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a list of numbers")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.number(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.number(value as f64)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.number(value as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let found = self.0;
        let before = found.data.len();
        if found.rows == 0 && before > 0 {
            return Err(de::Error::custom("a vector stands among the numbers"));
        }
        while let Some(value) = list.next_element::<f64>()? {
            found.data.push(value as f32);
        }
        let dim = found.data.len() - before;
        if let Some(first) = found.dim.replace(dim)
            && first != dim
        {
            return Err(de::Error::custom(format!(
                "vector {} has {dim} coordinates, those before it have {first}",
                found.rows
            )));
        }
        found.rows += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(usize, Vec<f32>), String> {
        let read: Result<Matrix, _> = serde_json::from_str(text);
        read.map(|m| (m.dim, m.data)).map_err(|e| e.to_string())
    }

    #[test]
    fn one_vector_and_several_are_read() {
        assert_eq!(read("[1, -2, 0.5]"), Ok((3, vec![1.0, -2.0, 0.5])));
        assert_eq!(read("[[1, 2], [3, 4]]"), Ok((2, vec![1.0, 2.0, 3.0, 4.0])));
        assert_eq!(read("[]"), Ok((0, vec![])));
    }

    #[test]
    fn what_is_no_matrix_is_an_error_that_says_where() {
        let error = read("[[1, 2], [3]]").unwrap_err();
        assert!(
            error.contains("vector 1 has 1 coordinates, those before it have 2"),
            "{error}"
        );
        for wrong in [
            "[[]]",
            "[1, [2]]",
            "[[1], 2]",
            "[null]",
            "[[\"x\"]]",
            "{}",
            "3",
            "[[[1]]]",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
