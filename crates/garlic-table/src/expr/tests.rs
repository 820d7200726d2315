//! Expressions against a plain evaluator, and the errors of those that make no sense.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, BinaryArray, BooleanArray, Date32Array, Float32Array, Float64Array,
    Int8Array, Int64Array, LargeStringArray, RecordBatch, StringArray, TimestampMillisecondArray,
    UInt64Array,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// A row as Rust has it.
#[derive(Clone, Debug)]
struct Row {
    flag: Option<bool>,
    small: Option<i8>,
    n: Option<i64>,
    x: Option<f64>,
    s: Option<String>,
}

fn batch(rows: &[Row]) -> RecordBatch {
    let flag: BooleanArray = rows.iter().map(|r| r.flag).collect();
    let small: Int8Array = rows.iter().map(|r| r.small).collect();
    let n: Int64Array = rows.iter().map(|r| r.n).collect();
    let x: Float64Array = rows.iter().map(|r| r.x).collect();
    let s: StringArray = rows.iter().map(|r| r.s.as_deref()).collect();
    let t: LargeStringArray = rows.iter().map(|r| r.s.as_deref()).collect();
    let columns: [(&str, ArrayRef); 6] = [
        ("flag", Arc::new(flag)),
        ("small", Arc::new(small)),
        ("n", Arc::new(n)),
        ("x", Arc::new(x)),
        ("s", Arc::new(s)),
        ("a \"t\"", Arc::new(t)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// A number or a text, as it is written and as it is for a row.
#[derive(Clone, Debug)]
enum Term {
    Small,
    N,
    X,
    Int(i64),
    Float(f64),
    Sum(Box<Term>, Box<Term>),
    Product(Box<Term>, Box<Term>),
    Quotient(Box<Term>, Box<Term>),
    Minus(Box<Term>),
    S,
    T,
    Text(String),
    Null,
}

#[derive(Clone, Debug, PartialEq)]
enum Val {
    Whole(i128),
    Float(f64),
    Text(String),
}

impl Val {
    fn float(&self) -> f64 {
        match self {
            Val::Whole(v) => *v as f64,
            Val::Float(v) => *v,
            Val::Text(_) => unreachable!("terms have types"),
        }
    }

    fn order(&self, other: &Val) -> Ordering {
        match (self, other) {
            (Val::Text(a), Val::Text(b)) => a.cmp(b),
            (Val::Whole(a), Val::Whole(b)) => a.cmp(b),
            // Not a number is above all others, as in SQL.
            (a, b) => {
                let [a, b] = [a.float(), b.float()];
                match (a.is_nan(), b.is_nan()) {
                    (false, false) => (a + 0.0).total_cmp(&(b + 0.0)),
                    (a, b) => a.cmp(&b),
                }
            }
        }
    }
}

impl Term {
    fn sql(&self) -> String {
        match self {
            Term::Small => "small".into(),
            Term::N => "n".into(),
            Term::X => "x".into(),
            Term::Int(v) => v.to_string(),
            Term::Float(v) => format!("{v:?}"),
            Term::Sum(a, b) => format!("({} + {})", a.sql(), b.sql()),
            Term::Product(a, b) => format!("({} * {})", a.sql(), b.sql()),
            Term::Quotient(a, b) => format!("({} / {})", a.sql(), b.sql()),
            Term::Minus(a) => format!("-({})", a.sql()),
            Term::S => "s".into(),
            Term::T => "\"a \"\"t\"\"\"".into(),
            Term::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Term::Null => "NULL".into(),
        }
    }

    fn of(&self, row: &Row) -> Option<Val> {
        let both =
            |a: &Term, b: &Term, whole: fn(i128, i128) -> i128, float: fn(f64, f64) -> f64| {
                Some(match (a.of(row)?, b.of(row)?) {
                    (Val::Whole(a), Val::Whole(b)) => Val::Whole(whole(a, b)),
                    (a, b) => Val::Float(float(a.float(), b.float())),
                })
            };
        match self {
            Term::Small => row.small.map(|v| Val::Whole(v.into())),
            Term::N => row.n.map(|v| Val::Whole(v.into())),
            Term::X => row.x.map(Val::Float),
            Term::Int(v) => Some(Val::Whole((*v).into())),
            Term::Float(v) => Some(Val::Float(*v)),
            Term::Sum(a, b) => both(a, b, |a, b| a + b, |a, b| a + b),
            Term::Product(a, b) => both(a, b, |a, b| a * b, |a, b| a * b),
            Term::Quotient(a, b) => Some(Val::Float(a.of(row)?.float() / b.of(row)?.float())),
            Term::Minus(a) => Some(match a.of(row)? {
                Val::Whole(v) => Val::Whole(-v),
                v => Val::Float(-v.float()),
            }),
            Term::S | Term::T => row.s.clone().map(Val::Text),
            Term::Text(text) => Some(Val::Text(text.clone())),
            Term::Null => None,
        }
    }
}

#[derive(Clone, Debug)]
enum Cond {
    Compare(&'static str, Term, Term),
    In(Term, Vec<Term>, bool),
    Between(Term, Term, Term, bool),
    Like(&'static str, Term, String, bool),
    IsNull(Term, bool),
    Flag,
    Is(Box<Cond>, &'static str),
    Not(Box<Cond>),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
}

/// What may follow `IS`.
const TRUTHS: &[&str] = &[
    "TRUE",
    "NOT TRUE",
    "FALSE",
    "NOT FALSE",
    "UNKNOWN",
    "NOT UNKNOWN",
];

fn not_if(negated: &bool) -> &'static str {
    if *negated { "NOT " } else { "" }
}

impl Cond {
    fn sql(&self) -> String {
        match self {
            Cond::Compare(op, a, b) => format!("{} {op} {}", a.sql(), b.sql()),
            Cond::In(a, list, negated) => {
                let list: Vec<String> = list.iter().map(Term::sql).collect();
                format!("{} {}IN ({})", a.sql(), not_if(negated), list.join(", "))
            }
            Cond::Between(a, low, high, negated) => format!(
                "{} {}BETWEEN {} AND {}",
                a.sql(),
                not_if(negated),
                low.sql(),
                high.sql()
            ),
            Cond::Like(op, a, pattern, negated) => {
                let pattern = Term::Text(pattern.clone()).sql();
                format!("{} {}{op} {pattern}", a.sql(), not_if(negated))
            }
            Cond::IsNull(a, negated) => format!("{} IS {}NULL", a.sql(), not_if(negated)),
            Cond::Flag => "flag".into(),
            Cond::Is(a, what) => format!("({}) IS {what}", a.sql()),
            Cond::Not(a) => format!("NOT ({})", a.sql()),
            Cond::And(a, b) => format!("({}) AND ({})", a.sql(), b.sql()),
            Cond::Or(a, b) => format!("(({}) OR ({}))", a.sql(), b.sql()),
        }
    }

    fn of(&self, row: &Row) -> Option<bool> {
        let equal = |a: &Term, b: &Term| Some(a.of(row)?.order(&b.of(row)?) == Ordering::Equal);
        let or = |a: Option<bool>, b: Option<bool>| match (a, b) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
        let and = |a: Option<bool>, b: Option<bool>| or(a.map(|a| !a), b.map(|b| !b)).map(|v| !v);
        match self {
            Cond::Compare(op, a, b) => {
                let order = a.of(row)?.order(&b.of(row)?);
                Some(match *op {
                    "=" => order.is_eq(),
                    "<>" | "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Cond::In(a, list, negated) => {
                let found = list.iter().map(|b| equal(a, b)).fold(Some(false), or);
                found.map(|found| found != *negated)
            }
            Cond::Between(a, low, high, negated) => {
                let at_least = |a: &Term, b: &Term| Some(a.of(row)?.order(&b.of(row)?).is_ge());
                let found = and(at_least(a, low), at_least(high, a));
                found.map(|found| found != *negated)
            }
            Cond::Like(op, a, pattern, negated) => {
                let Val::Text(text) = a.of(row)? else {
                    unreachable!("terms have types")
                };
                let fold = |s: &str| match *op {
                    "ILIKE" => s.to_lowercase(),
                    _ => s.to_owned(),
                };
                let (text, pattern) = (fold(&text), fold(pattern));
                let (text, pattern): (Vec<char>, Vec<char>) =
                    (text.chars().collect(), pattern.chars().collect());
                Some(matches_pattern(&text, &pattern) != *negated)
            }
            Cond::IsNull(a, negated) => Some(a.of(row).is_none() != *negated),
            Cond::Flag => row.flag,
            Cond::Is(a, what) => {
                let known = a.of(row);
                Some(match *what {
                    "TRUE" => known == Some(true),
                    "NOT TRUE" => known != Some(true),
                    "FALSE" => known == Some(false),
                    "NOT FALSE" => known != Some(false),
                    "UNKNOWN" => known.is_none(),
                    _ => known.is_some(),
                })
            }
            Cond::Not(a) => a.of(row).map(|v| !v),
            Cond::And(a, b) => and(a.of(row), b.of(row)),
            Cond::Or(a, b) => or(a.of(row), b.of(row)),
        }
    }
}

fn matches_pattern(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|at| matches_pattern(&text[at..], rest)),
        ['_', rest @ ..] => !text.is_empty() && matches_pattern(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && matches_pattern(&text[1..], rest),
    }
}

fn row() -> impl Strategy<Value = Row> {
    let x = prop_oneof![
        4 => (-6_i32..6).prop_map(|v| f64::from(v) / 2.0),
        1 => prop_oneof![Just(-0.0), Just(f64::NAN), Just(f64::INFINITY)],
    ];
    (
        any::<Option<bool>>(),
        prop::option::of(-4_i8..4),
        prop::option::of(prop_oneof![4 => -4_i64..4, 1 => any::<i32>().prop_map(i64::from)]),
        prop::option::of(x),
        prop::option::of("[abA%']{0,3}|äÖ"),
    )
        .prop_map(|(flag, small, n, x, s)| Row {
            flag,
            small,
            n,
            x,
            s,
        })
}

fn number() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        Just(Term::Small),
        Just(Term::N),
        Just(Term::X),
        (-4_i64..4).prop_map(Term::Int),
        Just(Term::Int(1 << 40)),
        (-6_i32..6).prop_map(|v| Term::Float(f64::from(v) / 2.0)),
        Just(Term::Null),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| Term::Sum(a.into(), b.into())),
            two.clone()
                .prop_map(|(a, b)| Term::Product(a.into(), b.into())),
            two.prop_map(|(a, b)| Term::Quotient(a.into(), b.into())),
            inner.prop_map(|a| Term::Minus(a.into())),
        ]
    })
}

fn text() -> impl Strategy<Value = Term> {
    prop_oneof![
        Just(Term::S),
        Just(Term::T),
        "[abA%']{0,3}|äÖ".prop_map(Term::Text),
        Just(Term::Null),
    ]
}

fn cond() -> impl Strategy<Value = Cond> {
    let op = prop::sample::select(&["=", "<>", "!=", "<", "<=", ">", ">="]);
    let like = prop::sample::select(&["LIKE", "ILIKE"]);
    let column = prop_oneof![Just(Term::S), Just(Term::T)];
    let whole = prop_oneof![Just(Term::Small), Just(Term::N)];
    let list = |of: BoxedStrategy<Term>| prop::collection::vec(of, 1..12);
    let leaf = prop_oneof![
        (op.clone(), number(), number()).prop_map(|(op, a, b)| Cond::Compare(op, a, b)),
        (op, text(), text()).prop_map(|(op, a, b)| Cond::Compare(op, a, b)),
        (number(), list(number().boxed()), any::<bool>()).prop_map(|(a, l, n)| Cond::In(a, l, n)),
        (text(), list(text().boxed()), any::<bool>()).prop_map(|(a, l, n)| Cond::In(a, l, n)),
        (
            whole,
            list((-4_i64..4).prop_map(Term::Int).boxed()),
            any::<bool>()
        )
            .prop_map(|(a, l, n)| Cond::In(a, l, n)),
        (number(), number(), number(), any::<bool>())
            .prop_map(|(a, l, h, n)| Cond::Between(a, l, h, n)),
        (like, column, "[abA%_']{0,3}", any::<bool>())
            .prop_map(|(op, a, p, n)| Cond::Like(op, a, p, n)),
        (prop_oneof![number(), text()], any::<bool>()).prop_map(|(a, n)| Cond::IsNull(a, n)),
        Just(Cond::Flag),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|a| Cond::Not(a.into())),
            (inner, prop::sample::select(TRUTHS)).prop_map(|(a, w)| Cond::Is(a.into(), w)),
            two.clone().prop_map(|(a, b)| Cond::And(a.into(), b.into())),
            two.prop_map(|(a, b)| Cond::Or(a.into(), b.into())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn expressions_mean_what_sql_says(rows in prop::collection::vec(row(), 0..12), cond in cond()) {
        let sql = cond.sql();
        let parsed = Expression::parse(&sql).unwrap();
        let found: Vec<Option<bool>> = match parsed.evaluate(&batch(&rows)) {
            Ok(found) => found.iter().collect(),
            // The model computes with more bits.
            Err(error) if error.to_string().contains("overflow") => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let expected: Vec<Option<bool>> = rows.iter().map(|row| cond.of(row)).collect();
        prop_assert_eq!(found, expected, "{}", sql);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9'\"()=<>!,.*/+% -]{0,40}|.{0,40}") {
        if let Ok(parsed) = Expression::parse(&text) {
            let _ = parsed.evaluate(&batch(&[]));
        }
    }
}

fn error(text: &str) -> String {
    let rows = [Row {
        flag: Some(true),
        small: Some(1),
        n: Some(2),
        x: Some(0.5),
        s: Some("a".into()),
    }];
    let found = Expression::parse(text).and_then(|parsed| parsed.evaluate(&batch(&rows)));
    found.unwrap_err().to_string()
}

#[test]
fn errors_name_the_fault_and_list_the_columns() {
    for (text, told) in [
        ("lang = 'en'", "there is no column `lang`"),
        (
            "s = \"en\"",
            "there is no column `en` (text stands in single quotes)",
        ),
        ("n = 'two'", "int64 cannot be compared with text"),
        ("s > 3", "text cannot be compared with int64"),
        ("flag = 3", "bool cannot be compared with int64"),
        ("n", "`n` is int64, where a condition is needed"),
        ("n LIKE 'a%'", "LIKE compares text, this is int64"),
        ("s + 1 = 2", "text is no number to compute with"),
        ("lower(s) = 'a'", "`lower(s)` is not supported"),
        ("n % 0 = 1", "Divide by zero"),
        ("s LIKE 'a' ESCAPE 'ab'", "ESCAPE needs one character"),
        ("s LIKE 'a' ESCAPE s", "ESCAPE needs one character"),
        ("s LIKE 'a!' ESCAPE '!'", "ends with its ESCAPE character"),
        ("n * 9223372036854775807 > 0", "Overflow"),
    ] {
        let error = error(text);
        assert!(error.contains(told), "{text}: {error}");
        assert!(
            error.contains(
                "the columns are: flag (bool), small (int8), n (int64), x (float64), s (text)"
            ),
            "{error}"
        );
    }
    for text in [
        "",
        "n =",
        "n = 1 n = 2",
        "n = 1;",
        "'open",
        "SELECT 1",
        "n IN ()",
    ] {
        assert!(error(text).contains("filter expression"), "{text}");
    }
    let long = vec!["n = 1"; 3000].join(" OR ");
    assert!(error(&long).contains("use IN"), "{}", error(&long));
    let deep = format!("{}n = 1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(!error(&deep).is_empty());
}

#[test]
fn escapes_in_patterns() {
    let texts = [Some("100%"), Some("100 m"), Some("a\\b"), Some("A_b"), None];
    let patterns = [
        Some("100!%"),
        Some("!100%"),
        Some("a\\_"),
        Some("_!_b"),
        None,
    ];
    let column = |of: [Option<&str>; 5]| Arc::new(StringArray::from(of.to_vec())) as ArrayRef;
    let columns = [("s", column(texts)), ("p", column(patterns))];
    let rows =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true))).unwrap();
    let found = |text: &str| -> Vec<usize> {
        let truth = Expression::parse(text).unwrap().evaluate(&rows).unwrap();
        (0..5)
            .filter(|&i| truth.is_valid(i) && truth.value(i))
            .collect()
    };
    for (text, expected) in [
        ("s LIKE '%!%' ESCAPE '!'", vec![0]),
        ("s NOT LIKE '%!%' ESCAPE '!'", vec![1, 2, 3]),
        ("s LIKE 'a!_b' ESCAPE '!'", vec![]),
        ("s ILIKE 'a!_b' ESCAPE '!'", vec![3]),
        ("s LIKE '%\\%' ESCAPE '!'", vec![2]),
        ("s LIKE '%!!%' ESCAPE '!'", vec![]),
        // A backslash is the escape character unless another one is named.
        ("s LIKE '100\\%'", vec![0]),
        ("s LIKE 'a\\_' ESCAPE ''", vec![2]),
        ("s LIKE p ESCAPE '!'", vec![0, 1, 2, 3]),
        ("s LIKE NULL ESCAPE '!'", vec![]),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn long_chains_and_lists_are_evaluated() {
    let row = Row {
        flag: None,
        small: None,
        n: Some(700),
        x: None,
        s: None,
    };
    let truth = |text: &str| {
        Expression::parse(text)
            .unwrap()
            .evaluate(&batch(std::slice::from_ref(&row)))
            .unwrap()
    };
    let chain: Vec<String> = (0..1000).map(|i| format!("n = {i}")).collect();
    assert!(truth(&chain.join(" OR ")).value(0));
    let list: Vec<String> = (0..100_000).map(|i| i.to_string()).collect();
    assert!(truth(&format!("n IN ({})", list.join(","))).value(0));
}

#[test]
fn times_large_numbers_and_bytes() {
    let day: ArrayRef = Arc::new(Date32Array::from(vec![Some(18_262), Some(18_263), None]));
    let at: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![
        Some(1_577_836_800_000),
        Some(1_577_836_800_500),
        None,
    ]));
    let utc: ArrayRef = Arc::new(
        TimestampMillisecondArray::from(vec![Some(1_577_836_800_000), None, None])
            .with_timezone("+00:00"),
    );
    let big: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(3), None]));
    let f: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.1), Some(0.2), None]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), None, None]));
    let columns = [
        ("day", day),
        ("at", at),
        ("utc", utc),
        ("big", big),
        ("f", f),
        ("bytes", bytes),
    ];
    let rows =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true))).unwrap();
    let found = |text: &str| -> Vec<Option<bool>> {
        let truth = Expression::parse(text).unwrap().evaluate(&rows);
        truth.unwrap().iter().collect()
    };
    let (yes, no) = (Some(true), Some(false));
    for (text, expected) in [
        ("day = '2020-01-01'", [yes, no, None]),
        ("day > DATE '2020-01-01'", [no, yes, None]),
        ("at = '2020-01-01'", [yes, no, None]),
        ("at > '2020-01-01 00:00:00.25'", [no, yes, None]),
        ("at >= TIMESTAMP '2020-01-01 00:00:00'", [yes, yes, None]),
        ("at > day", [no, no, None]),
        ("utc = '2020-01-01T00:00:00Z'", [yes, None, None]),
        ("big > 5", [yes, no, None]),
        ("big > -1", [yes, yes, None]),
        ("big = 18446744073709551615", [yes, no, None]),
        ("f = 0.1", [yes, no, None]),
        ("f BETWEEN 0.1 AND 0.15", [yes, no, None]),
        ("bytes IS NOT NULL", [yes, no, no]),
        ("TRUE", [yes, yes, yes]),
        ("1 = 2", [no, no, no]),
        ("NULL", [None, None, None]),
        ("-9223372036854775808 < big", [yes, yes, None]),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
    let wrong = Expression::parse("day = 'soon'").unwrap().evaluate(&rows);
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("cannot be read as date")
    );
}
