//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use garlic_ann::Metric;
use garlic_eval::hostile::{self, Kind};
use garlic_eval::promise::matrix;

type Failure = Box<dyn std::error::Error>;

pub(crate) const HELP: &str = "\
recall_matrix [options]
  --kinds a,b       kinds of data; all unless set (--list names them)
  --metrics a,b     euclidean, cosine, inner_product; all unless set
  --ks 1,10,100     numbers of neighbours
  --targets .9,.99  recall targets
  --n 30000         base vectors
  --queries 500     queries
  --seed 1          seed of data and index
  --short           small data: minutes instead of hours
  --markdown FILE   write the table there as well
  --list            print the kinds and end
";

/// What was asked for.
pub(crate) struct Args {
    pub(crate) kinds: Vec<&'static Kind>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) plan: matrix::Plan,
    pub(crate) markdown: Option<PathBuf>,
    pub(crate) help: bool,
    pub(crate) list: bool,
}

impl Args {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut args = Self {
            kinds: hostile::kinds().iter().collect(),
            metrics: Metric::ALL.to_vec(),
            plan: matrix::Plan::default(),
            markdown: None,
            help: false,
            list: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--kinds" => {
                    let known = |name: &str| {
                        hostile::kind(name).ok_or(format!("there is no kind `{name}`; see --list"))
                    };
                    args.kinds = value()?.split(',').map(known).collect::<Result<_, _>>()?;
                }
                "--metrics" => args.metrics = list(&value()?)?,
                "--ks" => args.plan.ks = list(&value()?)?,
                "--targets" => args.plan.targets = list(&value()?)?,
                "--n" => args.plan.points = value()?.parse()?,
                "--queries" => args.plan.queries = value()?.parse()?,
                "--seed" => args.plan.seed = value()?.parse()?,
                "--markdown" => args.markdown = Some(value()?.into()),
                "--short" => (args.plan.points, args.plan.queries) = (6000, 150),
                "--list" => args.list = true,
                "--help" | "-h" => args.help = true,
                _ => return Err(format!("there is no option `{word}`; see --help").into()),
            }
        }
        Ok(args)
    }
}

/// Values between commas.
fn list<T: FromStr>(text: &str) -> Result<Vec<T>, Failure>
where
    T::Err: std::error::Error + 'static,
{
    let parse = |word: &str| word.parse::<T>().map_err(Failure::from);
    text.split(',').map(parse).collect()
}
