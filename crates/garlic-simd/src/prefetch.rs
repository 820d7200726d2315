//! Asking for data before it is needed.

/// Bytes that one request brings.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks for all cache lines of the slice, into the second cache: the first can wait for too few lines at once to
/// be asked for whole bins. Only a hint, and nothing on machines other than x86-64.
#[inline]
pub fn prefetch<T: Copy>(data: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        let start = data.as_ptr().cast::<u8>();
        let bytes = std::mem::size_of_val(data);
        // Counted from the start of the first line, so that the last line is not missed.
        let mut at = -((start.addr() % LINE) as isize);
        while at < bytes as isize {
            prefetch_line(start.wrapping_offset(at));
            at += LINE as isize;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = data;
}

/// Asks for the cache line of an address. Any address is allowed.
#[inline]
pub(crate) fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
