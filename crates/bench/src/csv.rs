//! The figures of every second as comma-separated values, one line for each run and second.

use std::fmt::Write;

use crate::result::{KINDS, Report};

/// Renders all runs of a report.
pub(crate) fn render(report: &Report) -> String {
    let mut out = String::from("workload,rate,engine,round,second,offered");
    // Writing to a String cannot fail.
    let mut put = |text: std::fmt::Arguments<'_>| {
        let _ = out.write_fmt(text);
    };
    for kind in KINDS {
        put(format_args!(",{kind}s_done,{kind}_p50_ns,{kind}_p99_ns,{kind}_p999_ns,{kind}_max_ns"));
    }
    put(format_args!(",disk_read_bytes,disk_written_bytes,stall_ns,stopped,resident_bytes"));
    put(format_args!(",debt_bytes,level0_files,level_bytes,class_bytes_written"));
    put(format_args!(",believed_read,believed_write,stolen_ms\n"));
    for run in &report.runs {
        for (number, second) in run.measured.timeline.iter().enumerate() {
            let (workload, engine, round) = (&run.workload, &run.engine, run.round);
            let rate = run.rate.map(|rate| rate.to_string()).unwrap_or_default();
            put(format_args!("{workload},{rate},{engine},{round},{number},{}", second.offered));
            for (done, latency) in second.done.iter().zip(&second.latency) {
                match latency {
                    None => put(format_args!(",{done},,,,")),
                    Some(q) => {
                        put(format_args!(",{done},{},{},{},{}", q.p50, q.p99, q.p999, q.max));
                    }
                }
            }
            let disk = second.disk;
            put(format_args!(
                ",{},{},{},{},{}",
                disk.read,
                disk.written,
                second.stall_ns,
                u8::from(second.stopped),
                second.resident
            ));
            put(format_args!(",{}", second.debt.map(|debt| debt.to_string()).unwrap_or_default()));
            put(format_args!(",{}", second.levels.first().map_or(0, |level| level.files)));
            let levels: Vec<String> =
                second.levels.iter().map(|level| level.bytes.to_string()).collect();
            let classes: Vec<String> = run
                .measured
                .io_classes
                .iter()
                .zip(&second.io)
                .map(|(class, bytes)| format!("{class}={}", bytes[1]))
                .collect();
            put(format_args!(",{},{}", levels.join(" "), classes.join(" ")));
            match second.believed {
                Some([read, write]) => put(format_args!(",{read},{write}")),
                None => put(format_args!(",,")),
            }
            put(format_args!(",{}\n", second.stolen_ms));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{report, run};

    #[test]
    fn every_second_is_a_line_of_as_many_fields_as_the_heading() {
        let runs = vec![run("sateen", "overwrite", 1, 1.0), run("rocksdb", "overwrite", 1, 1.0)];
        let text = render(&report(runs));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * 4);
        let fields = lines[0].split(',').count();
        assert!(lines.iter().all(|line| line.split(',').count() == fields), "{text}");
        assert!(lines[3].starts_with("overwrite,,sateen,1,2,100,50,900,5000,70000,2000000"));
    }
}
