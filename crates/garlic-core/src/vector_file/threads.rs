//! Reads with threads that wait for the device, where the kernel has no io_uring or does not allow it.

use std::fs::File;
use std::io;
use std::process;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::read_at;
use super::span::{Span, too_short};

/// Number of reading threads. They only wait, so that it does not depend on the number of cores.
const THREADS: usize = 16;

/// Spans that one thread reads, and where it sends what it has read.
struct Job {
    file: Arc<File>,
    spans: Vec<Span>,
    reply: Sender<(Vec<Span>, io::Result<Vec<u8>>)>,
}

/// The reading threads, and the process that started them.
struct Threads {
    jobs: Mutex<Sender<Job>>,
    process: u32,
}

/// Reads all spans of `file` to their places in `bytes`.
///
/// # Errors
/// Those of the file.
pub(super) fn read(file: &Arc<File>, spans: &[Span], bytes: &mut [u8]) -> io::Result<()> {
    // One read for the calling thread is not worth a message. A forked process has no reading threads.
    let Some(jobs) = threads().filter(|_| spans.len() > 1) else {
        return spans
            .iter()
            .try_for_each(|span| read_one(file, span, bytes));
    };
    let (reply, replies) = mpsc::channel();
    for spans in spans.chunks(spans.len().div_ceil(THREADS)) {
        let job = Job {
            file: Arc::clone(file),
            spans: spans.to_vec(),
            reply: reply.clone(),
        };
        if jobs.send(job).is_err() {
            return Err(io::Error::other("the reading threads have ended"));
        }
    }
    drop(reply);
    let mut done = 0;
    for (spans, read) in replies {
        let read = read?;
        let mut rest = &read[..];
        for span in spans {
            let (own, after) = rest.split_at(span.len);
            bytes[span.place..span.end()].copy_from_slice(own);
            rest = after;
            done += 1;
        }
    }
    match done == spans.len() {
        true => Ok(()),
        false => Err(io::Error::other("a reading thread has ended")),
    }
}

/// The way to the reading threads of this process, which are started on first use. `None` if there are none.
fn threads() -> Option<Sender<Job>> {
    static THREADS: OnceLock<Option<Threads>> = OnceLock::new();
    let threads = THREADS.get_or_init(|| Threads::start().ok()).as_ref()?;
    let jobs = (threads.process == process::id()).then_some(&threads.jobs)?;
    Some(jobs.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

impl Threads {
    fn start() -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..THREADS {
            let waiting = Arc::clone(&waiting);
            let builder = std::thread::Builder::new().name(format!("garlic-read-{number}"));
            builder.spawn(move || work(&waiting))?;
        }
        Ok(Self {
            jobs: Mutex::new(jobs),
            process: process::id(),
        })
    }
}

/// Reads for others until nobody can ask any more.
fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        // The lock is held while it waits, and let go before it reads.
        let job = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(Job { file, spans, reply }) = job else {
            return;
        };
        let mut bytes = vec![0; spans.iter().map(|span| span.len).sum()];
        let mut place = 0;
        let read = spans.iter().try_for_each(|span| {
            let own = Span { place, ..*span };
            place = own.end();
            read_one(&file, &own, &mut bytes)
        });
        // Nobody waits for the reply after an error.
        let _ = reply.send((spans, read.map(|()| bytes)));
    }
}

fn read_one(file: &File, span: &Span, bytes: &mut [u8]) -> io::Result<()> {
    let place = &mut bytes[span.place..span.end()];
    read_at(file, place, span.offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            let len = file.metadata().map_or(span.offset, |file| file.len());
            too_short(*span, len.saturating_sub(span.offset) as usize)
        }
        _ => error,
    })
}
