//! JSON Schema objects in few words, so that a tool's file is about the tool.
//!
//! ```
//! use hango_domain::tool::schema;
//!
//! let parameters = schema::object([
//!     schema::field("url", "string", "Where to look.", true),
//!     schema::field("method", schema::one_of(["GET", "HEAD"]), "How to ask.", false),
//!     schema::field("tags", schema::array("string"), "What it is about.", false),
//! ]);
//!
//! assert_eq!(parameters["required"], serde_json::json!(["url"]));
//! ```

use serde_json::{Map, Value, json};

/// What a value may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema(Map<String, Value>);

/// One property of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    name: &'static str,
    schema: Schema,
    required: bool,
}

/// An object of exactly these fields: others are refused.
#[must_use]
pub fn object(fields: impl IntoIterator<Item = Field>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        if field.required {
            required.push(field.name);
        }
        properties.insert(field.name.to_owned(), Value::Object(field.schema.0));
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A field. Its schema is a type's word (`string`, `integer`, `number`, `boolean`), [`one_of`],
/// [`array()`], [`object`], or any other JSON Schema.
#[must_use]
pub fn field(
    name: &'static str,
    schema: impl Into<Schema>,
    description: &str,
    required: bool,
) -> Field {
    let mut schema = schema.into();
    schema
        .0
        .insert("description".to_owned(), description.into());
    Field {
        name,
        schema,
        required,
    }
}

/// One of these words.
#[must_use]
pub fn one_of(words: impl IntoIterator<Item = &'static str>) -> Schema {
    let words: Vec<Value> = words.into_iter().map(Value::from).collect();
    let mut schema = Schema::from("string");
    schema.0.insert("enum".to_owned(), Value::Array(words));
    schema
}

/// Any number of such items.
#[must_use]
pub fn array(items: impl Into<Schema>) -> Schema {
    let mut schema = Schema::from("array");
    let items = Value::Object(items.into().0);
    schema.0.insert("items".to_owned(), items);
    schema
}

impl From<&'static str> for Schema {
    /// The schema of a JSON Schema type's word.
    fn from(word: &'static str) -> Self {
        Self(Map::from_iter([("type".to_owned(), word.into())]))
    }
}

impl From<Value> for Schema {
    /// That schema; one that is not an object puts no bound on its value.
    fn from(schema: Value) -> Self {
        match schema {
            Value::Object(schema) => Self(schema),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Self(Map::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_names_its_required_fields_and_refuses_others() {
        let schema = object([
            field("url", "string", "Where.", true),
            field("max_bytes", "integer", "How much.", false),
        ]);

        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "Where."},
                    "max_bytes": {"type": "integer", "description": "How much."},
                },
                "required": ["url"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn arrays_of_objects_and_enums_nest() {
        let todo = object([field(
            "status",
            one_of(["pending", "done"]),
            "How far.",
            true,
        )]);

        let schema = object([field("todos", array(todo), "The list.", true)]);

        assert_eq!(
            schema["properties"]["todos"],
            json!({
                "type": "array",
                "description": "The list.",
                "items": {
                    "type": "object",
                    "properties": {
                        "status": {
                            "type": "string",
                            "enum": ["pending", "done"],
                            "description": "How far.",
                        },
                    },
                    "required": ["status"],
                    "additionalProperties": false,
                },
            })
        );
    }

    #[test]
    fn an_object_without_fields_takes_no_arguments() {
        assert_eq!(
            object([]),
            json!({
                "type": "object",
                "properties": {},
                "required": [],
                "additionalProperties": false,
            })
        );
    }
}
