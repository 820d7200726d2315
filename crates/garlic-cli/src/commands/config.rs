//! `garlic config`: every parameter with its meaning, as a TOML file to start from.

use std::fmt::Write as _;

use garlic_ann::config::Model;
use garlic_ann::{Config, Preset};
use serde_json::{Map, Value};

use crate::output;

/// Print all parameters of a preset as commented TOML
///
/// The output is a valid file for `garlic build --config`; keep the lines that you change.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Named set of parameters
    #[arg(long, default_value = "default")]
    preset: String,
}

const EXAMPLES: &str = "\
Examples:
  garlic config
  garlic config --preset paper > my.toml
  garlic build vectors.npy -o vectors.garlic --config my.toml";

/// Parameters in the order in which they act: a heading, then key and meaning. A heading that begins with the name
/// of a preset holds parameters that the other preset's cells do not use.
const PARAMETERS: &[(&str, &[(&str, &str)])] = &[
    (
        "All presets",
        &[
            ("seed", "seed of every random choice"),
            (
                "model",
                "the cells: tempered (preset default) or gaussians (preset paper)",
            ),
            (
                "metric",
                "what near means: euclidean, cosine or inner_product; unless given, what the data set says",
            ),
        ],
    ),
    (
        "All presets: sizes of cells",
        &[
            ("split", "cut cells that hold too many points"),
            (
                "split_refusal",
                "a split that leaves one part more than this share is refused",
            ),
            ("max_cells", "cells that splitting stops at"),
            ("prune", "remove cells that hold next to nothing"),
        ],
    ),
    (
        "Default preset",
        &[
            (
                "keep_variance",
                "share of the variance that the rotated and truncated space keeps, in (0, 1]",
            ),
            ("max_dim", "most dimensions of that space"),
            (
                "cells",
                "number of cells; 0 chooses from the number of points",
            ),
            ("axes", "axes of a cell; 0 chooses from the data"),
            (
                "anisotropy",
                "share of a cell's shape that its score uses, in [0, 1]",
            ),
            ("rounds", "rounds of assigning and refitting"),
            (
                "gradient_epochs",
                "most epochs of the published objective, with the parameters of preset paper, that refine the cells; 0 for none",
            ),
            (
                "spill",
                "a point also lies in its second nearest cell when that is at most so many times as far, at least 1; 0 for none",
            ),
            ("bin_size", "points that a bin holds on average"),
            (
                "code_bits",
                "bits of a coordinate in a point's code: 8 or 4; 0 chooses from the number of points",
            ),
            (
                "store",
                "how the vectors are stored: auto (u8 where that is exact, else f32), f32, f16 or u8",
            ),
            (
                "calibration_queries",
                "points held out as queries of the calibration",
            ),
            (
                "recall",
                "recall that a search aims at unless it says otherwise, in (0, 1)",
            ),
        ],
    ),
    (
        "Paper preset: data",
        &[
            (
                "train_fraction",
                "share of the points that training sees, in (0, 1]",
            ),
            ("normalize", "global, per-coordinate or none"),
            (
                "rotate",
                "rotate to the principal axes first: distances stay, pruning gets much better",
            ),
        ],
    ),
    (
        "Paper preset: first cells",
        &[
            (
                "covariance",
                "structure of the factors: full, diagonal or isotropic",
            ),
            (
                "init",
                "where the first means come from: kmeans-plus-plus, kmeans, farthest-point or random",
            ),
            ("initial_cells", "number of cells to start with (K0)"),
            ("init_sample", "points that the initialisation looks at"),
            (
                "init_neighbours",
                "nearest other means that a cell's initial scale is taken from",
            ),
            ("init_scale_floor", "smallest initial scale of a factor"),
        ],
    ),
    (
        "Paper preset: loss",
        &[
            (
                "tau",
                "Mahalanobis radius within which a cell covers a point",
            ),
            (
                "weight_divergence",
                "weight of the divergence loss: points outside every cell",
            ),
            (
                "weight_coverage",
                "weight of the coverage loss: points between several cells",
            ),
            (
                "weight_anchor",
                "weight of the anchor loss: cells away from the points they hold",
            ),
            (
                "anchor_shape",
                "weight of the shape term inside the anchor loss (alpha)",
            ),
        ],
    ),
    (
        "Paper preset: optimiser",
        &[
            ("epochs", "most passes over the training points"),
            ("batch", "points per step"),
            ("warmup_epochs", "epochs of linear warm-up"),
            (
                "mean_rate",
                "learning rate of the means: start, end of the warm-up, last epoch",
            ),
            (
                "factor_rate",
                "learning rate of the factors: start, end of the warm-up, last epoch",
            ),
            ("adam_beta1", "decay of the first moment"),
            ("adam_beta2", "decay of the second moment"),
            ("adam_epsilon", "added to the denominator"),
            (
                "adam_reset",
                "forget all moments at every refinement, not only those of new cells",
            ),
            (
                "diagonal_floor",
                "smallest value on the diagonal of a factor",
            ),
            ("early_stop", "stop on a plateau of the loss"),
            (
                "patience",
                "epochs without improvement before an early stop",
            ),
            (
                "min_improvement",
                "relative improvement of the loss that counts",
            ),
            (
                "select_every",
                "epochs between checks of what retrieval costs; the cheapest model is kept, 0 keeps the last one",
            ),
            ("select_queries", "points held out for these checks"),
            (
                "select_recall",
                "share of them that has to find its nearest training point",
            ),
        ],
    ),
    (
        "Paper preset: refinement",
        &[
            (
                "refine_every",
                "epochs between refinements; the first comes after the warm-up",
            ),
            (
                "refine_quiet",
                "epochs at the end without refinement, so that the last cells settle",
            ),
            (
                "split_threshold",
                "share of the training points above which a cell is split (gamma)",
            ),
            (
                "split_method",
                "dbscan (2-means when it does not find two clusters) or two-means",
            ),
            ("split_sample", "points that a split looks at"),
            ("split_scale", "factor by which the children's L is scaled"),
            ("clone", "copy cells that have many points just outside"),
            (
                "clone_threshold",
                "share of the training points above which a cell may be cloned",
            ),
            (
                "clone_ratio",
                "points in the shell outside over points inside that makes a cell clone (beta)",
            ),
            (
                "clone_shell",
                "outer radius of the shell in units of tau (e)",
            ),
            (
                "clone_sample",
                "share of the shell's points that is sampled for the clone's centre",
            ),
            (
                "clone_neighbours",
                "nearest sampled points that the density at a clone's centre is taken from",
            ),
            ("prune_every", "epochs between prunings"),
            ("prune_size", "most points of a cell that is pruned"),
        ],
    ),
    (
        "Paper preset: frames and bins",
        &[
            ("rank", "dimensions of a cell's frame (r)"),
            ("radial_steps", "radial steps of a cell's bins (n_r)"),
            (
                "angular_steps",
                "steps of every angle of a cell's bins (n_a)",
            ),
        ],
    ),
    (
        "Paper preset: search defaults",
        &[
            (
                "probes",
                "cells a query visits unless it says otherwise (k_G)",
            ),
            (
                "bins",
                "share of a cell's occupied bins a query scans unless it says otherwise (rho), in (0, 1]",
            ),
        ],
    ),
];

/// Prints the parameters.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let preset: Preset = args.preset.parse()?;
    let values: toml::Table = Config::preset(preset).to_toml().parse()?;
    output::print(&commented(&args.preset, &values))
}

/// The preset that a configuration belongs to: its cells tell.
pub(crate) fn preset_of(config: &Config) -> Preset {
    match config.model {
        Model::Tempered => Preset::Default,
        Model::Gaussians => Preset::Paper,
    }
}

/// The name of a preset, as `--preset` takes it.
pub(crate) fn name(preset: Preset) -> &'static str {
    match preset {
        Preset::Default => "default",
        Preset::Paper => "paper",
    }
}

/// Keys among `changed` that the cells of `preset` do not use.
pub(crate) fn unused(preset: Preset, changed: &Map<String, Value>) -> Vec<&'static str> {
    let other = match preset {
        Preset::Default => "Paper preset",
        Preset::Paper => "Default preset",
    };
    // The published objective brings most of its parameters along.
    let descends = changed.get("gradient_epochs").is_some_and(|v| *v != 0);
    if preset == Preset::Default && descends {
        return Vec::new();
    }
    PARAMETERS
        .iter()
        .filter(|(heading, _)| heading.starts_with(other))
        .flat_map(|(_, keys)| keys.iter().map(|(key, _)| *key))
        .filter(|key| changed.contains_key(*key))
        .collect()
}

/// The parameters that differ from the configuration's preset, except the seed, which is reported by itself.
pub(crate) fn overrides(config: &Config) -> Map<String, Value> {
    let object = |c: &Config| match serde_json::to_value(c) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let base = object(&Config::preset(preset_of(config)));
    object(config)
        .into_iter()
        .filter(|(key, value)| key != "seed" && base.get(key) != Some(value))
        .collect()
}

fn commented(preset: &str, values: &toml::Table) -> String {
    let mut text = format!("# Parameters of preset `{preset}`.\n");
    let mut told = Vec::new();
    for (heading, keys) in PARAMETERS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n# --- {heading}");
        for (key, meaning) in *keys {
            if let Some(value) = values.get(*key) {
                let _ = writeln!(text, "\n# {meaning}\n{key} = {value}");
                told.push(*key);
            }
        }
    }
    // A parameter that is newer than the list above still has to be in the file.
    for (key, value) in values
        .iter()
        .filter(|(key, _)| !told.contains(&key.as_str()))
    {
        let _ = writeln!(text, "\n{key} = {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_a_meaning_and_nothing_else_has() {
        let mut told: Vec<String> = PARAMETERS
            .iter()
            .flat_map(|(_, keys)| *keys)
            .map(|(key, _)| (*key).to_owned())
            .collect();
        let mut keys = Config::keys();
        told.sort();
        keys.sort();
        assert_eq!(told, keys);
    }

    #[test]
    fn the_text_is_a_configuration() {
        for preset in [Preset::Default, Preset::Paper] {
            let wanted = Config::preset(preset);
            let values: toml::Table = wanted.to_toml().parse().unwrap();
            let mut config = Config {
                tau: 1.0,
                ..Config::default()
            };
            config
                .apply_toml(&commented(name(preset), &values))
                .unwrap();
            assert_eq!(config, wanted);
            assert_eq!(name(preset).parse::<Preset>().unwrap(), preset);
        }
    }

    #[test]
    fn overrides_are_relative_to_the_preset_of_the_cells() {
        let mut config = Config::preset(Preset::Paper);
        assert!(overrides(&config).is_empty());
        config.set("epochs", "3").unwrap();
        config.set("bin_size", "30").unwrap();
        config.set("seed", "5").unwrap();
        let changed = overrides(&config);
        assert_eq!(changed.keys().collect::<Vec<_>>(), ["bin_size", "epochs"]);
        assert_eq!(unused(Preset::Paper, &changed), ["bin_size"]);
        assert_eq!(unused(Preset::Default, &changed), ["epochs"]);
        for key in ["split", "prune", "split_refusal", "max_cells"] {
            let changed = Map::from_iter([(key.to_owned(), Value::Null)]);
            assert!(unused(Preset::Default, &changed).is_empty(), "{key}");
            assert!(unused(Preset::Paper, &changed).is_empty(), "{key}");
        }
        assert!(overrides(&Config::default()).is_empty());
        // The file decides about the cells, whatever preset it was laid over.
        let mut config = Config::default();
        let paper = Config::preset(Preset::Paper);
        config.apply_toml(&paper.to_toml()).unwrap();
        assert_eq!(preset_of(&config), Preset::Paper);
        assert!(overrides(&config).is_empty());
    }
}
