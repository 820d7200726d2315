//! The section META: sizes, configuration, calibration and build statistics as JSON.

use crate::config::Config;
use crate::plan::Calibration;
use crate::segment::BuildStats;
use garlic_core::config::{Configuration as _, Parameters as _};
use garlic_core::file::{self, Fault, Kind, Reader, Source, inconsistent};
use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Content of META.
pub(super) type Meta = file::Meta<StoredConfig, Body, BuildStats>;

/// The calibration, tagged with the kind of index.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Body {
    /// The name of this kind of index in files.
    Tempered {
        /// The calibration table.
        calibration: Calibration,
    },
}

/// The name of this kind of index in a configuration.
const MODEL: &str = "tempered";

/// A removed parameter, and the one that it follows in files.
const REMOVED: (&str, &str) = ("gradient_epochs", "rounds");

/// Keys of the published method. Readers of this format version expect them in every configuration.
const FOREIGN: &str = r#"{"train_fraction":1.0,"normalize":"global","rotate":true,"covariance":"full",
"init":"kmeans-plus-plus","initial_cells":100,"init_sample":20000,"init_neighbours":3,"init_scale_floor":0.1,
"tau":3.0,"weight_divergence":1.0,"weight_coverage":1.0,"weight_anchor":0.01,"anchor_shape":0.1,"epochs":250,
"batch":20000,"warmup_epochs":35,"mean_rate":[1e-7,0.009,0.003],"factor_rate":[1e-7,0.0005,0.00009],
"adam_beta1":0.9,"adam_beta2":0.999,"adam_epsilon":1e-8,"adam_reset":false,"diagonal_floor":0.01,
"early_stop":true,"patience":30,"min_improvement":0.001,"select_every":0,"select_queries":300,"select_recall":0.9,
"refine_every":35,"refine_quiet":20,"max_cells":4096,"split":true,"split_threshold":0.01,"split_method":"dbscan",
"split_sample":1000,"split_scale":0.9,"split_refusal":0.95,"clone":true,"clone_threshold":0.0008,"clone_ratio":0.5,
"clone_shell":2.2,"clone_sample":0.6,"clone_neighbours":3,"prune":true,"prune_every":60,"prune_size":1,"rank":3,
"radial_steps":6,"angular_steps":4,"probes":5,"bins":0.3}"#;

/// A configuration as stored in files: flat, with keys that this version does not use.
#[derive(Clone, Debug)]
pub(super) struct StoredConfig(pub(super) Config);

impl Serialize for StoredConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (key, value) in self.0.values() {
            // Files of earlier versions do not have this key.
            if key == "graph" && value == "auto" {
                continue;
            }
            map.serialize_entry(key, &value)?;
            match key {
                "seed" => map.serialize_entry("model", MODEL)?,
                key if key == REMOVED.1 => map.serialize_entry(REMOVED.0, &0)?,
                _ => {}
            }
        }
        for (key, value) in foreign() {
            map.serialize_entry(&key, &value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for StoredConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(from)?;
        let mut config = Config::default();
        let foreign = foreign();
        for (key, value) in map {
            if key == "model" {
                if value != MODEL {
                    let message = "this is an index of the published method (preset paper)";
                    return Err(D::Error::custom(message));
                }
            } else if key != REMOVED.0 && foreign.iter().all(|(known, _)| *known != key) {
                let set = config.put(&key, &value);
                set.map_err(|error| D::Error::custom(error.to_string()))?;
            }
        }
        Ok(Self(config))
    }
}

/// The entries of [`FOREIGN`] in order.
fn foreign() -> Vec<(String, Value)> {
    /// Collects entries in their order. A map would sort them.
    struct Entries(Vec<(String, Value)>);

    impl<'de> serde::de::Visitor<'de> for Entries {
        type Value = Vec<(String, Value)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            mut self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            while let Some(entry) = map.next_entry()? {
                self.0.push(entry);
            }
            Ok(self.0)
        }
    }

    let mut json = serde_json::Deserializer::from_str(FOREIGN);
    // The text is a constant that a test reads.
    json.deserialize_map(Entries(Vec::new()))
        .unwrap_or_default()
}

/// Reads and checks META.
pub(super) fn read<R: Source>(reader: &mut Reader<R>) -> Result<Meta, Fault> {
    let meta: Meta = file::read_meta(reader)?;
    let wrong = |message: String| inconsistent(Kind::Meta, message);
    let valid = meta.config.0.validate();
    valid.map_err(|error| wrong(error.to_string()))?;
    let Body::Tempered { calibration } = &meta.body;
    super::validate::check_calibration(calibration)?;
    let with_graph = reader.layout().length(Kind::Graph).is_some();
    let with_table = reader.layout().length(Kind::Table).is_some();
    file::check_meta(&meta, reader, super::kinds(with_graph, with_table))?;
    Ok(meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_have_every_key_of_their_format_version() {
        assert_eq!(foreign().len(), 53);
        let mut config = Config::default();
        config.set("cells", "17").unwrap();
        let json = serde_json::to_string(&StoredConfig(config.clone())).unwrap();
        assert!(json.starts_with(
            r#"{"seed":0,"model":"tempered","metric":"euclidean","keep_variance":0.9"#
        ));
        assert!(json.contains(r#""rounds":8,"gradient_epochs":0,"spill":0.0"#));
        assert!(json.ends_with(r#""probes":5,"bins":0.3}"#));
        let back: StoredConfig = serde_json::from_str(&json).unwrap();
        assert_eq!(back.0, config);
    }

    /// Names in files do not change when fields are renamed.
    #[test]
    fn every_key_of_calibration_and_build_stats_keeps_its_name() {
        let stats = BuildStats {
            built: 1,
            radius: 2.5,
            added: 3,
            added_radius: 4.5,
            removed: 5,
            unchecked: 6,
            unchecked_radius: 7.5,
            uncovered: 8,
            longest: 9.5,
            trainings: 10,
            next_id: 11,
        };
        let json = r#"{"built":1,"radius":2.5,"added":3,"added_radius":4.5,"removed":5,"unchecked":6,"unchecked_radius":7.5,"strangers":8,"longest":9.5,"trainings":10,"next_id":11}"#;
        assert_eq!(serde_json::to_string(&stats).unwrap(), json);
        assert_eq!(serde_json::from_str::<BuildStats>(json).unwrap(), stats);

        let setting = crate::Setting {
            k: 1,
            recall: 0.5,
            measured: 0.25,
            probes: 2,
            bins: 0.75,
            rerank: 3,
            bin_prune_ratio: 1.5,
            rerank_prune_ratio: 2.5,
            expand_ratio: 0.0,
            everything: true,
        };
        let body = Body::Tempered {
            calibration: Calibration {
                queries: 4,
                points: 5,
                coarse_routing: true,
                correction: 1.25,
                sample_correction: 1.5,
                checked: 6,
                stale: true,
                settings: vec![setting],
                graph_settings: Vec::new(),
                graph_points: 0,
                graph_decision: None,
            },
        };
        let json = r#"{"tempered":{"calibration":{"queries":4,"points":5,"grouped":true,"correction":1.25,"sample":1.5,"checked":6,"stale":true,"settings":[{"k":1,"recall":0.5,"measured":0.25,"probes":2,"bins":0.75,"rerank":3,"slack":1.5,"trust":2.5,"everything":true}]}}}"#;
        assert_eq!(serde_json::to_string(&body).unwrap(), json);
        let Body::Tempered { calibration } = serde_json::from_str(json).unwrap();
        assert_eq!(calibration.settings, [setting]);
    }

    #[test]
    fn other_kinds_and_unknown_keys_are_refused() {
        for (json, words) in [
            (r#"{"model":"gaussians"}"#, "published method"),
            (r#"{"celsl":3}"#, "did you mean `cells`"),
            (r#"{"cells":-3}"#, "cells"),
        ] {
            let error = serde_json::from_str::<StoredConfig>(json).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
