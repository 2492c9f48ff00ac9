//! What an agent sets of its optional layers: its `middleware` object, each layer by its name and with a
//! schema of its own.
//!
//! Everything that is wrong is found at once, and has its default besides: an agent is not saved with
//! faults, but one that was saved when more could be set still works.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Value};

use super::repeat_call::{self, RepeatCall};
use super::todo::{self, TodoList};

/// The optional layers' settings as they hold, what was left out filled in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Settings {
    /// Those of [`TodoList`].
    pub todo: todo::Settings,
    /// Those of [`RepeatCall`].
    pub repeat_call: repeat_call::Settings,
}

/// One thing that is wrong with a `middleware` object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SettingFault {
    /// Where, as a JSON pointer into the object.
    pub pointer: String,
    /// What, for programs.
    pub kind: SettingFaultKind,
    /// What, for people.
    pub detail: String,
}

/// What can be wrong with a setting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SettingFaultKind {
    /// There is no such layer that can be set, or it has no such setting.
    Unknown,
    /// It is of another JSON type.
    Type,
    /// It is smaller or larger than it may be.
    Range,
}

impl Settings {
    /// Reads an agent's `middleware` object, and says everything that is wrong with it.
    /// `repeat_call_threshold` is the server's own.
    #[must_use]
    pub fn read(
        middleware: &Map<String, Value>,
        repeat_call_threshold: u32,
    ) -> (Self, Vec<SettingFault>) {
        let mut faults = Vec::new();
        let mut layers = Fields::new(String::new(), middleware, &mut faults);
        let settings = Self {
            todo: layers.layer(TodoList::NAME, todo::Settings::read),
            repeat_call: layers.layer(RepeatCall::NAME, |fields| {
                repeat_call::Settings::read(fields, repeat_call_threshold)
            }),
        };
        layers.finish("no layer of this name can be set");
        (settings, faults)
    }
}

/// The fields of an object, as they are read: what nobody asks for is unknown.
pub(super) struct Fields<'a> {
    pointer: String,
    left: Map<String, Value>,
    faults: &'a mut Vec<SettingFault>,
}

impl<'a> Fields<'a> {
    fn new(
        pointer: String,
        fields: &Map<String, Value>,
        faults: &'a mut Vec<SettingFault>,
    ) -> Self {
        Self {
            pointer,
            left: fields.clone(),
            faults,
        }
    }

    /// The settings of one layer, whatever is left out of them.
    fn layer<T>(&mut self, name: &str, read: impl FnOnce(&mut Fields<'_>) -> T) -> T {
        let given = match self.left.remove(name) {
            None => Map::new(),
            Some(Value::Object(given)) => given,
            Some(_) => {
                self.fault(
                    name,
                    SettingFaultKind::Type,
                    "an object is expected".to_owned(),
                );
                Map::new()
            }
        };
        let mut fields = Fields::new(self.at(name), &given, self.faults);
        let settings = read(&mut fields);
        fields.finish("the layer has no such setting");
        settings
    }

    /// A switch.
    pub(super) fn switch(&mut self, name: &str, default: bool) -> bool {
        match self.left.remove(name) {
            None => default,
            Some(Value::Bool(given)) => given,
            Some(_) => {
                let detail = "true or false is expected".to_owned();
                self.fault(name, SettingFaultKind::Type, detail);
                default
            }
        }
    }

    /// A whole number of a range.
    pub(super) fn count(&mut self, name: &str, range: &RangeInclusive<u32>, default: u32) -> u32 {
        let Some(given) = self.left.remove(name) else {
            return default;
        };
        if !given.is_i64() && !given.is_u64() {
            let detail = "a whole number is expected".to_owned();
            self.fault(name, SettingFaultKind::Type, detail);
            return default;
        }
        let count = given.as_u64().and_then(|given| u32::try_from(given).ok());
        if let Some(count) = count.filter(|count| range.contains(count)) {
            return count;
        }
        let detail = format!("{} to {} is possible", range.start(), range.end());
        self.fault(name, SettingFaultKind::Range, detail);
        default
    }

    fn finish(mut self, unknown: &str) {
        for name in std::mem::take(&mut self.left).keys() {
            self.fault(name, SettingFaultKind::Unknown, unknown.to_owned());
        }
    }

    fn fault(&mut self, name: &str, kind: SettingFaultKind, detail: String) {
        let pointer = self.at(name);
        self.faults.push(SettingFault {
            pointer,
            kind,
            detail,
        });
    }

    fn at(&self, name: &str) -> String {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        format!("{}/{escaped}", self.pointer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(middleware: &Value) -> (Settings, Vec<SettingFault>) {
        let middleware = middleware.as_object().expect("an object");
        Settings::read(middleware, 3)
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let defaults = json!({
            "todo": {"enabled": true},
            "repeat_call": {"enabled": true, "threshold": 3},
        });
        for given in [
            json!({}),
            json!({"todo": {}, "repeat_call": {}}),
            defaults.clone(),
        ] {
            let (settings, faults) = read(&given);

            assert_eq!((json!(settings), faults), (defaults.clone(), vec![]));
        }
    }

    #[test]
    fn a_layer_is_switched_and_set_by_its_name() {
        let given = json!({"todo": {"enabled": false}, "repeat_call": {"threshold": 5}});

        let (settings, faults) = read(&given);

        assert_eq!(
            settings,
            Settings {
                todo: todo::Settings { enabled: false },
                repeat_call: repeat_call::Settings {
                    enabled: true,
                    threshold: 5
                },
            }
        );
        assert_eq!(faults, []);
    }

    #[test]
    fn everything_that_is_wrong_is_said_with_its_place_and_has_its_default() {
        let given = json!({
            "todo": {"enabled": "yes", "a/b~": 1},
            "repeat_call": {"threshold": 1, "enabled": null},
            "tool_allowlist": {"enabled": false},
        });

        let (settings, faults) = read(&given);

        assert_eq!(settings, read(&json!({})).0);
        let faults: Vec<_> = faults
            .iter()
            .map(|fault| (&*fault.pointer, fault.kind))
            .collect();
        assert_eq!(
            faults,
            [
                ("/todo/enabled", SettingFaultKind::Type),
                ("/todo/a~1b~0", SettingFaultKind::Unknown),
                ("/repeat_call/enabled", SettingFaultKind::Type),
                ("/repeat_call/threshold", SettingFaultKind::Range),
                ("/tool_allowlist", SettingFaultKind::Unknown),
            ]
        );
    }

    #[test]
    fn a_threshold_is_a_whole_number_from_2_to_1000() {
        use SettingFaultKind::{Range, Type};
        for (threshold, wrong) in [
            (json!(2), None),
            (json!(1000), None),
            (json!(1), Some(Range)),
            (json!(0), Some(Range)),
            (json!(-3), Some(Range)),
            (json!(1001), Some(Range)),
            (json!(4_294_967_299_u64), Some(Range)),
            (json!(3.0), Some(Type)),
            (json!("3"), Some(Type)),
            (Value::Null, Some(Type)),
        ] {
            let (_, faults) = read(&json!({"repeat_call": {"threshold": threshold}}));

            let found = faults.first().map(|fault| fault.kind);
            assert_eq!(found, wrong, "{threshold}");
        }
    }

    #[test]
    fn what_is_no_object_sets_no_layer() {
        for given in [json!(true), Value::Null, json!([]), json!("off")] {
            let (settings, faults) = read(&json!({"todo": given}));

            assert!(settings.todo.enabled);
            assert_eq!(faults[0].pointer, "/todo");
            assert_eq!(faults[0].kind, SettingFaultKind::Type);
        }
    }
}
