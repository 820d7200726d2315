//! Changing a configuration by name: TOML text and `key = value` settings.

use toml::{Table, Value};

use super::Config;
use crate::error::{Error, Result};

impl Config {
    /// Every key, in the order of the fields.
    pub fn keys() -> Vec<String> {
        Self::default().to_table().keys().cloned().collect()
    }

    /// Applies every key of a TOML text.
    pub fn apply_toml(&mut self, text: &str) -> Result<()> {
        let table: Table = text
            .parse()
            .map_err(|e: toml::de::Error| Error::ConfigSyntax(e.to_string()))?;
        for (key, value) in table {
            self.set_value(&key, value)?;
        }
        Ok(())
    }

    /// Sets one key from text, such as `set("tau", "2.5")`. Bare words are taken as strings.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let value = value.trim();
        let parsed = format!("value = {value}")
            .parse::<Table>()
            .ok()
            .and_then(|mut t| t.remove("value"))
            // `.5` and `5.`, which are no numbers in TOML.
            .or_else(|| {
                value
                    .parse()
                    .ok()
                    .filter(|v: &f64| v.is_finite())
                    .map(Value::Float)
            })
            .unwrap_or_else(|| Value::String(value.to_owned()));
        self.set_value(key.trim(), parsed)
    }

    /// The configuration as TOML text; [`Config::apply_toml`] takes it back.
    pub fn to_toml(&self) -> String {
        self.to_table().to_string()
    }

    fn to_table(&self) -> Table {
        // A struct of numbers, booleans and plain enums always serialises.
        Table::try_from(self).unwrap_or_default()
    }

    fn set_value(&mut self, key: &str, value: Value) -> Result<()> {
        let mut table = self.to_table();
        let Some(old) = table.get(key) else {
            return Err(Error::UnknownKey {
                key: key.to_owned(),
                suggestion: nearest_key(key),
            });
        };
        let value = widen(value, old);
        table.insert(key.to_owned(), value);
        *self = table
            .try_into()
            .map_err(|e: toml::de::Error| Error::Config {
                key: key.to_owned(),
                message: e.message().trim().to_owned(),
            })?;
        Ok(())
    }
}

/// `tau = 3` means 3.0, `batch = 2e4` means 20000: numbers take the type of the value they replace when
/// nothing is lost.
fn widen(value: Value, old: &Value) -> Value {
    match (value, old) {
        (Value::Integer(i), Value::Float(_)) => Value::Float(i as f64),
        (Value::Float(f), Value::Integer(_)) if f.fract() == 0.0 && f.abs() < 1e15 => {
            Value::Integer(f as i64)
        }
        (Value::Array(items), Value::Array(olds)) => Value::Array(
            items
                .into_iter()
                .zip(olds.iter().cycle())
                .map(|(v, o)| widen(v, o))
                .collect(),
        ),
        (value, _) => value,
    }
}

/// The key with the smallest edit distance, if it is near enough to be a slip.
fn nearest_key(key: &str) -> Option<String> {
    let folded = key.to_lowercase().replace('-', "_");
    Config::keys()
        .into_iter()
        .map(|k| (edit_distance(&folded, &k), k))
        .min()
        .filter(|(distance, k)| *distance <= k.len().max(folded.len()) / 2)
        .map(|(_, k)| k)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_take_the_type_of_their_key() {
        let mut c = Config::default();
        c.set("tau", "2").unwrap();
        c.set("batch", "5e3").unwrap();
        c.set("init", "farthest-point").unwrap();
        c.set("anisotropy", ".25").unwrap();
        c.set("spill", "2.").unwrap();
        assert_eq!((c.anisotropy, c.spill), (0.25, 2.0));
        assert!(c.set("anisotropy", "infinity").is_err());
        c.set("mean_rate", "[1e-6, 1, 2e-3]").unwrap();
        assert_eq!(
            (c.tau, c.batch, c.mean_rate),
            (2.0, 5000, [1e-6, 1.0, 2e-3])
        );
        assert_eq!(c.init, crate::config::Init::FarthestPoint);
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let mut c = Config::default();
        let e = c.set("intial-cells", "5").unwrap_err().to_string();
        assert_eq!(
            e,
            "unknown configuration key `intial-cells`: did you mean `initial_cells`?"
        );
        let e = c.set("qqqqqqqqqqqqqqqq", "5").unwrap_err().to_string();
        assert!(!e.contains("did you mean"), "{e}");
    }

    #[test]
    fn wrong_types_and_values_are_errors() {
        let mut c = Config::default();
        for (key, value) in [
            ("tau", "high"),
            ("batch", "-3"),
            ("batch", "1.5"),
            ("init", "best"),
        ] {
            let e = c.set(key, value).unwrap_err().to_string();
            assert!(e.contains(key), "{e}");
        }
        assert_eq!(c, Config::default());
        c.set("train_fraction", "0").unwrap();
        assert!(
            c.validate()
                .unwrap_err()
                .to_string()
                .contains("train_fraction")
        );
    }

    #[test]
    fn toml_round_trip() {
        let mut c = Config::default();
        c.set("split_method", "two-means").unwrap();
        let mut back = Config::default();
        back.apply_toml(&c.to_toml()).unwrap();
        assert_eq!(back, c);
        assert!(matches!(
            back.apply_toml("= 3"),
            Err(Error::ConfigSyntax(_))
        ));
    }
}
