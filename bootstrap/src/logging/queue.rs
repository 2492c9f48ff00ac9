//! Lines on their way out. Whoever logs never waits: a thread of its own writes, and while nobody reads,
//! lines beyond the queue's room are counted instead of kept.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most lines that wait.
const ROOM: usize = 4096;

/// Lines that wait to be written.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<String>,
    dropped: u64,
    writing: bool,
}

impl Queue {
    /// A queue whose lines a new thread writes to `out`, for as long as the process lives.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let queue = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let writer = Arc::clone(&queue);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.write(out))?;
        Ok(queue)
    }

    /// Puts a line, its end included, behind the others; without room it is only counted.
    pub(super) fn push(&self, line: String) {
        let mut state = self.lock();
        if state.lines.len() < ROOM {
            state.lines.push_back(line);
            self.changed.notify_all();
        } else {
            state.dropped += 1;
        }
    }

    /// Waits until everything is written, but no longer than `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let busy = |state: &mut State| state.writing || !state.lines.is_empty();
        drop(self.changed.wait_timeout_while(self.lock(), patience, busy));
    }

    fn write(&self, mut out: impl Write) {
        loop {
            let (lines, dropped) = self.take();
            // Whoever cannot be written to cannot be told so either.
            let _ = lines
                .iter()
                .try_for_each(|line| out.write_all(line.as_bytes()));
            if dropped > 0 {
                let note = serde_json::json!({
                    "level": "WARN",
                    "target": module_path!(),
                    "message": "log lines were dropped because nobody read them in time",
                    "dropped": dropped,
                });
                let _ = out.write_all(format!("{note}\n").as_bytes());
            }
            let _ = out.flush();
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    /// Waits for lines and takes them all.
    fn take(&self) -> (VecDeque<String>, u64) {
        let mut state = self
            .changed
            .wait_while(self.lock(), |state| state.lines.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        state.writing = true;
        (
            std::mem::take(&mut state.lines),
            std::mem::take(&mut state.dropped),
        )
    }

    /// No holder of the lock leaves it half changed, so a panic of one does not matter to the next.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Somewhere to write to that waits for a reader before each write.
    struct Reader {
        permits: mpsc::Receiver<()>,
        read: mpsc::Sender<String>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permits.recv().map_err(io::Error::other)?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.read.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn blocked() -> (Arc<Queue>, mpsc::Sender<()>, mpsc::Receiver<String>) {
        let (permit, permits) = mpsc::channel();
        let (read, lines) = mpsc::channel();
        let queue = Queue::start(Reader { permits, read }).expect("a thread can be started");
        (queue, permit, lines)
    }

    #[test]
    fn lines_are_written_in_their_order_before_the_end() {
        let (queue, permit, lines) = blocked();
        for line in ["a\n", "b\n"] {
            queue.push(line.to_owned());
            permit.send(()).expect("the writer is there");
        }

        queue.flush(PATIENCE);

        assert_eq!(lines.try_iter().collect::<Vec<_>>(), ["a\n", "b\n"]);
    }

    #[test]
    fn a_blocked_reader_blocks_nobody_and_learns_what_he_missed() {
        let (queue, permit, lines) = blocked();
        let pushed = 3 * ROOM as u64;
        for _ in 0..pushed {
            queue.push("a\n".to_owned());
        }
        queue.flush(Duration::from_millis(1));

        for _ in 0..=pushed {
            permit.send(()).expect("the writer is there");
        }
        // One note, or two where the writer came to its first lines late.
        let (mut written, mut dropped) = (0, 0);
        while written + dropped < pushed {
            let line = lines.recv_timeout(PATIENCE).expect("a line is written");
            match line.parse::<serde_json::Value>() {
                Ok(note) => dropped += note["dropped"].as_u64().expect("a number"),
                Err(_) => written += 1,
            }
        }

        assert_eq!(written + dropped, pushed);
        assert!(dropped > 0);
    }
}
