//! The parameters of an index of either kind.

use garlic_ann::{Error, Metric, Result};
use garlic_core::config::{Configuration, Parameter, Parameters};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A named kind of index with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// The index: anisotropic cells, bins, codes, recall as the one knob.
    #[default]
    Default,
    /// The published method with its published parameters.
    Paper,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 2] = [Self::Default, Self::Paper];

    /// Its name on the command line and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Paper => "paper",
        }
    }
}

/// What only one kind of index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// Recall targets.
    Recall,
    /// Changes after the build.
    Updates,
    /// A training by epochs, with a history.
    Epochs,
}

impl Feature {
    /// The preset that has it.
    pub fn preset(self) -> Preset {
        match self {
            Self::Recall | Self::Updates => Preset::Default,
            Self::Epochs => Preset::Paper,
        }
    }
}

impl std::str::FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|preset| preset.name() == name);
        known.ok_or_else(|| Error::Config {
            key: "preset".into(),
            message: format!("there is no preset `{name}`; the presets are: default, paper"),
        })
    }
}

/// The parameters of an index of either kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnyConfig {
    /// Of preset `default`.
    Cells(garlic_ann::Config),
    /// Of preset `paper`.
    Gaussians(Box<garlic_paper::Config>),
}

impl AnyConfig {
    /// The parameters of a preset.
    pub fn new(preset: Preset) -> Self {
        match preset {
            Preset::Default => Self::Cells(Default::default()),
            Preset::Paper => Self::Gaussians(Default::default()),
        }
    }

    /// The preset that they belong to.
    pub fn preset(&self) -> Preset {
        match self {
            Self::Cells(_) => Preset::Default,
            Self::Gaussians(_) => Preset::Paper,
        }
    }

    fn parameters(&self) -> &dyn Parameters {
        match self {
            Self::Cells(config) => config,
            Self::Gaussians(config) => &**config,
        }
    }

    /// The table of all parameters.
    pub fn table(&self) -> Vec<Parameter> {
        self.parameters().table()
    }

    /// All values by their keys, in the order of the table.
    pub fn values(&self) -> Vec<(&'static str, Value)> {
        self.parameters().values()
    }

    /// Sets one parameter from text; a key of the other preset is an error that says so.
    ///
    /// # Errors
    /// Those of [`Configuration::set`].
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let set = match self {
            Self::Cells(config) => config.set(key, text),
            Self::Gaussians(config) => config.set(key, text),
        };
        set.map_err(|error| self.foreign(error))
    }

    /// Applies every key of a TOML text.
    ///
    /// # Errors
    /// Those of [`Configuration::apply_toml`].
    pub fn apply_toml(&mut self, text: &str) -> Result<()> {
        let set = match self {
            Self::Cells(config) => config.apply_toml(text),
            Self::Gaussians(config) => config.apply_toml(text),
        };
        set.map_err(|error| self.foreign(error))
    }

    /// An unknown key that the other preset knows is a mistake of another kind.
    fn foreign(&self, error: Error) -> Error {
        let Error::UnknownKey { key, .. } = &error else {
            return error;
        };
        let other = match self.preset() {
            Preset::Default => Preset::Paper,
            Preset::Paper => Preset::Default,
        };
        let known = Self::new(other).table();
        match known.iter().any(|parameter| parameter.key == key) {
            false => error,
            true => Error::Config {
                key: key.clone(),
                message: format!(
                    "belongs to preset {}, this is preset {}; leave it out or change the preset",
                    other.name(),
                    self.preset().name()
                ),
            },
        }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first one out of range.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Cells(config) => config.validate(),
            Self::Gaussians(config) => config.validate(),
        }
    }

    /// What "near" means.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Cells(config) => config.metric,
            Self::Gaussians(config) => config.metric,
        }
    }

    /// Sets what "near" means.
    pub fn set_metric(&mut self, metric: Metric) {
        match self {
            Self::Cells(config) => config.metric = metric,
            Self::Gaussians(config) => config.metric = metric,
        }
    }

    /// Seed of every random choice.
    pub fn seed(&self) -> u64 {
        match self {
            Self::Cells(config) => config.seed,
            Self::Gaussians(config) => config.seed,
        }
    }

    /// The parameters that differ from those of the preset, except the seed.
    pub fn overrides(&self) -> Vec<(&'static str, Value)> {
        let usual = Self::new(self.preset()).values();
        let pairs = self.values().into_iter().zip(usual);
        let changed = pairs.filter(|((key, value), (_, usual))| *key != "seed" && value != usual);
        changed.map(|(pair, _)| pair).collect()
    }

    /// The parameters of an index that can be changed.
    ///
    /// # Errors
    /// [`Error::Unchanging`] for preset `paper`.
    pub fn updatable(&self) -> Result<&garlic_ann::Config> {
        match self {
            Self::Cells(config) => Ok(config),
            Self::Gaussians(_) => Err(Error::Unchanging),
        }
    }
}

impl From<garlic_ann::Config> for AnyConfig {
    fn from(config: garlic_ann::Config) -> Self {
        Self::Cells(config)
    }
}

impl Serialize for AnyConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Cells(config) => config.serialize(to),
            Self::Gaussians(config) => config.serialize(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_other_preset_are_told_from_slips() {
        let mut config = AnyConfig::new(Preset::Default);
        let error = config.set("tau", "2").unwrap_err().to_string();
        assert!(error.contains("belongs to preset paper"), "{error}");
        let error = config.set("cels", "2").unwrap_err().to_string();
        assert!(error.contains("did you mean `cells`"), "{error}");
        let mut paper = AnyConfig::new(Preset::Paper);
        let error = paper.apply_toml("bin_size = 3").unwrap_err().to_string();
        assert!(error.contains("belongs to preset default"), "{error}");
    }

    #[test]
    fn overrides_are_what_differs_from_the_preset() {
        let mut config = AnyConfig::new(Preset::Paper);
        assert!(config.overrides().is_empty());
        config.set("epochs", "3").unwrap();
        config.set("seed", "9").unwrap();
        assert_eq!(config.overrides(), [("epochs", Value::from(3))]);
        assert_eq!(config.seed(), 9);
    }

    #[test]
    fn keys_are_unique_and_documented() {
        for preset in Preset::ALL {
            let table = AnyConfig::new(preset).table();
            let mut keys: Vec<&str> = table.iter().map(|p| p.key).collect();
            assert!(
                table.iter().all(|p| p.about.trim().ends_with('.')),
                "{table:?}"
            );
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), table.len());
        }
    }
}
