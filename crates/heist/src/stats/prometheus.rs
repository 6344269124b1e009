//! The counters in Prometheus's text format.

use std::fmt::{self, Write};

use super::{Counters, Stats};

impl Stats {
    /// Returns the counters of several pools, each with a name, as text for Prometheus. There is one metric for each
    /// counter, `heist_tasks_completed_total` and so on, with the name of the pool and the number of the worker as
    /// labels; the worker `outside` stands for threads that are not workers. Needs the feature `prometheus`.
    ///
    /// ```
    /// use heist::{Pool, Stats};
    ///
    /// let (render, audio) = (Pool::builder().workers(2).build()?, Pool::builder().workers(1).build()?);
    /// render.spawn(|| ()).join().unwrap();
    /// render.stop();
    /// let text = Stats::prometheus([("render", render.stats()), ("audio", audio.stats())]);
    /// assert!(text.contains("heist_tasks_submitted_total{pool=\"render\",worker=\"outside\"} 1\n"));
    /// assert!(text.contains("heist_tasks_submitted_total{pool=\"audio\",worker=\"outside\"} 0\n"));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn prometheus<'n>(pools: impl IntoIterator<Item = (&'n str, Self)>) -> String {
        let named = |(name, stats)| (Label(name).to_string(), stats);
        let pools: Vec<_> = pools.into_iter().map(named).collect();
        let mut out = String::new();
        write(&mut out, &pools).expect("a String takes all");
        out
    }
}

/// Writes all samples. Those of one metric are next to each other, whatever pool they belong to, as the format
/// requires.
fn write(out: &mut String, pools: &[(String, Stats)]) -> fmt::Result {
    for (place, (name, help, _)) in Counters::default().named().enumerate() {
        writeln!(out, "# HELP heist_{name}_total {}", help.trim().replace('`', ""))?;
        writeln!(out, "# TYPE heist_{name}_total counter")?;
        let value = |counters: &Counters| counters.named().nth(place).expect("as many").2;
        for (pool, stats) in pools {
            for (worker, counters) in stats.per_worker.iter().enumerate() {
                let value = value(counters);
                writeln!(out, "heist_{name}_total{{pool={pool},worker=\"{worker}\"}} {value}")?;
            }
            let value = value(&stats.outside());
            writeln!(out, "heist_{name}_total{{pool={pool},worker=\"outside\"}} {value}")?;
        }
    }
    Ok(())
}

/// Formats the value of a label, escaped.
struct Label<'l>(&'l str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                '\n' => f.write_str("\\n")?,
                plain => f.write_char(plain)?,
            }
        }
        f.write_char('"')
    }
}
