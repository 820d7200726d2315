//! `garlic config`: every parameter with its meaning, as a TOML file to start from.

use std::fmt::Write as _;

use garlic_any::{AnyConfig, Parameter, Preset};

use crate::output;

/// Print all parameters of a preset as commented TOML
///
/// The output is a valid file for `garlic build --config`. Keep the lines that you change.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Kind of index: default or paper
    #[arg(long, default_value = "default")]
    preset: String,
    /// Print the parameters as Markdown tables, as the reference page has them
    #[arg(long)]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  garlic config
  garlic config --preset paper > my.toml
  garlic config --markdown
  garlic build vectors.npy -o vectors.garlic --config my.toml";

/// Prints the parameters.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let preset: Preset = args.preset.parse()?;
    let config = AnyConfig::new(preset);
    output::print(&match args.markdown {
        true => tables(&config),
        false => commented(&config),
    })
}

/// The parameters as Markdown, a table for each group.
fn tables(config: &AnyConfig) -> String {
    let mut text = String::new();
    let mut group = "";
    for (parameter, (key, value)) in config.table().iter().zip(config.values()) {
        // Writing to a string cannot fail.
        if parameter.group != group {
            let gap = if group.is_empty() { "" } else { "\n" };
            group = parameter.group;
            let _ = writeln!(
                text,
                "{gap}### {}\n\n| parameter | default | meaning |\n|---|---|---|",
                heading(group)
            );
        }
        let value = value.to_string();
        let value = value.trim_matches('"');
        let _ = writeln!(text, "| `{key}` | `{value}` | {} |", meaning(parameter));
    }
    text
}

/// A group as a heading.
fn heading(group: &str) -> String {
    let mut letters = group.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// What a parameter does and which values are allowed.
fn meaning(parameter: &Parameter) -> String {
    let about = parameter.about.trim();
    match parameter.rule {
        "" => about.to_owned(),
        rule => format!("{about} It {rule}."),
    }
}

/// The parameters by group, each with its meaning and what is allowed.
fn commented(config: &AnyConfig) -> String {
    let mut text = format!("# Parameters of preset `{}`.\n", config.preset().name());
    let mut group = "";
    for (parameter, (key, value)) in config.table().iter().zip(config.values()) {
        // Writing to a string cannot fail.
        if parameter.group != group {
            group = parameter.group;
            let _ = writeln!(text, "\n# --- {group}");
        }
        let _ = writeln!(text, "\n# {}\n{key} = {value}", meaning(parameter));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_configuration_of_its_preset() {
        for preset in Preset::ALL {
            let wanted = AnyConfig::new(preset);
            let mut config = wanted.clone();
            config.set("seed", "77").unwrap();
            let text = commented(&wanted);
            config.apply_toml(&text).unwrap();
            assert_eq!(config, wanted);
            let keys = wanted.table().len();
            assert_eq!(text.matches(" = ").count(), keys, "{text}");
            assert_eq!(tables(&wanted).matches("\n| `").count(), keys);
        }
    }
}
