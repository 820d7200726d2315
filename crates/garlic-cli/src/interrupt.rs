//! Ctrl-C: a polite request while something is built, searched, changed or written, the end of the program otherwise.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use garlic_ann::Cancel;

use crate::exit::{Code, Fault};

/// Whether somebody watches [`FLAG`].
static WATCHED: AtomicBool = AtomicBool::new(false);
/// Whether that one tells about it.
static SILENT: AtomicBool = AtomicBool::new(false);
static FLAG: std::sync::OnceLock<Arc<AtomicBool>> = std::sync::OnceLock::new();

fn flag() -> &'static Arc<AtomicBool> {
    FLAG.get_or_init(Arc::default)
}

/// Takes over Ctrl-C. The first one raises the flag of a [`Watch`], if there is one; without one, and from the
/// second on, the program ends at once with exit code 130.
pub(crate) fn install() -> anyhow::Result<()> {
    let flag = flag().clone();
    ctrlc::set_handler(move || {
        let again = flag.swap(true, SeqCst);
        if again || !WATCHED.load(SeqCst) {
            process::exit(Code::Cancelled as i32);
        }
        if !SILENT.load(SeqCst) {
            eprintln!("garlic: cancelling; press Ctrl-C again to stop at once");
        }
    })
    .map_err(|e| Fault::failed(format!("cannot handle Ctrl-C: {e}")))
}

/// While it lives, the first Ctrl-C only raises its flag.
pub(crate) struct Watch(());

impl Watch {
    /// Starts to watch.
    pub(crate) fn start() -> Self {
        WATCHED.store(true, SeqCst);
        Self(())
    }

    /// Starts to watch for work that hears of Ctrl-C itself: the first one says and does nothing here.
    pub(crate) fn silent() -> Self {
        SILENT.store(true, SeqCst);
        Self::start()
    }

    /// The flag, for the library.
    pub(crate) fn cancel(&self) -> Cancel {
        Cancel::new(flag().clone())
    }

    /// Runs searches or changes of an index, which end with an error soon after Ctrl-C.
    pub(crate) fn run<T>(
        &self,
        work: impl FnOnce() -> garlic_ann::Result<T>,
    ) -> garlic_ann::Result<T> {
        self.cancel().scope(work)
    }

    /// An error once Ctrl-C was pressed.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if flag().load(SeqCst) {
            return Err(Fault::cancelled());
        }
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.store(false, SeqCst);
    }
}
