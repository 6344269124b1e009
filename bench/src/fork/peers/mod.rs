//! Everyone that can fork: one file each.

#[cfg(feature = "peers")]
mod chili;
mod heist;
mod plain;
#[cfg(feature = "peers")]
mod rayon;

#[cfg(feature = "peers")]
pub(crate) use chili::Chili;
pub(super) use heist::Heist;
pub(super) use plain::Plain;
#[cfg(feature = "peers")]
pub(super) use rayon::Rayon;
