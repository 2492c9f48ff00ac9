//! Tests of what is written for an event.

use std::io::Write;
use std::sync::Mutex;

use hango_domain::Timestamp;
use serde_json::{Value, json};
use tracing::subscriber::with_default;
use tracing::{debug, error, info, info_span, warn};

use super::*;

/// A clock that stands still.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_001)
    }
}

/// Somewhere to write to that keeps it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics here").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(wanted: &str, style: Style, work: impl FnOnce()) -> String {
    let kept = Kept::default();
    let queue = Queue::start(kept.clone()).expect("a thread can be started");
    let wanted = filter(wanted).expect("the test's own filter");
    let lines = Lines::new(style, Arc::new(Noon), Arc::clone(&queue)).with_filter(written(wanted));
    with_default(Registry::default().with(lines), work);
    queue.flush(Duration::from_secs(10));
    let bytes = kept.0.lock().expect("no test panics here").clone();
    String::from_utf8(bytes).expect("lines are text")
}

fn json_lines(wanted: &str, work: impl FnOnce()) -> Vec<Value> {
    logged(wanted, Style::Json, work)
        .lines()
        .map(|line| line.parse().expect("a line is JSON"))
        .collect()
}

#[test]
fn a_line_within_a_run_names_it_at_the_top_level() {
    let lines = json_lines("info", || {
        let run = info_span!(
            "run",
            hango.tenant.id = "t",
            hango.run.id = "r",
            trace_id = "abc",
            secret = "hush"
        );
        run.in_scope(|| info_span!("turn").in_scope(|| warn!(turn = 3, "cut off")));
        info!("elsewhere");
    });

    let target = module_path!();
    assert_eq!(
        lines,
        [
            json!({
                "timestamp": "2023-11-14T22:13:20.000001Z",
                "level": "WARN",
                "target": target,
                "message": "cut off",
                "hango.tenant.id": "t",
                "hango.run.id": "r",
                "trace_id": "abc",
                "turn": 3,
            }),
            json!({
                "timestamp": "2023-11-14T22:13:20.000001Z",
                "level": "INFO",
                "target": target,
                "message": "elsewhere",
            }),
        ]
    );
}

#[test]
fn what_a_span_learns_later_is_on_the_lines_after_it() {
    let lines = json_lines("info", || {
        let run = info_span!("run", hango.run.id = tracing::field::Empty);
        run.in_scope(|| {
            info!("before");
            run.record("hango.run.id", "r");
            info!("after");
        });
    });

    assert_eq!(lines[0].get("hango.run.id"), None);
    assert_eq!(lines[1]["hango.run.id"], "r");
}

#[test]
fn a_warning_names_its_run_where_nothing_below_it_is_wanted() {
    let lines = json_lines("warn", || {
        info_span!("run", hango.run.id = "r").in_scope(|| {
            info!("not wanted");
            error!("wanted");
        });
    });

    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["hango.run.id"], "r");
}

#[test]
fn clients_and_drivers_stay_silent_about_what_they_carry() {
    let lines = json_lines("trace", || {
        debug!(target: "hyper::proto", "headers");
        debug!(target: "h2", "frames");
        debug!(target: "reqwest::connect", "urls");
        info!(target: "sqlx::query", "statements");
        warn!(target: "sqlx::query", "slow");
        debug!("ours");
    });

    let messages: Vec<_> = lines.iter().map(|line| &line["message"]).collect();
    assert_eq!(messages, ["slow", "ours"]);
}

#[test]
fn an_event_cannot_pass_for_another() {
    let lines = json_lines("info", || {
        info!(level = "ERROR", timestamp = 0, "a\n{{\"message\":\"b\"}}");
    });

    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["level"], "INFO");
}

#[test]
fn an_error_is_written_with_its_causes() {
    let error = anyhow::anyhow!("disk full").context("cannot save");

    let lines = json_lines("info", || {
        let error: &(dyn std::error::Error + 'static) = error.as_ref();
        error!(error, "failed");
    });

    assert_eq!(lines[0]["error"], "cannot save: disk full");
}

#[test]
fn a_terminal_is_not_commanded() {
    let style = Style::Pretty { colours: false };

    let text = logged("info", style, || info!(name = "\x1b[2Jgone", "hello"));

    assert_eq!(
        text,
        format!(
            "2023-11-14T22:13:20.000001Z  INFO {}: hello name=\\u{{1b}}[2Jgone\n",
            module_path!()
        )
    );
}

#[test]
fn colours_are_for_terminals_only() {
    let with = logged("info", Style::Pretty { colours: true }, || warn!("a"));
    let without = logged("info", Style::Pretty { colours: false }, || warn!("a"));

    assert!(with.contains("\x1b[33m"));
    assert!(!without.contains('\x1b'));
}

#[test]
fn a_filter_is_a_level_or_a_list() {
    for text in ["info", "off", "warn,hango=debug"] {
        assert!(filter(text).is_ok(), "{text}");
    }
    assert!(filter("loud").is_err());
}
