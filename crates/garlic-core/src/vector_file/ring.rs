//! Reads with io_uring: many reads, one call to the kernel. This is the only unsafe code of reading vectors.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;
use std::process;
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use super::span::{Span, too_short};

/// Number of reads that are under way at a time.
const DEPTH: u32 = 128;

/// Pause between looks at the reads under way, after the kernel has refused a call.
const RETRY: Duration = Duration::from_millis(1);

/// A queue of reads, and the process that made it. A forked process does not have its memory.
struct Ring {
    ring: ManuallyDrop<IoUring>,
    process: u32,
}

thread_local! {
    // A ring of its own for every thread: no lock, and nothing that a fork could leave locked.
    static RING: RefCell<Option<Ring>> = const { RefCell::new(None) };
}

/// Whether the kernel reads in this way and allows it.
pub(super) fn is_available() -> bool {
    with_ring(|_| Ok(())).is_ok()
}

/// Reads all spans of `file` to their places in `bytes`.
///
/// # Errors
/// Those of the file, and those of the kernel if it no longer gives a ring.
pub(super) fn read(file: &File, spans: &[Span], bytes: &mut [u8]) -> io::Result<()> {
    with_ring(|ring| read_with(ring, file, spans, bytes))
}

/// Calls `work` with the ring of this thread. A ring that failed is replaced at the next call.
fn with_ring<R>(work: impl FnOnce(&mut IoUring) -> io::Result<R>) -> io::Result<R> {
    RING.with(|kept| {
        let mut kept = kept.borrow_mut();
        let own = kept.take().filter(|ring| ring.process == process::id());
        let mut ring = own.map_or_else(Ring::new, Ok)?;
        let done = work(&mut ring.ring);
        if done.is_ok() {
            *kept = Some(ring);
        }
        done
    })
}

impl Ring {
    fn new() -> io::Result<Self> {
        let ring = IoUring::new(DEPTH)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        match probe.is_supported(opcode::Read::CODE) {
            true => Ok(Self {
                ring: ManuallyDrop::new(ring),
                process: process::id(),
            }),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Drop for Ring {
    #[allow(
        unsafe_code,
        reason = "a ring of the parent process must not be dropped"
    )]
    fn drop(&mut self) {
        // In a forked process the addresses of the ring may have another use.
        if self.process == process::id() {
            // SAFETY: the ring is not used after this, because the value that holds it is being dropped.
            unsafe { ManuallyDrop::drop(&mut self.ring) };
        }
    }
}

/// [`read`] with a ring that has no reads under way. It has none afterwards either, whatever happens.
fn read_with(ring: &mut IoUring, file: &File, spans: &[Span], bytes: &mut [u8]) -> io::Result<()> {
    if spans.iter().any(|span| span.end() > bytes.len()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let target = Target {
        file,
        spans,
        start: bytes.as_mut_ptr(),
    };
    // Bytes that were read of each span, and the spans that are to be read next.
    let mut done = vec![0; spans.len()];
    let mut next = 0;
    let mut again = Vec::new();
    let mut under_way = 0;
    let mut failed = None;
    let mut takes_more = true;
    loop {
        while failed.is_none() && under_way < DEPTH as usize {
            let Some(at) = again.pop().or_else(|| (next < spans.len()).then_some(next)) else {
                break;
            };
            if !target.push(ring, at, done[at]) {
                again.push(at);
                break;
            }
            next = next.max(at + 1);
            under_way += 1;
        }
        if under_way == 0 {
            return failed.map_or(Ok(()), Err);
        }
        let mut waited = takes_more;
        if takes_more && let Err(error) = ring.submit_and_wait(1) {
            waited = false;
            if !is_temporary(&error) {
                // What the kernel has taken goes on: the bytes must stay until it is over. What it has not taken never
                // begins, because the ring is dropped.
                takes_more = false;
                under_way -= ring.submission().len();
                failed = failed.or(Some(error));
            }
        }
        let mut found = 0;
        for entry in ring.completion() {
            found += 1;
            let at = entry.user_data() as usize;
            match usize::try_from(entry.result()) {
                Ok(0) => failed = failed.or_else(|| Some(too_short(spans[at], done[at]))),
                Ok(read) => {
                    done[at] += read;
                    if done[at] < spans[at].len {
                        again.push(at);
                    }
                }
                Err(_) => {
                    let error = io::Error::from_raw_os_error(-entry.result());
                    match is_temporary(&error) {
                        true => again.push(at),
                        false => failed = failed.or(Some(error)),
                    }
                }
            }
        }
        under_way -= found;
        if found == 0 && !waited {
            std::thread::sleep(RETRY);
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, ResourceBusy, WouldBlock};
    matches!(error.kind(), Interrupted | ResourceBusy | WouldBlock)
}

/// The file and the memory of some spans.
struct Target<'a> {
    file: &'a File,
    spans: &'a [Span],
    start: *mut u8,
}

impl Target<'_> {
    /// Appends the read of what is left of a span. False if the queue is full.
    #[allow(unsafe_code, reason = "the kernel writes to memory by its address")]
    fn push(&self, ring: &mut IoUring, at: usize, done: usize) -> bool {
        let span = self.spans[at];
        // A read may end early: what is left of a very long vector is read again.
        let left = u32::try_from(span.len - done).unwrap_or(u32::MAX);
        // SAFETY: the spans end within the bytes (1), which `read_with` checked, so that the address is inside of them.
        let place = unsafe { self.start.add(span.place + done) };
        let entry: squeue::Entry = opcode::Read::new(types::Fd(self.file.as_raw_fd()), place, left)
            .offset(span.offset + done as u64)
            .build()
            .user_data(at as u64);
        // SAFETY: the file is borrowed and the bytes are borrowed exclusively by `read_with`, which does not return
        // while a read is under way, and which touches the bytes only before the first and after the last one. The
        // read ends where its span ends, within the bytes (1). A read that the kernel has not taken is never begun:
        // `with_ring` drops the ring after an error.
        unsafe { ring.submission().push(&entry) }.is_ok()
    }
}
