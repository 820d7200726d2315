//! The dictionary in a `.npy` header: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.

use super::MAGIC;

/// The three entries every header has.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

/// Where the text goes wrong, and how.
type Fault = (usize, String);

/// Parses the text of a header.
pub(super) fn parse(text: &[u8]) -> Result<Header, Fault> {
    let mut cursor = Cursor { text, at: 0 };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    cursor.expect(b'{')?;
    while !cursor.accept(b'}') {
        let key_at = cursor.at;
        let key = cursor.string()?;
        cursor.expect(b':')?;
        match key.as_str() {
            "descr" => descr = Some(cursor.descr()?),
            "fortran_order" => fortran_order = Some(cursor.boolean()?),
            "shape" => shape = Some(cursor.tuple()?),
            other => return Err((key_at, format!("unknown key '{other}'"))),
        }
        if !cursor.accept(b',') {
            cursor.expect(b'}')?;
            break;
        }
    }
    let missing = |key: &str| (0, format!("the key '{key}' is missing"));
    Ok(Header {
        descr: descr.ok_or_else(|| missing("descr"))?,
        fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

/// The bytes before the data of a two-dimensional C-order array, padded to a multiple of 64.
pub(super) fn write(descr: &str, rows: usize, cols: usize) -> Vec<u8> {
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    let before = MAGIC.len() + 4;
    while !(before + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    // Two numbers of at most 20 digits: the text is far shorter than 65,536.
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.into_bytes());
    bytes
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn fault<T>(&self, reason: impl Into<String>) -> Result<T, Fault> {
        Err((self.at, reason.into()))
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.accept(byte) {
            return Ok(());
        }
        self.fault(format!("expected '{}'", char::from(byte)))
    }

    /// Everything up to the first byte that is not `wanted`.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> String {
        self.peek();
        let rest = &self.text[self.at..];
        let len = rest.iter().take_while(|b| wanted(**b)).count();
        self.at += len;
        String::from_utf8_lossy(&rest[..len]).into_owned()
    }

    fn string(&mut self) -> Result<String, Fault> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return self.fault("expected a quoted string"),
        };
        self.at += 1;
        let rest = &self.text[self.at..];
        let Some(len) = rest.iter().position(|b| *b == quote) else {
            return self.fault("a string does not end");
        };
        self.at += len + 1;
        Ok(String::from_utf8_lossy(&rest[..len]).into_owned())
    }

    /// A type, or the text of a structured one, which no caller supports.
    fn descr(&mut self) -> Result<String, Fault> {
        if self.peek() != Some(b'[') {
            return self.string();
        }
        let start = self.at;
        let mut depth = 0_usize;
        for (i, byte) in self.text[start..].iter().enumerate() {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at = start + i + 1;
                return Ok(String::from_utf8_lossy(&self.text[start..self.at]).into_owned());
            }
        }
        self.fault("a structured type does not end")
    }

    fn boolean(&mut self) -> Result<bool, Fault> {
        let start = self.at;
        match self.take_while(|b| b.is_ascii_alphabetic()).as_str() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err((start, "expected True or False".to_owned())),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, Fault> {
        self.expect(b'(')?;
        let mut numbers = Vec::new();
        while !self.accept(b')') {
            let start = self.at;
            let digits = self.take_while(|b| b.is_ascii_digit());
            match digits.parse() {
                Ok(number) => numbers.push(number),
                Err(_) => return Err((start, "expected a number below 2^64".to_owned())),
            }
            // Files of Python 2 mark long integers.
            self.accept(b'L');
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_numpy_writes() {
        let parsed = parse(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n");
        let expected = Header {
            descr: "<f4".into(),
            fortran_order: false,
            shape: vec![2, 3],
        };
        assert_eq!(parsed, Ok(expected));
        let scalar = parse(b"{'shape': (), 'fortran_order': True, 'descr': \"|u1\"}").unwrap();
        assert!(scalar.shape.is_empty() && scalar.fortran_order);
        let long = parse(b"{'descr':'<f4','fortran_order':False,'shape':(7L,)}").unwrap();
        assert_eq!(long.shape, [7]);
        let fields = b"{'descr': [('a', '<f4', [2])], 'fortran_order': False, 'shape': (1,)}";
        assert_eq!(parse(fields).unwrap().descr, "[('a', '<f4', [2])]");
    }

    #[test]
    fn what_is_written_is_aligned_and_reads_back() {
        for (rows, cols) in [(1, 1), (60_000, 784), (usize::MAX, usize::MAX)] {
            let bytes = write("<i8", rows, cols);
            assert_eq!(bytes.len() % 64, 0);
            let header = parse(&bytes[10..]).unwrap();
            assert_eq!(header.shape, [rows as u64, cols as u64]);
            assert_eq!(header.descr, "<i8");
        }
    }

    #[test]
    fn names_the_place_of_a_fault() {
        let cases: [(&[u8], usize); 5] = [
            (b"", 0),
            (b"{'descr'; 1}", 8),
            (b"{'fortran_order': Maybe}", 17),
            (b"{'shape': (-1, 2)}", 11),
            (b"{'shape': (99999999999999999999999,)}", 11),
        ];
        for (text, place) in cases {
            let (at, _) = parse(text).unwrap_err();
            assert_eq!(at, place, "{}", String::from_utf8_lossy(text));
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in prop::collection::vec(
            prop::sample::select(&b"{}[]()'\", :L0123456789<fdescrshapTuFl"[..]), 0..80)) {
            let _ = parse(&text);
        }

        #[test]
        fn never_panics_after_a_good_start(tail in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut text = b"{'shape': (2, 3), 'descr': ".to_vec();
            text.extend(tail);
            let _ = parse(&text);
        }
    }
}
