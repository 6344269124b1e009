//! Loops with a minimum length.

/// Returns the same loops with a minimum length: pieces of fewer items are never shared with another worker.
///
/// ```
/// use heist::parallel;
///
/// let numbers = vec![0.5_f32; 1000];
/// let square = |some: &[f32]| some.iter().map(|x| x * x).sum::<f32>();
/// let squares = parallel::with_min_len(16_384).reduce_pieces(&numbers, square, |a, b| a + b);
/// assert_eq!(squares, Some(250.0));
/// ```
pub fn with_min_len(items: usize) -> WithMinLen {
    WithMinLen(items)
}

/// Parallel loops with a minimum length: see [`with_min_len`].
///
/// ```
/// let loops: heist::parallel::WithMinLen = heist::parallel::with_min_len(100);
/// assert_eq!(loops.map(0..3, |n| n * n), [0, 1, 4]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WithMinLen(pub(super) usize);
