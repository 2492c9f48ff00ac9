//! Commands that end by themselves: configuration, administration, and what is refused.

use serde_json::Value;

use super::support::api::text;
use super::support::home::{Home, KEY};
use super::support::reply::Reply;
use super::support::world::World;

#[test]
fn an_unknown_variable_is_refused_with_the_nearest_known_one() {
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
