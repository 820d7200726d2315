//! Identifiers in JSON: all of them whole numbers, or all of them text.

use std::borrow::Cow;
use std::fmt;

use garlic_table::{Id, Ids};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::Value;

/// Identifiers of several points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdList(pub(crate) Ids);

impl Default for IdList {
    fn default() -> Self {
        Self(Ids::Numbers(Vec::new()))
    }
}

/// An identifier as JSON.
pub(crate) fn point_id(id: Id) -> Value {
    match id {
        Id::Number(number) => number.into(),
        Id::Name(name) => name.into(),
    }
}

impl JsonSchema for IdList {
    fn schema_name() -> Cow<'static, str> {
        "Identifiers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Whole numbers below 2^63, or text; all of one kind.",
            "anyOf": [
                { "type": "array", "items": { "type": "integer", "minimum": 0 } },
                { "type": "array", "items": { "type": "string", "minLength": 1 } },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for IdList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(List)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = IdList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of identifiers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<IdList, A::Error> {
        let (mut numbers, mut names) = (Vec::new(), Vec::new());
        while let Some(value) = list.next_element::<Value>()? {
            match value {
                Value::String(name) => names.push(name),
                Value::Number(number) if number.is_u64() => {
                    numbers.push(number.as_u64().unwrap_or_default());
                }
                other => {
                    return Err(de::Error::custom(format!(
                        "an identifier is {other}; identifiers are whole numbers from 0 on, or text"
                    )));
                }
            }
            if !names.is_empty() && !numbers.is_empty() {
                return Err(de::Error::custom(
                    "some identifiers are numbers and some are text; give all of one kind",
                ));
            }
        }
        Ok(IdList(match names.is_empty() {
            true => Ids::Numbers(numbers),
            false => Ids::Names(names),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_of_one_kind() {
        let read = |text: &str| serde_json::from_str::<IdList>(text).map(|ids| ids.0);
        assert_eq!(read("[3, 1]").unwrap(), Ids::Numbers(vec![3, 1]));
        assert_eq!(read("[\"a\"]").unwrap(), Ids::names(["a"]));
        assert_eq!(read("[]").unwrap(), Ids::Numbers(vec![]));
        for wrong in [
            "[1, \"a\"]",
            "[\"a\", 1]",
            "[-1]",
            "[1.5]",
            "[null]",
            "7",
            "[[1]]",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
