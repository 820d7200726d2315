//! Typed parameters from one table.
//!
//! [`parameters!`](crate::parameters) takes a list of parameters, each with documentation, type, default and rule. It
//! defines a struct and implements [`Parameters`]. Validation, `key = value` settings, `garlic config`, Python and
//! the reference page all use this table. Groups nest, and keys are unique over all groups.

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::error::{Error, Result};

/// A rule for the values of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Rule<T> {
    /// The rule as text.
    pub text: &'static str,
    /// Whether a value follows the rule.
    pub allows: fn(&T) -> bool,
}

impl<T> Rule<T> {
    /// Creates a rule from its text and a predicate.
    pub const fn new(text: &'static str, allows: fn(&T) -> bool) -> Self {
        Self { text, allows }
    }

    /// Allows every value.
    pub const fn any() -> Self {
        Self::new("", |_| true)
    }
}

impl Rule<usize> {
    /// At least 1.
    pub const AT_LEAST_ONE: Self = Self::new("must be at least 1", |v| *v >= 1);
}

impl Rule<f64> {
    /// In (0, 1].
    pub const SHARE: Self = Self::new("must be in (0, 1]", |v| *v > 0.0 && *v <= 1.0);
    /// Above 0.
    pub const POSITIVE: Self = Self::new("must be above 0", |v| *v > 0.0 && v.is_finite());
    /// At least 0.
    pub const WEIGHT: Self = Self::new("must be 0 or above", |v| *v >= 0.0 && v.is_finite());
}

/// A row of the parameter table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name in settings, files and Python.
    pub key: &'static str,
    /// The group that the parameter belongs to.
    pub group: &'static str,
    /// The description.
    pub about: &'static str,
    /// The allowed values as text. Empty if all values of the type are allowed.
    pub rule: &'static str,
}

/// A struct of parameters, implemented by [`parameters!`](crate::parameters).
pub trait Parameters {
    /// The table: the parameters of this struct, then those of its groups.
    fn table(&self) -> Vec<Parameter>;
    /// All values by key, in the order of the table.
    fn values(&self) -> Vec<(&'static str, Value)>;
    /// Sets a parameter. Returns `None` for an unknown key, and an error text for an unsuitable value.
    fn set_value(&mut self, key: &str, value: &Value) -> Option<std::result::Result<(), String>>;
    /// Checks every value against its rule.
    ///
    /// # Errors
    /// [`Error::Config`] for the first value out of range.
    fn check_rules(&self) -> Result<()>;
}

/// All parameters of one kind of index.
pub trait Configuration: Parameters + Default + Clone {
    /// Checks rules between parameters.
    ///
    /// # Errors
    /// [`Error::Config`] names one of them.
    fn check_together(&self) -> Result<()> {
        Ok(())
    }

    /// Checks all values.
    ///
    /// # Errors
    /// [`Error::Config`] with the first key out of range and the allowed values.
    fn validate(&self) -> Result<()> {
        self.check_rules()?;
        self.check_together()
    }

    /// All keys, in the order of the table.
    fn keys() -> Vec<&'static str> {
        let table = Self::default().table();
        table.into_iter().map(|parameter| parameter.key).collect()
    }

    /// Sets a parameter from text, such as `set("cells", "256")`. Bare words are strings.
    ///
    /// # Errors
    /// [`Error::UnknownKey`] with the nearest key, [`Error::Config`] for a value of the wrong type.
    fn set(&mut self, key: &str, text: &str) -> Result<()> {
        self.put(key.trim(), &parse(text.trim()))
    }

    /// Sets a parameter from a JSON value.
    ///
    /// # Errors
    /// Those of [`Configuration::set`].
    #[doc(hidden)]
    fn put(&mut self, key: &str, value: &Value) -> Result<()> {
        match self.set_value(key, value) {
            Some(Ok(())) => Ok(()),
            Some(Err(message)) => Err(Error::Config {
                key: key.to_owned(),
                message,
            }),
            None => Err(Error::UnknownKey {
                key: key.to_owned(),
                suggestion: nearest_key(key, &Self::keys()),
            }),
        }
    }

    /// Applies every key of a TOML text.
    ///
    /// # Errors
    /// [`Error::ConfigSyntax`], and those of [`Configuration::set`].
    #[cfg(feature = "toml")]
    fn apply_toml(&mut self, text: &str) -> Result<()> {
        let table: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| Error::ConfigSyntax(e.to_string()))?;
        for (key, value) in table {
            let value = serde_json::to_value(value);
            let value = value.map_err(|e| Error::ConfigSyntax(e.to_string()))?;
            self.put(&key, &value)?;
        }
        Ok(())
    }

    /// The configuration as TOML text, which [`Configuration::apply_toml`] reads.
    #[cfg(feature = "toml")]
    fn to_toml(&self) -> String {
        let lines = self.values().into_iter();
        // JSON's numbers, booleans, strings and lists of numbers are valid TOML.
        lines
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect()
    }
}

/// Serializes parameters as a flat map, in the order of the table.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(
    values: &impl Parameters,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    let values = values.values();
    let mut map = to.serialize_map(Some(values.len()))?;
    for (key, value) in values {
        map.serialize_entry(key, &value)?;
    }
    map.end()
}

/// Parses numbers, lists and quoted text as JSON. Everything else is a string.
fn parse(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    // `.5`, `5.` and `20_000` are not JSON numbers.
    let number = text.replace('_', "").parse().ok();
    match number.filter(|v: &f64| v.is_finite()) {
        Some(number) => Value::from(number),
        None => Value::String(text.trim_matches('\'').to_owned()),
    }
}

/// Converts a value to the type of a parameter. Numbers are converted if that is exact, so `2e4` is a valid integer.
///
/// # Errors
/// The expected type.
#[doc(hidden)]
pub fn convert<T: DeserializeOwned>(value: &Value) -> std::result::Result<T, String> {
    let whole = match value.as_f64() {
        Some(f) if value.is_f64() && f.fract() == 0.0 && f.abs() < 1e15 => Some(f as i64),
        _ => None,
    };
    serde_json::from_value(value.clone()).or_else(|error| match whole {
        Some(whole) => serde_json::from_value(Value::from(whole)).map_err(|_| error.to_string()),
        None => Err(error.to_string()),
    })
}

/// A parameter's value as JSON.
#[doc(hidden)]
pub fn to_json(value: &impl Serialize) -> Value {
    // Numbers, booleans, plain enums and lists of numbers always serialize.
    serde_json::to_value(value).unwrap_or_default()
}

/// The key with the smallest edit distance, if it is near enough to be a typo.
pub fn nearest_key(key: &str, keys: &[&str]) -> Option<String> {
    let folded = key.to_lowercase().replace('-', "_");
    keys.iter()
        .map(|k| (edit_distance(&folded, k), *k))
        .min()
        .filter(|(distance, k)| *distance <= k.len().max(folded.len()) / 2)
        .map(|(_, k)| k.to_owned())
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Defines a struct of parameters and its table. See the [module](crate::config).
///
/// ```
/// use garlic_core::config::{Configuration, Parameters, Rule};
///
/// garlic_core::parameters! {
///     /// How points are divided into cells.
///     pub struct Partition in "partition" {
///         /// Number of cells; 0 chooses.
///         cells: usize = 0, Rule::new("must be at most 9", |v| *v <= 9);
///     }
/// }
/// garlic_core::parameters! {
///     /// All parameters.
///     pub struct Config in "general" {
///         /// Seed of every random choice.
///         seed: u64 = 1, Rule::any();
///     }
///     groups {
///         /// Cells.
///         partition: Partition;
///     }
/// }
/// impl Configuration for Config {}
///
/// let mut config = Config::default();
/// config.set("cells", "20").unwrap();
/// assert_eq!(config.partition.cells, 20);
/// assert!(config.validate().unwrap_err().to_string().contains("at most 9"));
/// assert_eq!(Config::keys(), ["seed", "cells"]);
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $group:literal {
            $($(#[doc = $about:literal])+ $key:ident: $ty:ty = $default:expr, $rule:expr;)*
        }
        $(groups {
            $($(#[doc = $field_about:literal])+ $field:ident: $field_ty:ty;)*
        })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $about])+ pub $key: $ty,)*
            $($($(#[doc = $field_about])+ pub $field: $field_ty,)*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $default,)*
                    $($($field: <$field_ty>::default(),)*)?
                }
            }
        }

        impl $crate::config::Parameters for $name {
            fn table(&self) -> Vec<$crate::config::Parameter> {
                #[allow(unused_mut)]
                let mut table = vec![$({
                    const RULE: $crate::config::Rule<$ty> = $rule;
                    $crate::config::Parameter {
                        key: stringify!($key),
                        group: $group,
                        about: concat!($($about),+),
                        rule: RULE.text,
                    }
                },)*];
                $($(table.extend($crate::config::Parameters::table(&self.$field));)*)?
                table
            }

            fn values(&self) -> Vec<(&'static str, ::serde_json::Value)> {
                #[allow(unused_mut)]
                let mut values = vec![$((
                    stringify!($key),
                    $crate::config::to_json(&self.$key),
                ),)*];
                $($(values.extend($crate::config::Parameters::values(&self.$field));)*)?
                values
            }

            fn set_value(
                &mut self,
                key: &str,
                value: &::serde_json::Value,
            ) -> Option<Result<(), String>> {
                match key {
                    $(stringify!($key) => {
                        return Some($crate::config::convert(value).map(|value| self.$key = value));
                    })*
                    _ => {}
                }
                $($(
                    let set = $crate::config::Parameters::set_value(&mut self.$field, key, value);
                    if set.is_some() {
                        return set;
                    }
                )*)?
                None
            }

            fn check_rules(&self) -> $crate::Result<()> {
                $({
                    const RULE: $crate::config::Rule<$ty> = $rule;
                    if !(RULE.allows)(&self.$key) {
                        return Err($crate::Error::Config {
                            key: stringify!($key).into(),
                            message: RULE.text.into(),
                        });
                    }
                })*
                $($($crate::config::Parameters::check_rules(&self.$field)?;)*)?
                Ok(())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $crate::config::serialize(self, to)
            }
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub)] // the macro makes public structs
mod tests {
    use super::*;

    crate::parameters! {
        /// A group.
        pub struct Group in "group" {
            /// A number.
            anisotropy: f64 = 0.5, Rule::new("must be in [0, 1]", |v| (0.0..=1.0).contains(v));
            /// Three numbers.
            rates: [f64; 3] = [1e-7, 9e-3, 3e-3], Rule::any();
        }
    }

    crate::parameters! {
        /// All.
        pub struct Config in "general" {
            /// A seed.
            seed: u64 = 0, Rule::any();
            /// A number of
            /// points.
            batch_size: usize = 10, Rule::AT_LEAST_ONE;
            /// A word.
            metric: crate::Metric = crate::Metric::Euclidean, Rule::any();
        }
        groups {
            /// More.
            group: Group;
        }
    }

    impl Configuration for Config {}

    #[test]
    fn settings_take_the_type_of_their_key() {
        let mut c = Config::default();
        for (key, value) in [
            ("batch_size", "5e3"),
            ("anisotropy", ".25"),
            ("metric", "inner_product"),
            ("rates", "[1e-6, 1, 2e-3]"),
        ] {
            c.set(key, value).unwrap();
        }
        assert_eq!((c.batch_size, c.group.anisotropy), (5000, 0.25));
        assert_eq!(c.metric, crate::Metric::InnerProduct);
        assert_eq!(c.group.rates, [1e-6, 1.0, 2e-3]);
        c.set("batch_size", "20_000").unwrap();
        c.set("metric", "\"cosine\"").unwrap();
        assert_eq!((c.batch_size, c.metric), (20_000, crate::Metric::Cosine));
    }

    #[test]
    fn wrong_types_and_values_are_errors() {
        let mut c = Config::default();
        for (key, value) in [
            ("anisotropy", "high"),
            ("anisotropy", "infinity"),
            ("batch_size", "-3"),
            ("batch_size", "1.5"),
            ("metric", "best"),
        ] {
            let e = c.set(key, value).unwrap_err().to_string();
            assert!(e.contains(key), "{e}");
        }
        assert_eq!(c, Config::default());
        c.validate().unwrap();
        c.set("anisotropy", "1.5").unwrap();
        let e = c.validate().unwrap_err().to_string();
        assert_eq!(e, "configuration key `anisotropy`: must be in [0, 1]");
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let mut c = Config::default();
        let e = c.set("bach-size", "5").unwrap_err().to_string();
        assert!(
            e.ends_with("`bach-size`: did you mean `batch_size`?"),
            "{e}"
        );
        let e = c.set("qqqqqqqqqqqqqqqq", "5").unwrap_err().to_string();
        assert!(!e.contains("did you mean"), "{e}");
    }

    #[test]
    fn the_table_has_every_parameter_once_with_its_words() {
        let table = Config::default().table();
        let keys = ["seed", "batch_size", "metric", "anisotropy", "rates"];
        assert_eq!(Config::keys(), keys);
        assert_eq!(table[1].about, " A number of points.");
        assert_eq!(
            (table[3].group, table[3].rule),
            ("group", "must be in [0, 1]")
        );
        let json = serde_json::to_string(&Config::default()).unwrap();
        let expected = r#"{"seed":0,"batch_size":10,"metric":"euclidean","anisotropy":0.5,"rates":[1e-7,0.009,0.003]}"#;
        assert_eq!(json, expected);
    }

    #[cfg(feature = "toml")]
    #[test]
    fn toml_round_trip() {
        let mut c = Config::default();
        c.set("metric", "cosine").unwrap();
        let mut back = Config::default();
        back.apply_toml(&c.to_toml()).unwrap();
        assert_eq!(back, c);
        assert!(matches!(
            back.apply_toml("= 3"),
            Err(Error::ConfigSyntax(_))
        ));
    }
}
