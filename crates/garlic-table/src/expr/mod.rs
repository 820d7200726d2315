//! Filter expressions: SQL's boolean language over the columns of a table.
//!
//! `sqlparser` parses, the kernels of Arrow evaluate. In: the text of an expression and rows as a [`RecordBatch`]. Out:
//! for every row true, false or unknown, as SQL's three-valued logic has it. A filter allows the rows that are true.

mod eval;
mod types;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::Schema;
use garlic_core::{Error, Result};
use sqlparser::ast::Expr;
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

pub(crate) use types::type_name;

/// Upper limit of the number of words and signs, literals not counted: a parsed expression is as deep as it is long.
const MAX_TOKENS: usize = 4000;

/// A parsed expression. It can be evaluated on any rows that have the columns that it names.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    parsed: Expr,
}

/// Why an expression cannot be evaluated, and whether the columns should be listed.
pub(crate) struct Fault(pub(crate) String);

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<arrow_schema::ArrowError> for Fault {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self(error.to_string())
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// [`Error::Expression`] if it is not an expression of SQL, or too long.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |message: String| Error::Expression {
            expression: shown(text),
            message,
        };
        let dialect = GenericDialect {};
        let tokens = Tokenizer::new(&dialect, text).tokenize();
        let tokens = tokens.map_err(|e| wrong(e.to_string()))?;
        let is_short = |token: &&Token| {
            !matches!(
                token,
                Token::Whitespace(_)
                    | Token::Comma
                    | Token::Number(..)
                    | Token::SingleQuotedString(_)
            )
        };
        let count = tokens.iter().filter(is_short).count();
        if count > MAX_TOKENS {
            return Err(wrong(format!(
                "{count} words and signs are more than the {MAX_TOKENS} that an expression may have; use IN for lists"
            )));
        }
        let mut parser = Parser::new(&dialect).with_tokens(tokens);
        let parsed = parser
            .parse_expr()
            .map_err(|e| wrong(told(&e.to_string())))?;
        match parser.peek_token().token {
            Token::EOF => Ok(Self {
                text: text.to_owned(),
                parsed,
            }),
            more => Err(wrong(format!(
                "`{more}` is left over after the expression; join conditions with AND or OR"
            ))),
        }
    }

    /// The text that it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// For every row whether the expression is true; null where it is unknown.
    ///
    /// # Errors
    /// [`Error::Expression`] for a column that does not exist, for types that do not fit, and for arithmetic that
    /// overflows. The error lists the columns.
    pub fn evaluate(&self, rows: &RecordBatch) -> Result<BooleanArray> {
        eval::truth(&self.parsed, rows).map_err(|Fault(message)| Error::Expression {
            expression: shown(&self.text),
            message: format!("{message}; {}", columns(&rows.schema())),
        })
    }
}

/// A sentence that lists the columns and their types.
pub(crate) fn columns(schema: &Schema) -> String {
    let named = schema.fields().iter().map(|field| {
        let name = field.name();
        format!("{name} ({})", type_name(field.data_type()))
    });
    let named: Vec<String> = named.collect();
    match named.is_empty() {
        true => "there are no columns".into(),
        false => format!("the columns are: {}", named.join(", ")),
    }
}

/// The message of the parser without its own prefix.
fn told(message: &str) -> String {
    let message = message.strip_prefix("sql parser error: ");
    message.unwrap_or("it cannot be parsed").to_owned()
}

/// The text, shortened if it is long.
fn shown(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
