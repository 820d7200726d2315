//! `garlic config`: every parameter with its meaning, as a TOML file to start from.

use std::fmt::Write as _;

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
    #[arg(long, default_value = "paper")]
    preset: String,
}

const EXAMPLES: &str = "\
Examples:
  garlic config
  garlic config --preset paper > my.toml
  garlic build vectors.npy -o vectors.garlic --config my.toml";

/// Parameters in the order in which they act: a heading, then key and meaning.
const PARAMETERS: &[(&str, &[(&str, &str)])] = &[
    (
        "Data",
        &[
            ("seed", "seed of every random choice"),
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
        "First cells",
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
        "Loss",
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
        "Optimiser",
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
        ],
    ),
    (
        "Refinement",
        &[
            (
                "refine_every",
                "epochs between refinements; the first comes after the warm-up",
            ),
            (
                "refine_quiet",
                "epochs at the end without refinement, so that the last cells settle",
            ),
            ("max_cells", "most cells"),
            ("split", "cut cells that hold too many points"),
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
            (
                "split_refusal",
                "a split that leaves one child more than this share is refused",
            ),
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
            ("prune", "remove cells that hold next to nothing"),
            ("prune_every", "epochs between prunings"),
            ("prune_size", "most points of a cell that is pruned"),
        ],
    ),
    (
        "Frames and bins",
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
        "Search defaults",
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

/// The parameters that differ from the preset, except the seed, which is reported by itself.
pub(crate) fn overrides(preset: Preset, config: &Config) -> Map<String, Value> {
    let object = |c: &Config| match serde_json::to_value(c) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let base = object(&Config::preset(preset));
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
        let values: toml::Table = Config::default().to_toml().parse().unwrap();
        let mut config = Config {
            tau: 1.0,
            ..Config::default()
        };
        config.apply_toml(&commented("paper", &values)).unwrap();
        assert_eq!(config, Config::default());
    }
}
