//! What the operating system knows about this process and this machine.

/// Most memory the process has had resident so far, where the system tells.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    peak_of(&status)
}

fn peak_of(status: &str) -> Option<u64> {
    let rest = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Number of threads when none is asked for.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_peak_is_read_from_the_status_text() {
        let text = "Name:\tgarlic\nVmPeak:\t  999 kB\nVmHWM:\t   1234 kB\nVmRSS:\t 7 kB\n";
        assert_eq!(super::peak_of(text), Some(1234 * 1024));
        assert_eq!(super::peak_of("VmRSS:\t 7 kB\n"), None);
    }
}
