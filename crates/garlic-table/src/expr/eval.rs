//! Evaluates a parsed expression with the kernels of Arrow.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_not_null, is_null, not, or_kleene};
use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Datum, Float64Array, Int64Array, LargeStringArray, NullArray,
    RecordBatch, Scalar, StringArray, UInt64Array, new_empty_array,
};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::concat::concat;
use arrow_string::like;
use sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Ident, UnaryOperator, Value as Literal,
};

use super::Fault;
use super::types::{as_ordered, cast, comparable, computable, is_text, type_name};

/// Nesting that is evaluated; the parser has a limit of its own for parentheses.
const MAX_DEPTH: usize = 100;
/// Lists from this length on are looked up in a set.
const LONG_LIST: usize = 8;

/// For every row whether `expr` is true.
pub(super) fn truth(expr: &Expr, rows: &RecordBatch) -> Result<BooleanArray, Fault> {
    Rows { rows, depth: 0 }.truth(expr)
}

/// A column, a literal, or what was computed from them.
pub(super) struct Operand {
    array: ArrayRef,
    /// Whether the array has one value, which stands for all rows.
    scalar: bool,
    /// Whether it was written in the expression, so that its type may follow the other operand's.
    pub(super) literal: bool,
}

impl Operand {
    fn literal(array: impl Array + 'static) -> Self {
        Self {
            array: Arc::new(array),
            scalar: true,
            literal: true,
        }
    }

    fn computed(array: impl Into<ArrayRef>, scalar: bool) -> Self {
        Self {
            array: array.into(),
            scalar,
            literal: false,
        }
    }

    pub(super) fn kind(&self) -> &DataType {
        self.array.data_type()
    }

    pub(super) fn cast(&self, to: &DataType) -> Result<Self, Fault> {
        Ok(self.with(cast(&self.array, to)?))
    }

    /// As it is compared.
    pub(super) fn plain(&self) -> Result<Self, Fault> {
        Ok(self.with(as_ordered(&self.array)))
    }

    fn with(&self, array: ArrayRef) -> Self {
        Self {
            array,
            scalar: self.scalar,
            literal: self.literal,
        }
    }

    fn datum(&self) -> Box<dyn Datum> {
        match self.scalar {
            true => Box::new(Scalar::new(Arc::clone(&self.array))),
            false => Box::new(Arc::clone(&self.array)),
        }
    }
}

type Compare = fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>;
type Compute = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

#[derive(Clone, Copy)]
struct Rows<'a> {
    rows: &'a RecordBatch,
    depth: usize,
}

impl Rows<'_> {
    fn deeper(self) -> Result<Self, Fault> {
        match self.depth < MAX_DEPTH {
            true => Ok(Self {
                depth: self.depth + 1,
                ..self
            }),
            false => Err(Fault("it is nested too deeply".into())),
        }
    }

    /// For every row whether `expr` is true.
    fn truth(self, expr: &Expr) -> Result<BooleanArray, Fault> {
        let value = self.value(expr)?;
        let array = match value.kind() {
            DataType::Boolean | DataType::Null => cast(&value.array, &DataType::Boolean)?,
            other => {
                return Err(Fault(format!(
                    "`{expr}` is {}, where a condition is needed; compare it with something",
                    type_name(other)
                )));
            }
        };
        let array = array.as_boolean();
        Ok(match value.scalar {
            true => {
                let known = array.is_valid(0).then(|| array.value(0));
                BooleanArray::from(vec![known; self.rows.num_rows()])
            }
            false => array.clone(),
        })
    }

    fn value(self, expr: &Expr) -> Result<Operand, Fault> {
        let within = self.deeper()?;
        match expr {
            Expr::Nested(inner) => within.value(inner),
            Expr::Identifier(name) => self.column(&name.value),
            Expr::CompoundIdentifier(names) => self.column(&joined(names)),
            Expr::Value(value) => literal(&value.value),
            Expr::TypedString(typed) => moment(&typed.data_type, &typed.value.value),
            Expr::UnaryOp { op, expr } => within.unary(*op, expr),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::IsNull(inner) | Expr::IsUnknown(inner) => within.nullness(inner, is_null),
            Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => {
                within.nullness(inner, is_not_null)
            }
            Expr::IsTrue(inner) => within.certainly(inner, true, false),
            Expr::IsNotTrue(inner) => within.certainly(inner, true, true),
            Expr::IsFalse(inner) => within.certainly(inner, false, false),
            Expr::IsNotFalse(inner) => within.certainly(inner, false, true),
            Expr::IsDistinctFrom(left, right) => within.compare(left, right, cmp::distinct),
            Expr::IsNotDistinctFrom(left, right) => within.compare(left, right, cmp::not_distinct),
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let above = within.condition(within.compare(expr, low, cmp::gt_eq)?)?;
                let below = within.condition(within.compare(expr, high, cmp::lt_eq)?)?;
                negated_if(*negated, &and_kleene(&above, &below)?)
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => {
                let found = within.is_in(expr, list)?;
                negated_if(*negated, &found)
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => {
                let kernel = if *negated { like::nlike } else { like::like };
                within.like(expr, pattern, escape_char.as_deref(), kernel)
            }
            Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => {
                let kernel = if *negated { like::nilike } else { like::ilike };
                within.like(expr, pattern, escape_char.as_deref(), kernel)
            }
            other => Err(Fault(format!(
                "`{other}` is not supported; filters know AND, OR, NOT, =, <>, <, <=, >, >=, IN, BETWEEN, LIKE, ILIKE, \
                 IS NULL, +, -, *, / and %"
            ))),
        }
    }

    fn column(self, name: &str) -> Result<Operand, Fault> {
        match self.rows.column_by_name(name) {
            Some(array) => Ok(Operand::computed(Arc::clone(array), false)),
            None => Err(Fault(format!(
                "there is no column `{name}` (text stands in single quotes)"
            ))),
        }
    }

    fn unary(self, op: UnaryOperator, expr: &Expr) -> Result<Operand, Fault> {
        match (op, expr) {
            (UnaryOperator::Not, _) => negated_if(true, &self.truth(expr)?),
            (UnaryOperator::Plus, _) => self.value(expr),
            // The smallest whole number has no positive counterpart.
            (UnaryOperator::Minus, Expr::Value(value)) => match &value.value {
                Literal::Number(text, _) => number(&format!("-{text}")),
                _ => Err(Fault(format!("`-{expr}` is no number"))),
            },
            (UnaryOperator::Minus, _) => {
                let value = self.value(expr)?;
                let (value, _) = computable(&value, &value, false)?;
                Ok(Operand::computed(numeric::neg(&value.array)?, value.scalar))
            }
            _ => Err(Fault(format!("the operator `{op}` is not supported"))),
        }
    }

    fn binary(self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Operand, Fault> {
        let within = self.deeper()?;
        match op {
            BinaryOperator::And => self.chain(left, op, right, and_kleene),
            BinaryOperator::Or => self.chain(left, op, right, or_kleene),
            BinaryOperator::Eq => within.compare(left, right, cmp::eq),
            BinaryOperator::NotEq => within.compare(left, right, cmp::neq),
            BinaryOperator::Lt => within.compare(left, right, cmp::lt),
            BinaryOperator::LtEq => within.compare(left, right, cmp::lt_eq),
            BinaryOperator::Gt => within.compare(left, right, cmp::gt),
            BinaryOperator::GtEq => within.compare(left, right, cmp::gt_eq),
            BinaryOperator::Plus => within.compute(left, right, numeric::add, false),
            BinaryOperator::Minus => within.compute(left, right, numeric::sub, false),
            BinaryOperator::Multiply => within.compute(left, right, numeric::mul, false),
            BinaryOperator::Divide => within.compute(left, right, numeric::div, true),
            BinaryOperator::Modulo => within.compute(left, right, numeric::rem, false),
            other => Err(Fault(format!("the operator `{other}` is not supported"))),
        }
    }

    /// `AND` or `OR` of many conditions. A long chain is as deep as it is long, so its left side is walked in a loop.
    fn chain(
        self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        join: fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, ArrowError>,
    ) -> Result<Operand, Fault> {
        let within = self.deeper()?;
        let mut conditions = vec![right];
        let mut rest = left;
        while let Expr::BinaryOp {
            left,
            op: same,
            right,
        } = rest
            && same == op
        {
            conditions.push(right);
            rest = left;
        }
        let mut all = within.truth(rest)?;
        for condition in conditions.into_iter().rev() {
            all = join(&all, &within.truth(condition)?)?;
        }
        Ok(Operand::computed(Arc::new(all) as ArrayRef, false))
    }

    fn compare(self, left: &Expr, right: &Expr, kernel: Compare) -> Result<Operand, Fault> {
        let (left, right) = comparable(&self.value(left)?, &self.value(right)?)?;
        compared(&left, &right, kernel)
    }

    fn compute(
        self,
        left: &Expr,
        right: &Expr,
        kernel: Compute,
        as_floats: bool,
    ) -> Result<Operand, Fault> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        let scalar = left.scalar && right.scalar;
        let (left, right) = computable(&left, &right, as_floats)?;
        let array = kernel(&*left.datum(), &*right.datum())?;
        Ok(Operand::computed(array, scalar))
    }

    fn like(
        self,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        kernel: Compare,
    ) -> Result<Operand, Fault> {
        let (text, mut pattern) = (self.value(expr)?, self.value(pattern)?);
        for operand in [&text, &pattern] {
            if !is_text(operand.kind()) && *operand.kind() != DataType::Null {
                let found = type_name(operand.kind());
                return Err(Fault(format!("LIKE compares text, this is {found}")));
            }
        }
        if let Some(escape) = escape
            && is_text(pattern.kind())
        {
            pattern = escaped(&pattern, escape_of(escape)?)?;
        }
        let (text, pattern) = comparable(&text, &pattern)?;
        match is_text(text.kind()) {
            true => compared(&text, &pattern, kernel),
            // NULL LIKE NULL
            false => literal(&Literal::Null),
        }
    }

    fn nullness(
        self,
        expr: &Expr,
        kernel: fn(&dyn Array) -> Result<BooleanArray, ArrowError>,
    ) -> Result<Operand, Fault> {
        let value = self.value(expr)?;
        let array: ArrayRef = Arc::new(kernel(&*value.array)?);
        Ok(Operand::computed(array, value.scalar))
    }

    /// `IS [NOT] TRUE` and `IS [NOT] FALSE`: never unknown.
    fn certainly(self, expr: &Expr, wanted: bool, negated: bool) -> Result<Operand, Fault> {
        let truth = self.truth(expr)?;
        let is = |known: Option<bool>| Some((known == Some(wanted)) != negated);
        let array: BooleanArray = truth.iter().map(is).collect();
        Ok(Operand::computed(Arc::new(array) as ArrayRef, false))
    }

    fn is_in(self, expr: &Expr, list: &[Expr]) -> Result<BooleanArray, Fault> {
        let value = self.value(expr)?;
        let listed: Vec<Operand> = list
            .iter()
            .map(|item| self.value(item))
            .collect::<Result<_, _>>()?;
        if listed.len() >= LONG_LIST
            && listed.iter().all(|item| item.literal)
            && let Some(found) = in_set(&value, &listed)?
        {
            return self.condition(found);
        }
        let mut found = BooleanArray::from(vec![false; self.rows.num_rows()]);
        for item in &listed {
            let (left, right) = comparable(&value, item)?;
            let equal = self.condition(compared(&left, &right, cmp::eq)?)?;
            found = or_kleene(&found, &equal)?;
        }
        Ok(found)
    }

    /// An operand that is known to be a condition, for every row.
    fn condition(self, operand: Operand) -> Result<BooleanArray, Fault> {
        let array = operand.array.as_boolean();
        Ok(match operand.scalar {
            true => {
                let known = array.is_valid(0).then(|| array.value(0));
                BooleanArray::from(vec![known; self.rows.num_rows()])
            }
            false => array.clone(),
        })
    }
}

/// Whether the value is in a long list, by hashing; nothing for types that are not hashed.
fn in_set(value: &Operand, listed: &[Operand]) -> Result<Option<Operand>, Fault> {
    let whole = |kind: &DataType| kind.is_integer() && *kind != DataType::UInt64;
    let kinds = || listed.iter().map(Operand::kind);
    let target = match value.kind() {
        kind if is_text(kind) && kinds().all(is_text) => DataType::LargeUtf8,
        kind if whole(kind) && kinds().all(whole) => DataType::Int64,
        _ => return Ok(None),
    };
    let items: Vec<ArrayRef> = (listed.iter())
        .map(|item| cast(&item.array, &target))
        .collect::<Result<_, _>>()?;
    let items: Vec<&dyn Array> = items.iter().map(|item| &**item).collect();
    let items = match items.is_empty() {
        true => new_empty_array(&target),
        false => concat(&items)?,
    };
    let values = cast(&value.array, &target)?;
    let found: BooleanArray = if target == DataType::Int64 {
        let known: HashSet<i64> = items
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .copied()
            .collect();
        let values = values.as_primitive::<Int64Type>().iter();
        values.map(|v| v.map(|v| known.contains(&v))).collect()
    } else {
        let known: HashSet<&str> = items.as_string::<i64>().iter().flatten().collect();
        let values = values.as_string::<i64>().iter();
        values.map(|v| v.map(|v| known.contains(v))).collect()
    };
    Ok(Some(Operand::computed(
        Arc::new(found) as ArrayRef,
        value.scalar,
    )))
}

/// The character behind `ESCAPE`; none for an empty text.
fn escape_of(expr: &Expr) -> Result<Option<char>, Fault> {
    if let Expr::Value(value) = expr
        && let Literal::SingleQuotedString(text) = &value.value
    {
        let mut letters = text.chars();
        let first = letters.next();
        if letters.next().is_none() {
            return Ok(first);
        }
    }
    Err(Fault(format!(
        "ESCAPE needs one character in single quotes, this is `{expr}`"
    )))
}

/// Patterns as Arrow reads them, with a backslash before a character that stands for itself.
fn escaped(patterns: &Operand, escape: Option<char>) -> Result<Operand, Fault> {
    let texts = cast(&patterns.array, &DataType::LargeUtf8)?;
    let translate = |pattern: &str| {
        let (mut plain, mut letters) = (String::with_capacity(pattern.len() + 2), pattern.chars());
        while let Some(mut letter) = letters.next() {
            let stands_for_itself = Some(letter) == escape;
            if stands_for_itself {
                letter = letters.next().ok_or_else(|| {
                    Fault(format!(
                        "the pattern '{pattern}' ends with its ESCAPE character"
                    ))
                })?;
            }
            if letter == '\\' || (stands_for_itself && matches!(letter, '%' | '_')) {
                plain.push('\\');
            }
            plain.push(letter);
        }
        Ok(plain)
    };
    let texts = texts.as_string::<i64>().iter();
    let texts: LargeStringArray = texts
        .map(|text| text.map(translate).transpose())
        .collect::<Result<_, Fault>>()?;
    Ok(patterns.with(Arc::new(texts)))
}

fn compared(left: &Operand, right: &Operand, kernel: Compare) -> Result<Operand, Fault> {
    let array: ArrayRef = match left.kind() {
        // Unknown, whatever it is compared with.
        DataType::Null => Arc::new(BooleanArray::new_null(
            left.array.len().max(right.array.len()),
        )),
        _ => Arc::new(kernel(&*left.datum(), &*right.datum())?),
    };
    Ok(Operand::computed(array, left.scalar && right.scalar))
}

fn negated_if(negated: bool, found: &BooleanArray) -> Result<Operand, Fault> {
    let array: ArrayRef = match negated {
        true => Arc::new(not(found)?),
        false => Arc::new(found.clone()),
    };
    Ok(Operand::computed(array, false))
}

fn joined(names: &[Ident]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
    names.join(".")
}

fn literal(value: &Literal) -> Result<Operand, Fault> {
    match value {
        Literal::Number(text, _) => number(text),
        Literal::SingleQuotedString(text) | Literal::NationalStringLiteral(text) => {
            Ok(Operand::literal(StringArray::from(vec![text.as_str()])))
        }
        Literal::Boolean(value) => Ok(Operand::literal(BooleanArray::from(vec![*value]))),
        Literal::Null => Ok(Operand::literal(NullArray::new(1))),
        other => Err(Fault(format!("the literal `{other}` is not supported"))),
    }
}

fn number(text: &str) -> Result<Operand, Fault> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(Operand::literal(Int64Array::from(vec![whole])));
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Ok(Operand::literal(UInt64Array::from(vec![whole])));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Operand::literal(Float64Array::from(vec![value]))),
        _ => Err(Fault(format!("`{text}` is no number that fits 64 bits"))),
    }
}

/// `DATE '...'` and `TIMESTAMP '...'`.
fn moment(kind: &SqlType, text: &Literal) -> Result<Operand, Fault> {
    let target = match kind {
        SqlType::Date => DataType::Date32,
        SqlType::Timestamp(..) | SqlType::Datetime(_) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        other => {
            return Err(Fault(format!(
                "literals of the type {other} are not supported"
            )));
        }
    };
    literal(text)?.cast(&target)
}
