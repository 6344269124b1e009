//! The input of the programs, which is the same in every run on every machine.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use harness::random::mix;

/// What a program reads. It is made once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// One large file.
    Large,
    /// 1,500 files that are given one by one.
    Small,
    /// A directory of many tiny files.
    Tree,
    /// A directory in which every third file has copies.
    Duplicates,
    /// An image without compression.
    Image,
    /// A directory of source files.
    Sources,
}

/// A directory of files, whose contents are random numbers or text.
struct Files {
    count: u64,
    in_a_directory: u64,
    /// The least and the largest size.
    sizes: (u64, u64),
    text: bool,
    /// How many different files there are.
    different: u64,
}

impl Input {
    fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Small => "small",
            Self::Tree => "tree",
            Self::Duplicates => "duplicates",
            Self::Image => "image.png",
            Self::Sources => "sources",
        }
    }

    fn files(self) -> Option<Files> {
        let (count, in_a_directory, sizes, text, different) = match self {
            Self::Large | Self::Image => return None,
            Self::Small => (1_500, 100, (4 << 10, 256 << 10), false, 1_500),
            Self::Tree => (40_000, 20, (16, 256), false, 40_000),
            Self::Duplicates => (6_000, 50, (4 << 10, 64 << 10), false, 4_000),
            Self::Sources => (8_000, 40, (2 << 10, 16 << 10), true, 8_000),
        };
        Some(Files { count, in_a_directory, sizes, text, different })
    }

    /// Makes it in this directory, unless it is there already.
    pub(crate) fn make(self, inputs: &Path) -> io::Result<()> {
        let path = inputs.join(self.name());
        if path.exists() {
            return Ok(());
        }
        fs::create_dir_all(inputs)?;
        // Renamed when it is complete, so that an interrupted run leaves no part of an input.
        let unfinished = inputs.join("unfinished");
        if unfinished.is_dir() {
            fs::remove_dir_all(&unfinished)?;
        }
        match self.files() {
            Some(files) => files.make(&unfinished)?,
            None if self == Self::Large => {
                random_bytes(&mut File::create(&unfinished)?, 1, 768 << 20)?
            }
            None => image(BufWriter::new(File::create(&unfinished)?), 1_024, 768)?,
        }
        fs::rename(unfinished, path)
    }

    /// Returns what a program is given on its command line.
    pub(crate) fn names(self, inputs: &Path) -> io::Result<Vec<PathBuf>> {
        let path = inputs.join(self.name());
        if self != Self::Small {
            return Ok(vec![path]);
        }
        let files = self.files().expect("these are files");
        Ok((0..files.count).map(|file| path.join(files.name(file))).collect())
    }
}

impl Files {
    fn name(&self, file: u64) -> String {
        let kind = if self.text { ["rs", "c", "py", "js"][file as usize % 4] } else { "bin" };
        format!("{:03}/{file}.{kind}", file / self.in_a_directory)
    }

    fn make(&self, directory: &Path) -> io::Result<()> {
        for file in 0..self.count {
            let path = directory.join(self.name(file));
            if file % self.in_a_directory == 0 {
                fs::create_dir_all(path.parent().expect("it is in a directory"))?;
            }
            let seed = file % self.different;
            let (least, most) = self.sizes;
            let size = least + mix(seed) % (most - least);
            let mut out = File::create(path)?;
            if self.text { text(out, seed, size)? } else { random_bytes(&mut out, seed, size)? }
        }
        Ok(())
    }
}

/// Writes random bytes in pieces. A large buffer would count as memory of the programs: see `process`.
fn random_bytes(out: &mut impl Write, seed: u64, size: u64) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(64 << 10);
    let mut left = size;
    let mut state = mix(seed) | 1;
    while left > 0 {
        buffer.clear();
        while buffer.len() < 64 << 10 {
            // A xorshift generator.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            buffer.extend(state.to_le_bytes());
        }
        let now = left.min(buffer.len() as u64);
        out.write_all(&buffer[..now as usize])?;
        left -= now;
    }
    Ok(())
}

/// Writes lines of code, comments and empty lines that four languages understand well enough to be counted.
fn text(out: impl Write, seed: u64, size: u64) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut written = 0;
    for line in 0.. {
        let number = mix(seed << 20 | line);
        let line = match number % 8 {
            0 => String::new(),
            1 => format!("// comment {number:x}"),
            2 => format!("/* block {number:x}\n   goes on */"),
            3 => format!("name = \"string // {number:x}\";"),
            _ => format!("    value_{} = call({}, {number:x});", number % 97, number % 13),
        };
        writeln!(out, "{line}")?;
        written += line.len() as u64 + 1;
        if written >= size {
            break;
        }
    }
    out.flush()
}

/// Writes a PNG of gradients, circles and some noise, whose data is not compressed.
fn image(mut out: impl Write, width: u32, height: u32) -> io::Result<()> {
    let mut pixels = Vec::with_capacity(((3 * width + 1) * height) as usize);
    for y in 0..height {
        pixels.push(0);
        for x in 0..width {
            let (dx, dy) = (x % 256, y % 256);
            let inside = dx.abs_diff(128).pow(2) + dy.abs_diff(128).pow(2) < 100 * 100;
            let noise = (mix(u64::from(y * width + x)) % 4) as u32;
            let color = if inside { [200, x / 8, 90 + noise] } else { [y / 4, (x + y) / 8, 128] };
            pixels.extend(color.map(|part| part as u8));
        }
    }
    // A zlib stream of stored blocks.
    let mut data = vec![0x78, 0x01];
    let mut blocks = pixels.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        data.push(u8::from(blocks.peek().is_none()));
        data.extend(length.to_le_bytes());
        data.extend((!length).to_le_bytes());
        data.extend(block);
    }
    let (a, b) = pixels.iter().fold((1, 0), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    data.extend((b << 16 | a).to_be_bytes());

    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // Eight bits for each of red, green and blue.
    head.extend([8, 2, 0, 0, 0]);
    out.write_all(b"\x89PNG\r\n\x1a\n")?;
    for (kind, data) in [(b"IHDR", &head), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        out.write_all(&(data.len() as u32).to_be_bytes())?;
        out.write_all(kind)?;
        out.write_all(data)?;
        out.write_all(&(!crc(crc(!0, kind), data)).to_be_bytes())?;
    }
    out.flush()
}

/// Continues the checksum of a part of a PNG.
fn crc(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |mut crc, &byte| {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(!crc(!0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn random_bytes_have_the_given_length_and_depend_on_the_seed() {
        let of = |seed| {
            let mut out = Vec::new();
            random_bytes(&mut out, seed, 100_000).unwrap();
            out
        };
        assert_eq!(of(1).len(), 100_000);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn a_text_is_at_least_as_long_as_asked_for() {
        let mut out = Vec::new();
        text(&mut out, 3, 5_000).unwrap();
        assert!((5_000..5_200).contains(&out.len()), "{}", out.len());
    }
}
