//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use garlic_ann::Metric;
use garlic_eval::hostile::{self, Kind};
use garlic_eval::promise::growth::{self, Life, Order};
use garlic_eval::promise::{GROWTH_KINDS, SHORT_GROWTH_KINDS, SHORT_KINDS, matrix};

type Failure = Box<dyn std::error::Error>;

pub(crate) const HELP: &str = "\
recall_matrix [options]
  --kinds a,b       kinds of data (--list names them); all unless set, eight with --growth
  --metrics a,b     euclidean, cosine, inner_product; all unless set
  --ks 1,10,100     numbers of neighbours
  --targets .9,.99  recall targets
  --n 30000         base vectors
  --queries 500     queries
  --seed 1          seed of data and index
  --short           few kinds and small data: minutes
  --markdown FILE   write the table there as well
  --list            print the kinds and end

  --growth          measure indexes that grow instead
  --orders a,b      shuffled, sorted, drifting; all unless set
  --chunks 1,100    points added by one call
  --max 50000       points of an index at its end
";

/// What was asked for.
pub(crate) struct Args {
    kinds: Option<Vec<&'static Kind>>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) plan: matrix::Plan,
    targets: Option<Vec<f64>>,
    orders: Vec<Order>,
    chunks: Vec<usize>,
    most: Option<usize>,
    short: bool,
    pub(crate) growth: bool,
    pub(crate) markdown: Option<PathBuf>,
    pub(crate) help: bool,
    pub(crate) list: bool,
}

impl Args {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let words: Vec<String> = words.collect();
        let mut args = Self {
            kinds: None,
            metrics: Metric::ALL.to_vec(),
            plan: matrix::Plan::default(),
            targets: None,
            orders: Order::ALL.to_vec(),
            chunks: growth::CHUNKS.to_vec(),
            most: None,
            short: words.iter().any(|word| word == "--short"),
            growth: false,
            markdown: None,
            help: false,
            list: false,
        };
        if args.short {
            args.plan = matrix::Plan::short();
        }
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            args.take(&word, &mut words)?;
        }
        Ok(args)
    }

    fn take(&mut self, word: &str, rest: &mut impl Iterator<Item = String>) -> Result<(), Failure> {
        let mut value = || rest.next().ok_or(format!("{word} needs a value"));
        match word {
            "--kinds" => self.kinds = Some(named(value()?.split(','))?),
            "--metrics" => self.metrics = list(&value()?)?,
            "--ks" => self.plan.ks = list(&value()?)?,
            "--targets" => {
                self.plan.targets = list(&value()?)?;
                self.targets = Some(self.plan.targets.clone());
            }
            "--n" => self.plan.points = value()?.parse()?,
            "--queries" => self.plan.queries = value()?.parse()?,
            "--seed" => self.plan.seed = value()?.parse()?,
            "--markdown" => self.markdown = Some(value()?.into()),
            "--growth" => self.growth = true,
            "--orders" => {
                self.orders = value()?.split(',').map(order).collect::<Result<_, _>>()?;
            }
            "--chunks" => self.chunks = list(&value()?)?,
            "--max" => self.most = Some(value()?.parse()?),
            "--short" => {}
            "--list" => self.list = true,
            "--help" | "-h" => self.help = true,
            _ => return Err(format!("there is no option `{word}`; see --help").into()),
        }
        Ok(())
    }

    /// The kinds of the matrix.
    pub(crate) fn matrix_kinds(&self) -> Vec<&'static Kind> {
        let all = || hostile::kinds().iter().collect();
        let some = || SHORT_KINDS.iter().filter_map(|name| hostile::kind(name));
        let unless_set = || if self.short { some().collect() } else { all() };
        self.kinds.clone().unwrap_or_else(unless_set)
    }

    /// The lives of growing indexes.
    pub(crate) fn lives(&self) -> Vec<Life> {
        let (names, most): (&[&str], _) = match self.short {
            true => (&SHORT_GROWTH_KINDS, 8000),
            false => (&GROWTH_KINDS, 50_000),
        };
        let unless_set = || {
            names
                .iter()
                .filter_map(|name| hostile::kind(name))
                .collect()
        };
        let kinds = self.kinds.clone().unwrap_or_else(unless_set);
        let most = self.most.unwrap_or(most);
        let seed = self.plan.seed;
        growth::lives(
            &kinds,
            &self.metrics,
            &self.orders,
            &self.chunks,
            most,
            seed,
        )
    }

    /// The targets of growing indexes.
    pub(crate) fn growth_targets(&self) -> Vec<f64> {
        let unless_set = || growth::TARGETS.to_vec();
        self.targets.clone().unwrap_or_else(unless_set)
    }
}

/// Kinds by their names.
fn named<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<&'static Kind>, Failure> {
    let known = |name: &str| {
        let kind = hostile::kind(name);
        kind.ok_or_else(|| format!("there is no kind `{name}`; see --list").into())
    };
    names.map(known).collect()
}

fn order(name: &str) -> Result<Order, Failure> {
    let known = Order::ALL.into_iter().find(|order| order.name() == name);
    known.ok_or_else(|| format!("there is no order `{name}`; see --help").into())
}

/// Values between commas.
fn list<T: FromStr>(text: &str) -> Result<Vec<T>, Failure>
where
    T::Err: std::error::Error + 'static,
{
    let parse = |word: &str| word.parse::<T>().map_err(Failure::from);
    text.split(',').map(parse).collect()
}
