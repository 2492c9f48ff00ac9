//! Commands that end by themselves: configuration, administration, and what is refused.

use serde_json::Value;

use super::support::api::text;
use super::support::home::{Home, KEY};
use super::support::reply::Reply;
use super::support::world::World;

#[test]
fn d50_an_unknown_variable_is_refused_with_the_nearest_known_one() {
    let mut home = Home::of_server();
    home.set("HANGO_RUN_LEASE_TLT", "10s");

    let ended = home.run(&["serve"]);

    assert_eq!(ended.status, Some(2), "{}", ended.err);
    assert!(ended.err.contains("HANGO_RUN_LEASE_TLT"), "{}", ended.err);
    assert!(ended.err.contains("HANGO_RUN_LEASE_TTL"), "{}", ended.err);
    assert!(!home.file().exists());
}

#[test]
fn the_effective_configuration_shows_origins_and_no_secrets() {
    let mut home = Home::of_server();
    home.set("OPENAI_API_KEY", "sk-very-secret-canary");
    home.write_config("run_lease_ttl = \"45s\"\n");

    let ended = home.run(&["config"]);

    assert_eq!(ended.status, Some(0), "{}", ended.err);
    let (_, secret) = KEY.rsplit_once('_').expect("a key has parts");
    for canary in ["sk-very-secret-canary", secret] {
        assert!(!ended.out.contains(canary), "{}", ended.out);
    }
    let line = |name: &str| {
        let found = ended.out.lines().find(|line| line.contains(name));
        found.unwrap_or_else(|| panic!("no {name} in {}", ended.out))
    };
    let lease = line("HANGO_RUN_LEASE_TTL");
    assert!(lease.contains("45s") && lease.ends_with("file"), "{lease}");
    let key = line("HANGO_BOOTSTRAP_API_KEY");
    assert!(key.ends_with("environment"), "{key}");
}

#[test]
fn what_a_start_would_refuse_and_warn_of_the_configuration_says_too() {
    let mut home = Home::of_server();
    home.set("HANGO_DRAIN_TIMEOUT", "1s");

    let warned = home.run(&["config"]);

    assert_eq!(warned.status, Some(0), "{}", warned.err);
    assert!(warned.err.contains("HANGO_DRAIN_TIMEOUT"), "{}", warned.err);
    home.write_config(
        r#"
        [providers.played]
        kind = "scripted"
        script = "nowhere.toml"

        [[tools.http]]
        name = "get_time"
        description = "Takes the name of a built-in tool."
        url = "http://127.0.0.1:1"
        idempotency = "safe"
        "#,
    );
    let [checked, started] = ["config", "serve"].map(|command| home.run(&[command]));
    for ended in [&checked, &started] {
        assert_eq!((ended.status, &*ended.out), (Some(2), ""), "{}", ended.err);
        for place in ["providers.played: ", "tools.http.get_time: "] {
            assert!(ended.err.contains(place), "{}", ended.err);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_of_the_api_is_printed_as_it_is_served() {
    let world = World::start(&[], |_| Reply::text("all done")).await;
    let mut home = Home::of_server();
    home.set("HANGO_RUN_WORKERS", "not a number");

    let ended = home.run(&["openapi"]);

    assert_eq!(ended.status, Some(0), "{}", ended.err);
    let printed: Value = serde_json::from_str(&ended.out).expect("it is JSON");
    let served = world.api.with_key(None).get("/openapi.json").await;
    assert_eq!(printed, served.expect(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_made_beside_a_running_server_is_one_of_its_tenants() {
    let world = World::start(&[], |_| Reply::text("all done")).await;
    let create = [
        "admin",
        "tenant",
        "create",
        "--slug",
        "acme",
        "--owner-email",
        "owner@acme.example",
        "--json",
    ];

    let made = world.home.run(&create);

    assert_eq!(made.status, Some(0), "{}", made.err);
    let made: serde_json::Value = serde_json::from_str(&made.out).expect("it is JSON");
    let key = text(&made["api_key"]["key"]);
    let acme = world.api.with_key(Some(&key));
    let me = acme.get("/v1/me").await.expect(200);
    assert_eq!(me["tenant"]["slug"], "acme");
    assert_eq!(me["user"]["email"], "owner@acme.example");
    assert_eq!(me["user"]["role"], "owner");
    // It sees nothing of the other tenant's.
    acme.get("/v1/agents/agent").await.expect(404);
    let again = world.home.run(&create);
    assert_eq!(again.status, Some(1), "{}", again.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_revoked_beside_a_running_server_is_refused() {
    let world = World::start(&[], |_| Reply::text("all done")).await;
    let who = ["--tenant", "default", "--email", "owner@localhost"];
    let create = [
        &["admin", "key", "create", "--name", "ci", "--json"],
        &who[..],
    ]
    .concat();
    let made = world.home.run(&create);
    assert_eq!(made.status, Some(0), "{}", made.err);
    let made: serde_json::Value = serde_json::from_str(&made.out).expect("it is JSON");
    let api = world.api.with_key(made["key"].as_str());
    api.get("/v1/me").await.expect(200);

    let revoked = world
        .home
        .run(&["admin", "key", "revoke", &text(&made["prefix"])]);

    assert_eq!(revoked.status, Some(0), "{}", revoked.err);
    let refused = api.get("/v1/me").await;
    assert_eq!(refused.expect(401)["code"], "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_users_are_listed_and_a_key_is_revoked_by_whatever_is_known_of_it() {
    let world = World::start(&[], |_| Reply::text("all done")).await;
    let admin = |arguments: &[&str]| world.home.run(&[&["admin"], arguments].concat());
    let done = |arguments: &[&str]| {
        let ended = admin(arguments);
        assert_eq!(ended.status, Some(0), "{}", ended.err);
        ended.out
    };
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&done(&[arguments, &["--json"]].concat())).expect("it is JSON")
    };
    let who = ["--tenant", "default", "--email", "owner@localhost"];
    let create = |name: &str| {
        let end = ["--expires-at", "2999-01-31T00:00:00+01:00"];
        json(&[&["key", "create", "--name", name], &who[..], &end].concat())
    };
    let made = ["a", "b", "c"].map(create);
    assert_eq!(made[0]["expires_at"], "2999-01-30T23:00:00.000000Z");

    for (key, name) in made.iter().zip(["prefix", "key", "id"]) {
        let revoked = done(&["key", "revoke", &text(&key[name])]);
        let secret = text(&key["key"]).split_off(16);
        assert!(revoked.contains(&text(&key["prefix"])), "{revoked}");
        assert!(!revoked.contains(&secret), "{revoked}");
        let api = world.api.with_key(key["key"].as_str());
        api.get("/v1/me").await.expect(401);
    }

    let listed = json(&["key", "list", "--tenant", "default"]);
    let names = listed["data"].as_array().expect("a list").iter();
    let told: Vec<_> = names
        .map(|key| (text(&key["name"]), key["revoked_at"].is_string()))
        .collect();
    let expected = [("c", true), ("b", true), ("a", true), ("bootstrap", false)];
    assert_eq!(told, expected.map(|(name, gone)| (name.to_owned(), gone)));
    assert!(listed["data"][0]["key"].is_null());
    let table = done(&[&["key", "list"], &who[..]].concat());
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("PREFIX        STATE"), "{table}");
    assert!(
        lines[1].contains(" revoked ") && lines[1].ends_with(" c"),
        "{table}"
    );
    assert!(
        lines[4].contains(" active ") && lines[4].contains("owner@localhost"),
        "{table}"
    );
    let users = json(&["user", "list", "--tenant", "default"]);
    assert_eq!(users["data"][0]["email"], "owner@localhost");
    assert!(done(&["user", "list", "--tenant", "default"]).contains("owner@localhost"));

    for (arguments, said) in [
        (
            &["key", "revoke", "000000000000"][..],
            "admin key list --tenant",
        ),
        (&["user", "list", "--tenant", "none"], "admin tenant list"),
        (
            &["key", "list", "--tenant", "default", "--email", "a@b"],
            "user list --tenant default",
        ),
    ] {
        let refused = admin(arguments);
        assert_eq!(
            (refused.status, &*refused.out),
            (Some(1), ""),
            "{}",
            refused.err
        );
        assert!(refused.err.contains(said), "{}", refused.err);
    }
    let past = ["--expires-at", "2001-01-01T00:00:00Z"];
    let refused = admin(&[&["key", "create", "--name", "d"], &who[..], &past].concat());
    assert!(
        refused.err.contains("expires_at: this is over already"),
        "{}",
        refused.err
    );
}
