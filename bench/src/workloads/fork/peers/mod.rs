//! The libraries that can fork, one file each.

#[cfg(feature = "peers")]
mod chili;
mod heist;
mod plain;
mod rayon;

#[cfg(feature = "peers")]
pub(crate) use chili::Chili;
pub(super) use heist::Heist;
pub(crate) use heist::Ours;
pub(super) use plain::Plain;
pub(crate) use rayon::Rayon;
