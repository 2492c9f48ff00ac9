//! One tool of each class, which may take its time, fail, panic or hang.

use std::sync::Arc;

use async_trait::async_trait;
use hango_domain::tool::{Registry, schema};
use hango_ports::tool::{Idempotency, Invocation, Tool, ToolDef, ToolResult};
use tokio::time::sleep;

use crate::executor::Group;
use crate::log::{Call, Process, What};
use crate::world::World;

/// The tools, and one that is not there.
pub(crate) const NAMES: [&str; 4] = ["look", "pay_by_key", "push_button", "not_there"];

const CLASSES: [Idempotency; 3] = [Idempotency::Safe, Idempotency::Keyed, Idempotency::Unsafe];

/// See the module.
struct Simulated {
    world: Arc<World>,
    process: Process,
    name: &'static str,
    class: Idempotency,
}

/// The tools of one process.
pub(crate) fn of_process(world: &Arc<World>, process: Process) -> Registry {
    let mut registry = Registry::new();
    for (name, class) in NAMES.into_iter().zip(CLASSES) {
        let tool = Simulated {
            world: Arc::clone(world),
            process,
            name,
            class,
        };
        registry.register(Arc::new(tool)).expect("names differ");
    }
    registry
}

#[async_trait]
impl Tool for Simulated {
    fn definition(&self) -> ToolDef {
        ToolDef {
            name: self.name.to_owned(),
            description: "Does what chance says.".to_owned(),
            parameters: schema::object([]),
        }
    }

    fn idempotency(&self) -> Idempotency {
        self.class
    }

    /// Its task is the runtime's, and part of its process all the same.
    async fn execute(&self, asked: Invocation) -> ToolResult {
        let group = Group(self.process);
        let executor = &self.world.executor;
        executor.as_part_of(group, self.work(asked)).await
    }
}

impl Simulated {
    async fn work(&self, asked: Invocation) -> ToolResult {
        let world = &self.world;
        let call = world.next_call();
        world.note(What::Tool {
            call,
            process: self.process,
            run: asked.run,
            key: asked.idempotency_key,
            class: self.class,
        });
        let _open = Open {
            world: Arc::clone(world),
            call,
        };
        let dice = &world.dice;
        sleep(dice.moment()).await;
        if world.is_calm() || !dice.percent(world.plan.tools) {
            return ToolResult::ok("done");
        }
        match dice.between(0, 3) {
            0 => sleep(dice.millis(100, 1800)).await,
            1 => return ToolResult::error("it does not work"),
            // Not through the panic hook, which would tell people.
            2 => std::panic::resume_unwind(Box::new("the tool panics")),
            _ => std::future::pending().await,
        }
        ToolResult::ok("done at last")
    }
}

/// An execution that is under way.
struct Open {
    world: Arc<World>,
    call: Call,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.world.note(What::ToolEnds(self.call));
    }
}
