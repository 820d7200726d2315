//! The section META: sizes, configuration, coverage and history as JSON.

use std::fmt;

use garlic_core::config::{Configuration as _, Parameters as _};
use garlic_core::file::{self, Fault, FormatError, Kind, Reader, Source, check_meta, inconsistent};
use garlic_core::metric::Embedding;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::kinds;
use crate::config::Config;
use crate::index::{Coverage, GaussianIndex};
use crate::training::History;

/// What META holds.
pub(super) type Meta = file::Meta<StoredConfig, Body, BuildStats>;

/// The small parts of the cells. Files of format 2 name the kind of index here.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Body {
    Published {
        coverage: Coverage,
        history: History,
    },
}

/// How the index has changed since it was built: not at all. Readers of format 2 expect these numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BuildStats {
    built: u64,
    radius: f64,
    added: u64,
    added_radius: f64,
    removed: u64,
}

/// The configuration as files of format 2 have it.
#[derive(Clone, Debug)]
pub(super) struct StoredConfig(pub(super) Config);

/// What the key `model` says in files of this kind of index.
const MODEL: &str = "gaussians";

/// Parameters that files have had from some day on, with what was done before: such a file is searched as it always was.
const LATER_KEYS: [(&str, &str); 4] = [
    ("anchor_points", "nearest"),
    ("clone_shell_end", "e-tau"),
    ("clone_sample_most", "1000"),
    ("bin_budget", "occupied"),
];

/// Whether a later parameter says what was done before there was one. Files do not name it then, so that older programs
/// read them.
fn was_always_so(key: &str, value: &Value) -> bool {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    LATER_KEYS.contains(&(key, &text))
}

/// Keys of the other index, which readers of format 2 expect, with the values that they had for this one.
fn foreign_keys() -> [(&'static str, Value); 13] {
    [
        ("keep_variance", json!(0.9)),
        ("max_dim", json!(256)),
        ("cells", json!(0)),
        ("axes", json!(0)),
        ("anisotropy", json!(0.5)),
        ("rounds", json!(8)),
        ("gradient_epochs", json!(0)),
        ("spill", json!(0.0)),
        ("bin_size", json!(48)),
        ("code_bits", json!(0)),
        ("store", json!("f32")),
        ("calibration_queries", json!(1000)),
        ("recall", json!(0.95)),
    ]
}

impl Serialize for StoredConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (key, value) in self.0.values() {
            if !was_always_so(key, &value) {
                map.serialize_entry(key, &value)?;
            }
            match key {
                "seed" => map.serialize_entry("model", MODEL)?,
                "metric" => {
                    for (key, value) in foreign_keys() {
                        map.serialize_entry(key, &value)?;
                    }
                }
                _ => {}
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for StoredConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Keys)
    }
}

/// Reads the configuration key by key.
struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = StoredConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of an index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StoredConfig, A::Error> {
        let mut config = Config::default();
        let mut seen: Vec<String> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            match config.set_value(&key, &value) {
                Some(Ok(())) => {}
                Some(Err(message)) => return Err(A::Error::custom(format!("`{key}`: {message}"))),
                None if key == "model" && value == MODEL => {}
                None if key == "model" => {
                    return Err(A::Error::custom(format!(
                        "the model {value} is not {MODEL}"
                    )));
                }
                None if foreign_keys().iter().any(|(known, _)| *known == key) => {}
                None => return Err(A::Error::custom(format!("unknown key `{key}`"))),
            }
            seen.push(key);
        }
        for (key, value) in LATER_KEYS {
            if !seen.iter().any(|s| s == key) {
                config.set(key, value).map_err(A::Error::custom)?;
                seen.push(key.into());
            }
        }
        let needed = Config::keys().into_iter().chain(["model"]);
        // The first files of format 2 had no metric.
        let mut missing = needed.filter(|key| *key != "metric" && !seen.iter().any(|s| s == key));
        match missing.next() {
            Some(key) => Err(A::Error::custom(format!("missing key `{key}`"))),
            None => Ok(StoredConfig(config)),
        }
    }
}

/// META of an index.
pub(super) fn of(index: &GaussianIndex) -> Meta {
    Meta {
        dim: index.transform.dim() as u64,
        longest: index.embedding.longest(),
        points: index.len() as u64,
        cells: index.cells() as u64,
        element: index.vectors.element(),
        config: StoredConfig(index.config.clone()),
        body: Body::Published {
            coverage: index.coverage(),
            history: index.history().clone(),
        },
        build_stats: BuildStats {
            built: index.len() as u64,
            ..BuildStats::default()
        },
    }
}

/// Reads and checks META.
pub(super) fn read<R: Source>(reader: &mut Reader<R>) -> Result<(Meta, Embedding), Fault> {
    let wrong = |message: String| inconsistent(Kind::Meta, message);
    let has = |kind: Kind| reader.layout().length(kind).is_some();
    if has(Kind::Cells) && !has(Kind::Means) {
        return Err(Fault::Format(FormatError::OtherIndex {
            holds: "the default preset",
            reader: "garlic_ann::Index",
        }));
    }
    let meta: Meta = file::read_meta(reader)?;
    if meta.points == 0 {
        return Err(wrong("an index without points".into()));
    }
    let valid = meta.config.0.validate();
    valid.map_err(|error| wrong(error.to_string()))?;
    let with_table = reader.layout().length(Kind::Table).is_some();
    check_meta(&meta, reader, kinds(with_table))?;
    let metric = meta.config.0.metric;
    let embedding = Embedding::restore(metric, meta.longest, meta.dim)
        .ok_or_else(|| wrong("`longest` is not what the metric asks for".into()))?;
    Ok((meta, embedding))
}
