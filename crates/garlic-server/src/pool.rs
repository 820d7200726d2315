//! The threads that search.
//!
//! Work waits in one queue. A thread that is free takes the oldest work. If that is a plain search, the thread takes
//! other waiting searches of the same kind with it and answers all of them as one batch, which shares the rotation and
//! the routing of queries. While a thread is free, a query is therefore answered at once and alone; while all are busy,
//! queries wait for the first that becomes free, and join. No query waits for others to come.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use garlic_core::{Answer, Cancel, Error, Result, Rows, Search};
use garlic_table::Snapshot;
use tokio::sync::oneshot;

use crate::error::{ApiError, ApiResult};
use crate::metrics::panicked;

/// Queries of a batch. The library shares work among as many.
pub(crate) const BATCH_QUERIES: usize = 64;

/// A plain search of one or more queries.
struct Query {
    snapshot: Arc<Snapshot>,
    search: Search,
    rows: Vec<f32>,
    reply: oneshot::Sender<Result<Vec<Answer>>>,
}

impl Query {
    fn count(&self) -> usize {
        self.rows.len() / self.snapshot.index().dim().max(1)
    }

    /// Whether both can be answered in one batch.
    fn joins(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.snapshot, &other.snapshot) && self.search == other.search
    }

    fn run(&self) -> Result<Vec<Answer>> {
        let index = self.snapshot.index();
        index.search_batch(Rows::new(&self.rows, index.dim())?, &self.search)
    }
}

enum Work {
    Query(Query),
    Other(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    batches: AtomicU64,
    queries: AtomicU64,
}

/// Threads that search. Dropping the pool ends them after the work that waits.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Pool {
    pub(crate) fn start(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut pool = Self {
            shared,
            threads: Vec::new(),
        };
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let builder = thread::Builder::new().name(format!("garlic-search-{number}"));
            pool.threads.push(builder.spawn(move || shared.work())?);
        }
        Ok(pool)
    }

    /// Searches for the neighbours of every row, in pieces that join others. No more of them wait at a time than there are
    /// threads, so that a large request does not keep small ones from their turn.
    pub(crate) async fn search(
        &self,
        snapshot: &Arc<Snapshot>,
        search: &Search,
        rows: Vec<f32>,
    ) -> ApiResult<Vec<Answer>> {
        let dim = snapshot.index().dim().max(1);
        let push = |rows: Vec<f32>| {
            let (reply, answer) = oneshot::channel();
            self.shared.push(Work::Query(Query {
                snapshot: Arc::clone(snapshot),
                search: search.clone(),
                rows,
                reply,
            }));
            answer
        };
        let mut pieces = rows.chunks(BATCH_QUERIES * dim);
        let first = pieces.by_ref().take(self.threads.len());
        let mut waiting: VecDeque<_> = first.map(|piece| push(piece.to_vec())).collect();
        let mut answers = Vec::with_capacity(rows.len() / dim);
        while let Some(reply) = waiting.pop_front() {
            let found = reply.await.map_err(|_| ApiError::internal())?;
            waiting.extend(pieces.next().map(|piece| push(piece.to_vec())));
            answers.extend(found.map_err(|error| later_row(error, answers.len()))?);
        }
        Ok(answers)
    }

    /// Runs other work. If the caller goes away, work that has not begun is left out, and work that looks at its
    /// [`Cancel`] ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let guard = CancelOnDrop::default();
        let cancel = guard.cancel();
        let (reply, answer) = oneshot::channel();
        self.shared.push(Work::Other(Box::new(move || {
            if !reply.is_closed() {
                let _ = reply.send(cancel.scope(work));
            }
        })));
        answer.await.map_err(|_| ApiError::internal())?
    }

    /// Batches of plain searches so far, and queries in them.
    pub(crate) fn joined(&self) -> (u64, u64) {
        let Shared {
            batches, queries, ..
        } = &*self.shared;
        (batches.load(Relaxed), queries.load(Relaxed))
    }

    /// Work that waits for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.lock().waiting.len()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Raises its flag when it goes away: a client that has left needs no answer.
#[derive(Default)]
pub(crate) struct CancelOnDrop(Arc<AtomicBool>);

impl CancelOnDrop {
    pub(crate) fn cancel(&self) -> Cancel {
        Cancel::new(Arc::clone(&self.0))
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, work: Work) {
        self.lock().waiting.push_back(work);
        self.ready.notify_one();
    }

    /// What a thread does until the pool is dropped.
    fn work(&self) {
        while let Some((first, joined)) = self.next() {
            // A panic drops the reply, which is an error for the client, and leaves the thread alive.
            let done = catch_unwind(AssertUnwindSafe(|| match first {
                Work::Other(work) => work(),
                Work::Query(query) => self.answer(query, joined),
            }));
            if done.is_err() {
                panicked("a search");
            }
        }
    }

    /// The oldest work, and the queries that join it.
    fn next(&self) -> Option<(Work, Vec<Query>)> {
        let mut queue = self.lock();
        loop {
            match queue.waiting.pop_front() {
                Some(Work::Query(first)) => {
                    let joined = take_joining(&mut queue.waiting, &first);
                    return Some((Work::Query(first), joined));
                }
                Some(other) => return Some((other, Vec::new())),
                None if queue.closed => return None,
                None => {
                    let waited = self.ready.wait(queue);
                    queue = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Answers queries of one kind, of clients that still wait.
    fn answer(&self, first: Query, joined: Vec<Query>) {
        let mut all: Vec<Query> = std::iter::once(first).chain(joined).collect();
        all.retain(|query| !query.reply.is_closed());
        let counts: Vec<usize> = all.iter().map(Query::count).collect();
        let found = match all.split_first_mut() {
            None => return,
            Some((first, others)) => {
                let own = first.rows.len();
                first
                    .rows
                    .extend(others.iter().flat_map(|query| &query.rows));
                let found = first.run();
                first.rows.truncate(own);
                found
            }
        };
        self.batches.fetch_add(1, Relaxed);
        self.queries
            .fetch_add(counts.iter().sum::<usize>() as u64, Relaxed);
        match found {
            Ok(mut answers) => {
                for (query, count) in all.into_iter().zip(counts).rev() {
                    let own = answers.split_off(answers.len() - count);
                    let _ = query.reply.send(Ok(own));
                }
            }
            // A query that is wrong must not spoil the others, and its error names its own row.
            Err(_) if all.len() > 1 => {
                for query in all {
                    let found = query.run();
                    let _ = query.reply.send(found);
                }
            }
            Err(error) => {
                if let Some(query) = all.pop() {
                    let _ = query.reply.send(Err(error));
                }
            }
        }
    }
}

/// Takes the searches that join `first` out of the queue, as many as a batch has.
fn take_joining(waiting: &mut VecDeque<Work>, first: &Query) -> Vec<Query> {
    let mut room = BATCH_QUERIES.saturating_sub(first.count());
    let mut joined = Vec::new();
    let mut at = 0;
    while room > 0 && at < waiting.len() {
        match &waiting[at] {
            Work::Query(query) if query.joins(first) && query.count() <= room => {
                room -= query.count();
                if let Some(Work::Query(query)) = waiting.remove(at) {
                    joined.push(query);
                }
            }
            _ => at += 1,
        }
    }
    joined
}

/// The error of a query that is so many rows further on.
fn later_row(error: Error, by: usize) -> Error {
    let mut error = error;
    match &mut error {
        Error::QueryNotFinite { row, .. }
        | Error::QueryTooLarge { row, .. }
        | Error::ZeroQuery { row }
        | Error::TooClose { row, .. } => *row += by,
        _ => {}
    }
    error
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn snapshot() -> Arc<Snapshot> {
        let data: Vec<f32> = (0..400).map(|i| ((i * 37) % 101) as f32).collect();
        let builder = garlic_ann::Index::builder().threads(1);
        let index = builder.build(Rows::new(&data, 4).unwrap()).unwrap();
        Arc::new(Snapshot::new(index.into()).unwrap())
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap()
    }

    /// Keeps the only thread of a pool busy until the sender is dropped.
    fn block(pool: &Pool) -> mpsc::Sender<()> {
        let (hold, held) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        pool.shared.push(Work::Other(Box::new(move || {
            begun.send(()).unwrap();
            let _ = held.recv();
        })));
        begins.recv().unwrap();
        hold
    }

    #[test]
    fn queries_that_wait_join_and_get_their_own_answers() {
        let (pool, snapshot) = (Arc::new(Pool::start(1).unwrap()), snapshot());
        let runtime = runtime();
        let hold = block(&pool);
        let asked: Vec<_> = (0..20_u64)
            .map(|id| {
                let (pool, snapshot) = (Arc::clone(&pool), Arc::clone(&snapshot));
                // One of them is wrong, and two are of another kind.
                let k = if id < 2 { 2 } else { 1 };
                let mut row = snapshot.index().get(id).unwrap();
                if id == 7 {
                    row[1] = f32::NAN;
                }
                runtime.spawn(async move { pool.search(&snapshot, &Search::new(k), row).await })
            })
            .collect();
        while pool.waiting() < 20 {
            thread::yield_now();
        }
        drop(hold);
        for (id, asked) in asked.into_iter().enumerate() {
            let found = runtime.block_on(asked).unwrap();
            match id {
                7 => assert!(
                    found.unwrap_err().message.contains("query 0"),
                    "its own row"
                ),
                _ => assert_eq!(found.unwrap()[0].hits[0].id, id as u64),
            }
        }
        assert_eq!(pool.joined(), (2, 20));
    }

    #[test]
    fn large_requests_are_answered_in_order_with_the_rows_of_their_errors() {
        let (pool, snapshot) = (Pool::start(2).unwrap(), snapshot());
        let runtime = runtime();
        let mut rows: Vec<f32> = (0..100)
            .flat_map(|id| snapshot.index().get(id).unwrap())
            .collect();
        rows.extend(rows.clone());
        let search = Search::new(1);
        let found = runtime
            .block_on(pool.search(&snapshot, &search, rows.clone()))
            .unwrap();
        let ids: Vec<u64> = found.iter().map(|answer| answer.hits[0].id).collect();
        assert_eq!(ids, (0..100).chain(0..100).collect::<Vec<_>>());
        rows[130 * 4] = f32::INFINITY;
        let error = runtime
            .block_on(pool.search(&snapshot, &search, rows))
            .unwrap_err();
        assert!(error.message.contains("query 130"), "{}", error.message);
    }

    #[test]
    fn a_large_request_does_not_fill_the_queue() {
        let (pool, snapshot) = (Arc::new(Pool::start(1).unwrap()), snapshot());
        let runtime = runtime();
        let ended = Arc::new(Mutex::new(Vec::new()));
        let ask = |k: usize, count: usize| {
            let (pool, snapshot) = (Arc::clone(&pool), Arc::clone(&snapshot));
            let ended = Arc::clone(&ended);
            let rows = snapshot.index().get(3).unwrap().repeat(count);
            runtime.spawn(async move {
                let found = pool.search(&snapshot, &Search::new(k), rows).await;
                assert_eq!(found.unwrap().len(), count);
                ended.lock().unwrap().push(count);
            })
        };
        let until = |waiting: usize| {
            while pool.waiting() < waiting {
                thread::yield_now();
            }
        };
        let hold = block(&pool);
        let large = ask(1, 10 * BATCH_QUERIES);
        until(1);
        let small = ask(2, 1);
        until(2);
        assert_eq!(pool.waiting(), 2, "one piece of the large request");
        drop(hold);
        runtime.block_on(async { (large.await.unwrap(), small.await.unwrap()) });
        assert_eq!(*ended.lock().unwrap(), [1, 10 * BATCH_QUERIES]);
    }

    #[test]
    fn a_panic_is_an_error_of_one_request() {
        let (pool, runtime) = (Pool::start(1).unwrap(), runtime());
        let before = crate::metrics::panics();
        let failed = runtime.block_on(pool.run::<()>(|| panic!("as planned")));
        assert_eq!(failed.unwrap_err().status.as_u16(), 500);
        assert_eq!(runtime.block_on(pool.run(|| Ok(3))).unwrap(), 3);
        let failed = runtime.block_on(crate::api::change::<()>(|| panic!("as planned")));
        assert_eq!(failed.unwrap_err().status.as_u16(), 500);
        assert!(crate::metrics::panics() >= before + 2);
    }
}
