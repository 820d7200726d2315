//! Identifiers as users give them: on the command line, a number a line, or tables of numbers.

use std::io::Read as _;
use std::path::Path;

use garlic_data::Origin;
use garlic_table::Ids;

use crate::exit::Fault;
use crate::input;

/// Identifiers are below this.
const LIMIT: u64 = 1 << 63;

/// Reads one identifier.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(id) if id < LIMIT => Ok(id),
        _ => Err("must be a whole number from 0 to 2^63 - 1".into()),
    }
}

/// All identifiers of a file: `.npy`, `.ivecs` and `.ibin` row after row, anything else as text with one a line;
/// `-` is text on standard input.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u64>> {
    if is_table(path) {
        return table(path);
    }
    let (text, name) = text_of(path)?;
    lines(&text, &name)
}

fn is_table(path: &Path) -> bool {
    let known = ["npy", "ivecs", "ibin"];
    path.extension()
        .is_some_and(|e| known.iter().any(|known| e == *known))
}

/// The text of a file or of standard input, and its name in messages.
fn text_of(path: &Path) -> anyhow::Result<(String, String)> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| Fault::input(format!("cannot read standard input: {e}")))?;
        return Ok((text, "standard input".to_owned()));
    }
    Ok((input::read_text(path)?, path.display().to_string()))
}

/// Identifiers of a file. Text is names if `named`, numbers if not; unless that is known, it is numbers if every line is
/// one.
pub(crate) fn read_any(path: &Path, named: Option<bool>) -> anyhow::Result<Ids> {
    let is_numbers = is_table(path) || named == Some(false);
    if is_numbers {
        return read(path).map(Ids::Numbers);
    }
    let (text, name) = text_of(path)?;
    match lines(&text, &name) {
        Ok(numbers) if named.is_none() => Ok(Ids::Numbers(numbers)),
        _ => Ok(Ids::names(
            text.lines().map(str::trim).filter(|line| !line.is_empty()),
        )),
    }
}

/// Identifiers for so many vectors, one for each.
pub(crate) fn read_for(
    path: &Path,
    vectors: usize,
    origin: &Origin,
    named: Option<bool>,
) -> anyhow::Result<Ids> {
    let ids = read_any(path, named)?;
    if ids.len() == vectors {
        return Ok(ids);
    }
    Err(Fault::input(format!(
        "{}: holds {} identifiers, {origin} holds {} vectors; give one identifier for each vector",
        path.display(),
        ids.len(),
        vectors
    )))
}

/// In order, each once.
pub(crate) fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The first identifier that comes twice.
pub(crate) fn twice(ids: &[u64]) -> Option<u64> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}

fn table(path: &Path) -> anyhow::Result<Vec<u64>> {
    let ids = garlic_data::read_ids(path)?;
    let id = |(at, id): (usize, &i64)| {
        u64::try_from(*id).map_err(|_| {
            Fault::input(format!(
                "{}: row {} holds {id}, which is no identifier; they are whole numbers from 0 on",
                path.display(),
                at / ids.cols
            ))
        })
    };
    ids.data.iter().enumerate().map(id).collect()
}

fn lines(text: &str, name: &str) -> anyhow::Result<Vec<u64>> {
    let filled = (1..)
        .zip(text.lines())
        .map(|(number, line): (usize, &str)| (number, line.trim()))
        .filter(|(_, line)| !line.is_empty());
    filled
        .map(|(number, line)| {
            parse(line).map_err(|rule| {
                // A line of a file that is no list at all may be long.
                let shown: String = line.chars().take(40).collect();
                Fault::input(format!(
                    "{name}: line {number} is `{shown}`: an identifier {rule}; write one a line"
                ))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_identifiers_or_are_named() {
        assert_eq!(lines("3\n\n 0 \r\n7", "f").unwrap(), [3, 0, 7]);
        assert_eq!(lines("", "f").unwrap(), [0; 0]);
        for (text, told) in [
            ("1\n2\nx3\n", "f: line 3 is `x3`"),
            ("\n\n-1", "line 3 is `-1`"),
            ("9223372036854775808", "2^63"),
            ("1.5", "line 1"),
            ("1 2", "one a line"),
        ] {
            let error = lines(text, "f").unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert_eq!(parse("9223372036854775807"), Ok(LIMIT - 1));
    }

    #[test]
    fn repeated_identifiers() {
        assert_eq!(sorted(vec![5, 1, 5, 2]), [1, 2, 5]);
        assert_eq!(twice(&[5, 1, 5, 2]), Some(5));
        assert_eq!(twice(&[5, 1, 2]), None);
    }
}
