//! Numbers in words.

/// `12,345,678`.
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1.5 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        return format!("{n} bytes");
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let counts = [count(0), count(999), count(1000), count(1_234_567)];
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let sizes = [bytes(1023), bytes(1536), bytes(3 << 30)];
        assert_eq!(sizes, ["1023 bytes", "1.5 KiB", "3.0 GiB"]);
    }
}
