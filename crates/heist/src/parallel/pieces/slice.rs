//! Slices, and references to vectors and arrays.

use std::slice;

use super::{IntoPieces, Pieces};

impl<'a, T: Sync> Pieces for &'a [T] {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        self.split_at(middle)
    }

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Send> Pieces for &'a mut [T] {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        self.split_at_mut(middle)
    }

    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

impl<'a, T: Sync> IntoPieces for &'a Vec<T> {
    type Pieces = &'a [T];

    fn into_pieces(self) -> &'a [T] {
        self
    }
}

impl<'a, T: Send> IntoPieces for &'a mut Vec<T> {
    type Pieces = &'a mut [T];

    fn into_pieces(self) -> &'a mut [T] {
        self
    }
}

impl<'a, T: Sync, const N: usize> IntoPieces for &'a [T; N] {
    type Pieces = &'a [T];

    fn into_pieces(self) -> &'a [T] {
        self
    }
}

impl<'a, T: Send, const N: usize> IntoPieces for &'a mut [T; N] {
    type Pieces = &'a mut [T];

    fn into_pieces(self) -> &'a mut [T] {
        self
    }
}
