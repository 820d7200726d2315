//! `garlic config`: every parameter with its meaning, as a TOML file to start from.

use std::fmt::Write as _;

use garlic_any::{AnyConfig, Preset};

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

/// Prints the parameters.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let preset: Preset = args.preset.parse()?;
    output::print(&commented(&AnyConfig::new(preset)))
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
        let rule = match parameter.rule {
            "" => String::new(),
            rule => format!(" It {rule}."),
        };
        let about = parameter.about.trim();
        let _ = writeln!(text, "\n# {about}{rule}\n{key} = {value}");
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
        }
    }
}
